"""Documents that a person edited by hand: understood and adopted, or refused with every reason and kept."""

import json

import pytest

from detent.core.session.events import (
    CheckpointTaken,
    DocumentAdopted,
    PhaseBegun,
    PhaseFailed,
    PhaseFinished,
    SessionCompleted,
)
from detent.core.session.status import Status
from detent.doctor.invariants import check
from detent.engine.outside import pending_edits
from detent.engine.project import open_project
from tests.support.values import diamond, row


@pytest.fixture
def handle(project):
    started = project.start(row("a", "b"), "try it")
    project.flush()
    return started


@pytest.fixture
def state_file(project, tmp_path):
    return tmp_path / ".workflow/state.json"


def edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document, indent=4))
    return path.read_bytes()


def set_status(key, status, **record):
    def change(document):
        document["phases"][key] |= {"status": status, **record}
        document["active_workflow"]["phase_status"][key] = status

    return change


def kept_texts(path):
    return [kept.read_bytes() for kept in sorted(path.parent.glob("state.json.rejected-*"))]


def test_a_phase_marked_completed_is_finished_with_what_was_written(project, handle, state_file):
    edit(state_file, set_status("a", "completed", summary="done by hand", artifacts=["x.md"]))

    (adoption,) = project.reconcile()

    assert adoption.adopted
    state = handle.state.phases["a"]
    assert (state.status, state.summary, state.artifacts) == (Status.COMPLETED, "done by hand", ("x.md",))
    last = list(handle.log())[-1]
    assert [type(event) for event in last.events] == [DocumentAdopted, PhaseFinished, CheckpointTaken]
    assert last.by == "tester"


def test_the_document_says_the_same_in_every_field_after_an_edit_of_one(project, handle, state_file):
    edit(state_file, lambda document: document["phases"]["a"].update(status="completed"))

    project.reconcile()

    document = json.loads(state_file.read_text())
    assert document["active_workflow"]["phase_status"]["a"] == "completed"
    assert document["active_workflow"]["current_phase_index"] == 1
    assert document["state_version"] == 2


@pytest.mark.parametrize("place", ["record", "summary map"])
def test_either_mirror_is_enough_to_say_what_is_meant(project, handle, state_file, place):
    def change(document):
        if place == "record":
            document["phases"]["a"]["status"] = "failed"
        else:
            document["active_workflow"]["phase_status"]["a"] = "failed"

    edit(state_file, change)

    (adoption,) = project.reconcile()

    assert adoption.adopted
    assert handle.state.phases["a"].status is Status.FAILED


def test_a_pending_phase_marked_completed_was_begun_and_finished(project, handle, state_file):
    handle.finish("done")
    project.flush()
    edit(state_file, set_status("b", "completed"))

    project.reconcile()

    last = list(handle.log())[-1]
    assert [type(event) for event in last.events] == [
        DocumentAdopted,
        PhaseBegun,
        CheckpointTaken,
        PhaseFinished,
        SessionCompleted,
        CheckpointTaken,
    ]
    assert project.active() is None
    assert len(project.history()) == 1


def test_several_phases_may_be_edited_at_once(project, state_file):
    handle = project.start(diamond(), "try it")
    project.flush()

    def change(document):
        for key, status in (("a", "completed"), ("b", "completed"), ("c", "failed")):
            set_status(key, status)(document)

    edit(state_file, change)

    (adoption,) = project.reconcile()

    assert adoption.adopted
    assert [str(handle.state.phases[key].status) for key in "abcd"] == ["completed", "completed", "failed", "pending"]
    assert [type(event) for event in list(handle.log())[-1].events][-2:] == [PhaseFailed, CheckpointTaken]


def test_an_edit_that_only_changes_the_layout_is_taken_without_a_commit(project, handle, state_file):
    state_file.write_text(json.dumps(json.loads(state_file.read_text())))

    (adoption,) = project.reconcile()

    assert adoption.adopted
    assert handle.state.version == 1
    assert kept_texts(state_file) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_status("b", "completed"), "b waits for a"),
        (set_status("a", "pending"), "V8"),
        (lambda document: document.update(state_version=0), "V7"),
        (lambda document: document.pop("state_version"), "V7"),
        (lambda document: document.update(active_workflow=None), "use detent cancel"),
        (lambda document: document.update(my_note="hello"), "my_note"),
        (lambda document: document["active_workflow"].update(description="other"), "active_workflow.description"),
        (lambda document: document["active_workflow"].pop("phases"), "cannot remove this"),
        (lambda document: document["phases"].pop("b"), "phases.b"),
        (lambda document: document["phases"]["a"].update(status="teleported"), "phases.a.status"),
        (
            lambda document: document["phases"]["a"].update(constitutional_validation={"completed": True}),
            "phases.a.constitutional_validation.completed: an edit cannot set this",
        ),
        (
            lambda document: document["phases"]["a"].update(
                iteration_requirements={"test_iteration": {"history": [1]}}
            ),
            "phases.a.iteration_requirements.test_iteration.history",
        ),
        (lambda document: document["phases"]["a"].update(artifacts=["../../etc/passwd"]), "artifacts"),
    ],
)
def test_an_edit_that_cannot_be_is_refused_with_a_reason_and_kept(project, handle, state_file, change, reason):
    before = state_file.read_bytes()
    written = edit(state_file, change)

    (adoption,) = project.reconcile()

    assert not adoption.adopted
    assert any(reason in text for text in adoption.reasons), adoption.reasons
    assert kept_texts(state_file) == [written]
    assert state_file.read_bytes() == before
    assert handle.state.version == 1


def test_every_reason_is_told_at_once(project, handle, state_file):
    def change(document):
        document["my_note"] = "hello"
        document["active_workflow"]["description"] = "other"
        document["current_phase"] = "z"

    edit(state_file, change)

    (adoption,) = project.reconcile()

    assert len(adoption.reasons) == 3


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"3",
        b'"text"',
        b"{}",
        b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    ],
    ids=["empty", "cut", "no utf-8", "list", "null", "number", "string", "empty object", "deep", "deep object"],
)
def test_a_document_that_is_no_state_at_all_is_kept_and_replaced(project, handle, state_file, text):
    before = state_file.read_bytes()
    state_file.write_bytes(text)

    (adoption,) = project.reconcile()

    assert not adoption.adopted
    assert kept_texts(state_file) == [text]
    assert state_file.read_bytes() == before


def test_the_same_edit_made_twice_is_refused_twice_and_kept_once(project, handle, state_file):
    before = state_file.read_bytes()

    for _ in range(2):
        state_file.write_bytes(b"not json")
        (adoption,) = project.reconcile()

        assert adoption.reasons
        assert state_file.read_bytes() == before

    assert kept_texts(state_file) == [b"not json"]


def test_different_refused_edits_are_all_kept(project, handle, state_file):
    texts = [b"one", b"two", b"three"]

    for text in texts:
        state_file.write_bytes(text)
        project.reconcile()

    assert kept_texts(state_file) == texts


def test_an_edit_of_a_document_that_the_session_has_left_behind_is_refused(project, handle, state_file):
    written = edit(state_file, set_status("a", "completed"))
    handle.fail("broke")

    (adoption,) = project.reconcile()

    assert any("V7" in reason for reason in adoption.reasons)
    assert kept_texts(state_file) == [written]
    assert handle.state.phases["a"].status is Status.FAILED


def test_a_command_leaves_an_edited_document_alone_until_it_is_adopted(project, handle, state_file):
    written = edit(state_file, set_status("a", "completed"))

    handle.redo("a")
    project.flush()

    assert state_file.read_bytes() == written
    assert pending_edits(project) == ["state.json"]
    assert any("state.json was edited by hand" in notice for notice in project.notices)
    assert [finding.invariant for finding in check(project)] == ["I2"]
    project.reconcile()
    assert kept_texts(state_file) == [written]


def test_the_session_document_only_shows_and_an_edit_of_it_is_kept(project, handle, tmp_path):
    path = tmp_path / ".workflow" / handle.id / "workflow-session.json"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"in_progress", b"completed"))

    (adoption,) = project.reconcile()

    assert "only shows the session" in adoption.reasons[0]
    assert path.read_bytes() == before
    kept = tmp_path / ".workflow" / adoption.kept
    assert b"completed" in kept.read_bytes()
    assert handle.state.version == 1


def test_an_edit_that_is_pending_when_the_session_ends_is_kept(project, handle, state_file):
    written = edit(state_file, set_status("a", "completed", summary="mine"))

    handle.cancel("no longer wanted")
    project.flush()

    assert kept_texts(state_file) == [written]
    assert json.loads(state_file.read_text())["active_workflow"] is None
    assert any("state.json.rejected-1" in notice for notice in project.notices)


def test_a_state_document_from_before_is_not_lost_when_the_first_session_starts(project, state_file):
    state_file.write_bytes(b'{"mine": true}')

    project.start(row("a"), "try it")
    project.reconcile()

    assert kept_texts(state_file) == [b'{"mine": true}']
    assert json.loads(state_file.read_text())["state_version"] == 1


def test_an_edit_is_not_lost_when_another_session_starts(project, handle, state_file):
    written = edit(state_file, set_status("a", "completed"))

    project.start(row("x"), "another thing")
    project.reconcile()

    assert kept_texts(state_file) == [written]


def test_without_its_ledger_a_document_that_is_right_is_taken_as_it_is(project, handle, state_file):
    (state_file.parent / ".documents.json").write_text("rubbish")

    (adoption,) = project.reconcile()

    assert adoption.adopted
    assert handle.state.version == 1


def test_an_edit_is_found_by_the_next_process(project, handle, state_file, tmp_path):
    project.close()
    edit(state_file, set_status("a", "completed"))

    with open_project(tmp_path, actor="somebody") as other:
        (adoption,) = other.reconcile()

    assert adoption.adopted
    assert handle.state.phases["a"].status is Status.COMPLETED
    assert list(handle.log())[-1].by == "somebody"
