"""Files travel to the place that the settings name, also from several jobs at the same time."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from detent.engine.checkpoints import travel
from detent.engine.checkpoints.travel import Head, Travel, put, travel_of
from detent.errors import Conflict, StoreFailed
from detent.objects.restore import Restore
from detent.store.memory import MemoryStore
from tests.support.machines import bare_remote, listing, machine


class Nowhere:
    """A place that takes every snapshot and keeps none; and objects that are all the same manifest."""

    def send(self, *_snapshot: object) -> None:
        pass

    def read(self, _digest: str) -> bytes:
        return b"{}"


def test_jobs_send_at_the_same_time(tmp_path):
    nowhere: Any = Nowhere()
    travels = [Travel(nowhere, nowhere, str(tmp_path)) for _ in range(4)]

    def send(number: int) -> None:
        travels[number % 4].send("WFS-a", f"{number:064x}", {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(2_000)))

    assert [path.name for path in tmp_path.iterdir()] == ["travel-last"]


class Shaky(Nowhere):
    """A place that fails before it takes a snapshot."""

    def __init__(self, *failures: str) -> None:
        self.failures = list(failures)

    def send(self, *_snapshot: object) -> None:
        if self.failures:
            raise StoreFailed(self.failures.pop(0))


def test_a_place_that_does_not_answer_at_once_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(travel, "PAUSES_S", (0.0, 0.0))
    shaky: Any = Shaky("Could not resolve host", "Connection timed out")

    Travel(shaky, shaky, str(tmp_path)).send("WFS-a", "0" * 64, {})

    assert shaky.failures == []


@pytest.mark.parametrize("failures", [("! [remote rejected] refs/detent/…", "never"), ("no route",) * 4])
def test_a_place_that_refuses_or_never_answers_is_an_error(tmp_path, monkeypatch, failures):
    monkeypatch.setattr(travel, "PAUSES_S", (0.0, 0.0))
    shaky: Any = Shaky(*failures)

    with pytest.raises(StoreFailed):
        Travel(shaky, shaky, str(tmp_path)).send("WFS-a", "0" * 64, {})

    assert len(shaky.failures) == 1


@pytest.mark.parametrize(
    "where", ['remote = "../remote.git"', 'remote = "origin"', 'url = "../s"', 'url = "file://../s"']
)
def test_a_relative_place_is_seen_from_the_project(tmp_path, monkeypatch, where):
    own, remote = tmp_path / "own", tmp_path / "remote.git"
    (own / "sub").mkdir(parents=True)
    for argv in (
        ["init", "-q", "--bare", remote],
        ["init", "-q", own],
        ["-C", own, "remote", "add", "origin", "../remote.git"],
    ):
        subprocess.run(["git", *argv], check=True)
    monkeypatch.chdir(own / "sub")

    session = machine(own, MemoryStore(), where).start("w", "travel")

    refs = subprocess.run(["git", "-C", remote, "for-each-ref"], capture_output=True, text=True, check=True).stdout
    sent = refs.splitlines() or list((tmp_path / "s" / "snapshots" / session.id).iterdir())
    assert len(sent) == 1


def test_files_that_could_not_be_brought_as_a_whole_are_as_before(tmp_path, monkeypatch):
    where, store, own = bare_remote(tmp_path / "remote.git"), MemoryStore(), tmp_path / "own"
    own.mkdir()
    for name in ("a", "b"):
        (own / name).write_text(name)
    project = machine(own, store, where)
    session = project.start("w", "travel").id
    for name in ("a", "b"):
        (own / name).write_text(f"only here: {name}")
    before, execute, failing = listing(own), Restore._execute, ["b"]

    def changed_meanwhile(restore, step, *more):
        if step.path in failing:
            failing.remove(step.path)
            raise Conflict("b was changed meanwhile")
        execute(restore, step, *more)

    monkeypatch.setattr(Restore, "_execute", changed_meanwhile)
    head = Head(store, session).manifest()
    with pytest.raises(Conflict, match="changed meanwhile"):
        put(project, session, head, travel_of(project).files(session, head))
    assert failing == []
    assert listing(own) == before
