"""Documents, markers, history and snapshots can all be lost: the journal brings them back."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detent.core.session.evolve import fingerprint
from detent.core.session.session import decode_session, encode_session
from detent.core.session.status import Status
from detent.doctor import invariants
from detent.engine import journal as replica_module
from detent.engine.journal import SessionJournal
from detent.engine.project import open_project
from detent.engine.projections import write_behind
from detent.errors import Corrupt, Refused
from tests.support.project import build_project
from tests.support.values import TickingClock, row, workflow


def documents(directory):
    """Everything that is for reading, and that Detent wrote."""
    found = [*directory.glob(".workflow/*.json*"), *directory.glob(".workflow/WFS-*/*.json")]
    return {str(path.relative_to(directory)): path.read_bytes() for path in found if path.name != "snapshot.json"}


@pytest.fixture
def busy(project):
    """One session that ended, one that is paused, one that is active."""
    ended = project.start(row("a"), "first")
    ended.finish("done")
    project.flush()
    project.start(row("a", "b"), "second").finish("done")
    active = project.start(row("a", "b"), "third")
    project.flush()
    assert invariants.check(project) == []
    return active


def test_documents_are_written_when_the_project_is_closed(tmp_path):
    build_project(tmp_path)
    with open_project(tmp_path, actor="tester") as project:
        project.start(row("a", "b"), "try it").finish("done")

    state = json.loads((tmp_path / ".workflow/state.json").read_text())
    assert state["state_version"] == 2
    assert state["active_workflow"]["phase_status"] == {"a": "completed", "b": "pending"}


def test_documents_follow_shortly_without_anybody_asking(project, tmp_path, monkeypatch):
    import time

    handle = project.start(row("a", "b"), "try it")
    handle.finish("done")
    path = tmp_path / ".workflow/state.json"
    deadline = time.monotonic() + 60

    while json.loads(path.read_text())["state_version"] != 2 and time.monotonic() < deadline:
        time.sleep(0.02)

    assert json.loads(path.read_text())["state_version"] == 2


@pytest.mark.parametrize(
    "lost",
    [
        "state.json",
        ".documents.json",
        "WFS-third/workflow-session.json",
        "WFS-third/.documents.json",
    ],
)
def test_a_document_of_the_active_session_that_is_gone_comes_back(project, busy, tmp_path, lost):
    before = documents(tmp_path)
    (tmp_path / ".workflow" / lost).unlink()

    project.reconcile()
    project.flush()

    assert {name: text for name, text in documents(tmp_path).items() if ".documents" not in name} == {
        name: text for name, text in before.items() if ".documents" not in name
    }


@pytest.mark.parametrize("pattern", ["*.json", "WFS-*/*.json", "history.jsonl", "**/*.json*"])
def test_everything_but_the_journals_can_be_lost_and_comes_back(project, busy, tmp_path, pattern):
    before = documents(tmp_path)
    lost = [path for path in (tmp_path / ".workflow").glob(pattern) if path.name != "journal.jsonl"]
    assert lost
    for path in lost:
        path.unlink()
    assert invariants.check(project) != []

    assert invariants.fix(project) == []

    assert {name: json.loads(text) for name, text in documents(tmp_path).items() if name.endswith(".json")}.keys() == {
        name for name in before if name.endswith(".json")
    }
    assert documents(tmp_path)[".workflow/state.json"] == before[".workflow/state.json"]
    assert documents(tmp_path)[".workflow/history.jsonl"] == before[".workflow/history.jsonl"]


def test_documents_that_are_behind_are_brought_up_to_date(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    project.flush()
    old = documents(tmp_path)
    handle.finish("done")
    project.flush()
    new = documents(tmp_path)
    for name, text in old.items():
        (tmp_path / name).write_bytes(text)

    project.reconcile()
    project.flush()

    assert {name: text for name, text in documents(tmp_path).items() if ".documents" not in name} == {
        name: text for name, text in new.items() if ".documents" not in name
    }


def test_the_state_version_never_counts_down_from_session_to_session(project, tmp_path):
    seen = []
    for _ in range(3):
        handle = project.start(row("a"), "try it")
        project.flush()
        seen.append(json.loads((tmp_path / ".workflow/state.json").read_text())["state_version"])
        handle.finish("done")
        project.flush()
        seen.append(json.loads((tmp_path / ".workflow/state.json").read_text())["state_version"])

    assert seen == sorted(set(seen))


def test_a_paused_session_says_so_and_can_still_be_worked_on(project, busy, tmp_path):
    path = tmp_path / ".workflow/WFS-second/workflow-session.json"
    assert json.loads(path.read_text())["status"] == "paused"

    project.session("second").begin("b")
    project.flush()

    assert json.loads(path.read_text())["version"] == 3
    assert project.active() == "WFS-third"


def test_ending_a_paused_session_shows_in_the_state_document_of_the_active_one(project, busy, tmp_path):
    project.session("second").cancel("no longer wanted")
    project.flush()

    state = json.loads((tmp_path / ".workflow/state.json").read_text())
    assert [entry["session_id"] for entry in state["workflow_history"]] == ["WFS-first", "WFS-second"]
    assert state["active_workflow"]["session_id"] == "WFS-third"


# History


def test_an_ended_session_has_one_line_whatever_is_written_again(project, busy):
    for _ in range(3):
        project.reconcile()
        project.rebuild()

    assert [entry["session_id"] for entry in project.history()] == ["WFS-first"]


def test_a_line_that_lacks_something_is_replaced_by_a_whole_one(project, busy, tmp_path):
    path = tmp_path / ".workflow/history.jsonl"
    whole = project.history()
    path.write_text(json.dumps({"session_id": "WFS-first", "type": "trial"}, separators=(",", ":")) + "\n")

    assert invariants.fix(project) == []

    assert project.history() == whole


@pytest.mark.parametrize("rubbish", ["{half a line", "{}\n[]", "\x00\x01"])
def test_a_history_that_cannot_be_read_is_told_and_rebuilt(project, busy, tmp_path, rubbish):
    whole = project.history()
    (tmp_path / ".workflow/history.jsonl").write_text(rubbish)
    assert project.history() == [entry for entry in [{}] if rubbish.startswith("{}")]
    assert project.is_history_damaged()

    assert invariants.fix(project) == []

    assert project.history() == whole


def test_a_session_whose_task_mentions_another_session_does_not_take_its_line(project):
    project.start(row("a"), "first").finish("done")
    project.flush()

    project.start(row("a"), 'what about "session_id":"WFS-first" then', name="second").finish("done")
    project.flush()

    assert [entry["session_id"] for entry in project.history()] == ["WFS-first", "WFS-second"]


def test_sessions_end_in_the_history_in_the_order_in_which_they_ended(project):
    for name in ("zebra", "yak", "ant"):
        project.start(row("a"), name).finish("done")
        project.flush()

    project.store.delete("history.jsonl")
    invariants.fix(project)

    assert [entry["session_id"] for entry in project.history()] == ["WFS-zebra", "WFS-yak", "WFS-ant"]


# Markers


def test_a_marker_without_its_session_is_ignored_and_removed(project, busy, tmp_path):
    (tmp_path / ".workflow/.active-WFS-gone").touch()

    assert project.active() == "WFS-third"
    project.reconcile()

    assert [path.name for path in (tmp_path / ".workflow").glob(".active-*")] == [".active-WFS-third"]


def test_a_marker_without_its_session_is_removed_when_nothing_else_is_active(project, tmp_path):
    (tmp_path / ".workflow/.active-WFS-gone").touch()

    assert project.reconcile() == []

    assert list((tmp_path / ".workflow").glob(".active-*")) == []


def test_of_two_markers_that_people_made_at_once_the_session_with_the_latest_commit_counts(project, busy, tmp_path):
    (tmp_path / ".workflow/.active-WFS-third").unlink()
    for name in ("second", "third"):
        marker = tmp_path / f".workflow/.active-WFS-{name}"
        marker.touch()
        os.utime(marker, (0, 0))
    project.session("second").begin("b")

    assert project.active() == "WFS-second"
    project.reconcile()

    assert [path.name for path in (tmp_path / ".workflow").glob(".active-*")] == [".active-WFS-second"]


def test_a_new_session_is_the_active_one_even_if_the_clock_went_back(project, clock):
    project.start(row("a"), "first")
    clock.now = clock.now.replace(year=2020)

    project.start(row("a"), "another")

    assert project.active() == "WFS-another"


# Snapshots and replicas


@pytest.fixture
def snapshots(monkeypatch):
    """Every ten commits, and only when the test flushes."""
    monkeypatch.setattr(write_behind, "DELAY_S", 3_600)
    monkeypatch.setattr(replica_module, "SNAPSHOT_EVERY", 10)


@pytest.fixture
def long(project, snapshots):
    handle = project.start(row("a", "b"), "try it")
    for _ in range(12):
        handle.redo("a")
    project.flush()
    for _ in range(3):
        handle.redo("a")
    return handle


def fresh(project, handle):
    return SessionJournal(project.store, handle.id)


def test_a_snapshot_spares_reading_what_it_covers(project, long, monkeypatch):
    read, seen = project.store.read, []

    def counted(session, after, limit=5_000):
        tail = read(session, after, limit)
        seen.extend(commit.version for commit in tail.commits)
        return tail

    monkeypatch.setattr(project.store, "read", counted)

    assert fresh(project, long).session() == long.state
    assert min(seen) == 14


def test_a_snapshot_is_written_only_when_it_saves_enough(project, long, tmp_path):
    path = tmp_path / ".workflow" / long.id / "snapshot.json"
    first = path.read_bytes()

    project.flush()
    assert path.read_bytes() == first
    for _ in range(8):
        long.redo("a")
    project.flush()

    assert path.read_bytes() != first


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"",
        lambda text: b"rubbish",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace(b'"written_by":"', b'"written_by":"9'),
        lambda text: text.replace(b"in_progress", b"completed"),
    ],
    ids=["empty", "rubbish", "half", "of another version", "changed"],
)
def test_a_snapshot_that_is_odd_in_any_way_is_not_used(project, long, tmp_path, change):
    path = tmp_path / ".workflow" / long.id / "snapshot.json"
    changed = change(path.read_bytes())
    assert changed != path.read_bytes()
    path.write_bytes(changed)

    assert fresh(project, long).session() == long.state


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_in_a_snapshot_changes_nothing(project, long, tmp_path, place, bit):
    path = tmp_path / ".workflow" / long.id / "snapshot.json"
    whole = path.read_bytes()
    # The frame around the session is where a change could go unnoticed; look there most of the time.
    size = whole.index(b'"session":') if bit % 2 else len(whole)
    flipped = bytearray(whole)
    flipped[int(place * size)] ^= 1 << bit
    path.write_bytes(flipped)

    try:
        assert fresh(project, long).session() == long.state
    finally:
        path.write_bytes(whole)


def test_a_snapshot_of_a_journal_that_was_restored_from_a_backup_is_not_used(project, long, tmp_path):
    directory = tmp_path / ".workflow" / long.id
    lines = (directory / "journal.jsonl").read_bytes().splitlines(keepends=True)
    project.close()
    (directory / "journal.jsonl").write_bytes(b"".join(lines[:5]))

    with open_project(tmp_path, actor="tester", clock=TickingClock()) as reopened:
        reopened.store.repairs.forget(long.id)
        assert reopened.session().state.version == 5
        assert reopened.session().redo("a").version == 6
    (directory / "journal.jsonl").write_bytes(b"".join(lines))
    (directory / "snapshot.json").unlink()
    project.store.repairs.forget(long.id)
    invariants.fix(project)


def test_a_project_kept_open_notices_that_its_journal_was_replaced(tmp_path):
    build_project(tmp_path)
    with open_project(tmp_path, actor="tester") as project:
        handle = project.start(row("a", "b"), "try it")
        handle.finish("done")
        project.flush()
        path = tmp_path / ".workflow" / handle.id / "journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        with path.open("r+b") as file:
            file.truncate(len(lines[0]))

        with pytest.raises(Corrupt, match="cut or replaced"):
            handle.begin("b")

        assert path.read_bytes() == lines[0]
        path.write_bytes(b"".join(lines))


def test_a_journal_that_cannot_be_followed_stops_every_command_at_the_same_place(tmp_path):
    """Written by other rules: whole lines, but a commit that today's table does not know."""
    from detent.core.session.events import PhaseFinished
    from detent.store.port import START
    from tests.support.values import NOON, commit

    build_project(tmp_path)
    with open_project(tmp_path, actor="tester") as project:
        handle = project.start(row("a", "b"), "try it")
        project.flush()
        end = project.store.read(handle.id, START).end
        impossible = commit(2, PhaseFinished(phase="b", attempt=1, summary="x"), at=NOON)
        project.store.append(handle.id, end, impossible)

        for _ in range(3):
            with pytest.raises(Corrupt, match="cannot follow for phase b"):
                handle.fail("broke")
            with pytest.raises(Corrupt, match="cannot follow for phase b"):
                handle.state  # noqa: B018

        assert "I1" in [finding.invariant for finding in invariants.check(project)]
        assert len((tmp_path / ".workflow" / handle.id / "journal.jsonl").read_bytes().splitlines()) == 2


def test_an_empty_journal_is_corruption_in_words(tmp_path):
    build_project(tmp_path)
    with open_project(tmp_path, actor="tester") as project:
        handle = project.start(workflow(prefix="REQ"), "try it")
        project.flush()
        path = tmp_path / ".workflow" / handle.id / "journal.jsonl"
        path.write_bytes(b"")

        with open_project(tmp_path, actor="tester") as other:
            with pytest.raises(Corrupt, match="ends at commit 0, and its second copy at commit 1"):
                other.session().state  # noqa: B018
            other.store.repairs.forget(handle.id)
            with pytest.raises(Corrupt, match="no whole commit"):
                other.session().state  # noqa: B018
            other.start(workflow(prefix="REQ"), "another")
            assert [finding.subject for finding in invariants.check(other)] == [handle.id]
        project._touched.clear()


def test_a_refused_command_writes_nothing(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    project.flush()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    with pytest.raises(Refused):
        handle.begin("b")
    project.flush()

    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_two_projects_opened_on_the_same_directory_see_each_other(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")

    with open_project(tmp_path, actor="other") as other:
        other.session().finish("done")

    assert handle.state.phases["a"].status is Status.COMPLETED
    assert handle.begin("b").token.fence == 3


def test_the_fingerprint_in_the_journal_is_of_the_state_in_memory(project):
    handle = project.start(row("a", "b"), "try it")

    handle.finish("done")

    assert list(handle.log())[-1].state == fingerprint(handle.state)
    assert decode_session(encode_session(handle.state)) == handle.state
