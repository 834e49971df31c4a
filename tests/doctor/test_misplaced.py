"""Files that are no truth never block: whatever stands in the place of one, every verb works and nothing is lost."""

import os
import shutil
from datetime import UTC, datetime

import msgspec
import pytest

from detent.engine.project import open_project
from detent.engine.run_lease import RunLease, live_lease
from detent.errors import Conflict
from detent.run.lease import Lease
from tests.support.campaign import sampled
from tests.support.misplaced import INSTEAD, PASSING, SESSION, VERBS, answers, furnished, no_truth, put_instead

#: The record of an installation says what to restore; the doctor names it, and nothing else depends on it.
_NAMED = "install/manifest.json"
_LOOKS = (("doctor", "--fix", "--yes"), ("doctor",))
_NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The project, its user's state directory, and a copy of both from which each case starts."""
    directory = tmp_path_factory.mktemp("misplaced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory / "home"))
        furnished(directory / "project")
        for name in ("home", "project"):
            shutil.copytree(directory / name, directory / "saved" / name)
        yield directory


@pytest.fixture
def root(place):
    for name in ("home", "project"):
        shutil.rmtree(place / name)
        shutil.copytree(place / "saved" / name, place / name)
    return place / "project"


@pytest.mark.parametrize("what", INSTEAD)
def test_nothing_in_the_place_of_a_file_blocks_a_verb(place, what):
    blocked = {}
    for name in sampled(no_truth(place / "saved" / "project"), 3, what):
        for part in ("home", "project"):
            shutil.rmtree(place / part)
            shutil.copytree(place / "saved" / part, place / part)
        put_instead(place / "project", name, what)
        given = answers(place / "project", (*VERBS, *_LOOKS))
        failed = {verb: code for verb, code in given.codes.items() if code}
        if name == _NAMED:
            assert "manifest.json" in given.output
            assert "try: " in given.output
            failed = {verb: code for verb, code in failed.items() if code != 1 or not verb.startswith("doctor")}
        if failed:
            blocked[name] = failed

    assert blocked == {}


def test_the_list_has_every_kind_of_file(place):
    names = no_truth(place / "saved" / "project")

    assert {"state.json", "history.jsonl", ".documents.json", ".lock", "checkpoints/index.json", *PASSING} < set(names)
    assert len(names) > 30


def test_a_directory_in_the_place_of_a_document_is_kept(root):
    put_instead(root, "state.json", "a directory")

    given = answers(root, [("task", "add", "another one")])

    assert given.codes == {"task add another one": 0}
    assert "state.json could not be read and is kept as state.json.set-aside-1" in given.output
    assert (root / ".workflow/state.json").is_file()
    assert (root / ".workflow/state.json.set-aside-1/inside").read_bytes() == b"kept"


def test_an_unreadable_document_is_kept(root):
    state = root / ".workflow/state.json"
    text = state.read_bytes()
    state.chmod(0)

    assert answers(root, [("task", "add", "another one")]).codes == {"task add another one": 0}

    assert (root / ".workflow/state.json.set-aside-1").read_bytes() == text
    assert state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("what", ["garbage", "empty", "other JSON"])
def test_a_record_of_a_rollback_that_cannot_be_read_is_set_aside_and_said(root, what):
    put_instead(root, "checkpoints/rollback.json", what)
    text = (root / ".workflow/checkpoints/rollback.json").read_bytes()

    given = answers(root, [("task", "add", "another one"), ("doctor",)])

    assert given.codes == {"task add another one": 0, "doctor": 0}
    assert "is kept as checkpoints/rollback.json.rejected-1" in given.output
    assert (root / ".workflow/checkpoints/rollback.json.rejected-1").read_bytes() == text


@pytest.mark.parametrize("path", ["../outside", "/etc/outside", "a/../../outside", "a//b"])
def test_a_record_of_a_rollback_that_leads_out_of_the_project_is_not_followed(root, path):
    with open_project(root, actor="tester") as project:
        tree = next(reversed(project.session().checkpoints.all())).event.tree
        actor = msgspec.to_builtins(project.actor)
    entry = ["f", "0" * 64, 1]
    intent = {
        "session": SESSION,
        "version": 1,
        "to": "x",
        "at": _NOW,
        "actor": actor,
        "archive": None,
        "paths": [],
        "before": tree,
        "after": tree,
        "phase_only": False,
        "undoes": None,
        "steps": [[path, entry, None]],
    }
    (root / ".workflow/checkpoints/rollback.json").write_bytes(msgspec.json.encode(intent))

    given = answers(root, [("task", "add", "another one")])

    assert given.codes == {"task add another one": 0}
    assert "which is not inside the project" in given.output


def lease(**changed):
    fields = {"run": "run-1", "owner": "ada", "host": "elsewhere", "pid": 1, "born": "1", "since": _NOW, "beat": _NOW}
    return msgspec.json.encode({**fields, **changed})


@pytest.mark.parametrize(
    "beat", ["2099-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-02T12:00:00", "1970-01-01T00:00:00Z"]
)
def test_a_lease_that_would_never_end_is_none(root, beat):
    with open_project(root, actor="tester", clock=lambda: _NOW) as project:
        project.store.put(f"{SESSION}/.process/runner.json", lease(beat=beat))

        assert live_lease(project.store, SESSION, now=_NOW) is None
        Lease(project, SESSION).give_back()


def test_a_lease_of_another_machine_with_a_fresh_beat_holds(root):
    with open_project(root, actor="tester", clock=lambda: _NOW) as project:
        project.store.put(f"{SESSION}/.process/runner.json", lease())

        assert isinstance(live_lease(project.store, SESSION, now=_NOW), RunLease)
        with pytest.raises(Conflict, match="is being run by ada"):
            Lease(project, SESSION)


def test_lines_of_the_history_that_cannot_be_read_are_left_out_and_said(root):
    history = root / ".workflow/history.jsonl"
    history.write_bytes(b"not JSON\n" + history.read_bytes())

    given = answers(root, [("history",), ("doctor",), ("doctor", "--fix", "--yes")])

    assert given.codes == {"history": 0, "doctor": 1, "doctor --fix --yes": 0}
    assert "history.jsonl has lines that cannot be read" in given.output
    assert history.read_bytes().startswith(b"{")
    assert (root / ".workflow/history.jsonl.rejected-1").read_bytes().startswith(b"not JSON\n")


def test_a_file_in_the_place_of_a_directory_makes_way(root):
    folder = root / ".workflow" / SESSION / ".task"
    shutil.rmtree(folder)
    folder.write_text("kept")

    assert answers(root, [("task", "add", "another one"), ("doctor",)]).codes == {
        "task add another one": 0,
        "doctor": 0,
    }

    assert folder.is_dir()
    assert folder.with_name(".task.set-aside-1").read_text() == "kept"


def test_a_lock_that_may_not_be_opened_stays_the_same_file(root):
    """Another process may hold it."""
    lock = root / ".workflow/.lock"
    inode = lock.stat().st_ino
    lock.chmod(0)

    assert answers(root, [("task", "add", "another one")]).codes == {"task add another one": 0}
    assert (lock.stat().st_ino, lock.stat().st_mode & 0o777) == (inode, 0o600)
    assert os.access(lock, os.R_OK)
