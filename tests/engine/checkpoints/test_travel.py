"""Files travel to the place that the settings name, also from several jobs at the same time."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from detent.engine.checkpoints.travel import Travel
from detent.store.memory import MemoryStore
from tests.support.machines import machine


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
