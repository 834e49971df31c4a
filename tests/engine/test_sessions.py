"""Sessions side by side: going from one to another, and what that does to tasks, markers and documents."""

import json
import os

import pytest

from detent.core.session.session import SessionStatus
from detent.core.task.row import TaskStatus
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.errors import DetentError, Invalid, NotFound, Refused

FLOW = "plan-implement-review"


def opened(project, topic, tasks=1):
    handle = project.start(FLOW, topic)
    for number in range(tasks):
        handle.tasks.add(f"Task {number}")
    project.flush()
    return handle


def shown(project, name):
    return json.loads(project.store.get(f"{name}/workflow-session.json"))


def state_document(project):
    return json.loads(project.store.get("state.json"))


@pytest.fixture
def first(project):
    return opened(project, "first")


@pytest.fixture
def second(project, first):
    return opened(project, "second")


def test_there_is_one_marker_whatever_is_done(project, first, second):
    third = opened(project, "third")
    for act in (
        lambda: project.sessions.switch("first"),
        project.sessions.pause,
        lambda: project.sessions.resume("second"),
        lambda: second.complete(force=True),
        lambda: project.sessions.switch("third"),
        lambda: project.sessions.reopen("second"),
        lambda: third.cancel("no longer wanted"),
    ):
        act()
        project.flush()
        markers = project.store.names(".active-")
        assert len(markers) <= 1
        assert [name for name in markers if name != f".active-{project.active()}"] == []
        for one in (first, second, third):
            is_open = one.state.status is SessionStatus.ACTIVE
            wanted = "active" if one.id == project.active() else "paused" if is_open else str(one.state.status)
            assert shown(project, one.id)["status"] == wanted
        assert check(project) == []


def test_a_switch_pauses_the_one_and_resumes_the_other(project, first, second):
    claimed = second.tasks.start("IMPL-1")

    project.sessions.switch(first.id)

    assert (first.state.paused_at, second.state.paused_at is None) == (None, False)
    assert second.tasks.row("IMPL-1").status is TaskStatus.PENDING
    with pytest.raises(Refused):
        second.tasks.done("IMPL-1", "late", fence=claimed.fence)
    project.flush()
    assert state_document(project)["active_workflow"]["session_id"] == first.id


def test_a_switch_to_the_active_session_is_nothing(project, first, second):
    versions = [first.state.version, second.state.version]
    second.tasks.start("IMPL-1")

    assert project.sessions.switch(second.id).id == second.id

    assert [first.state.version, second.state.version - 1] == versions
    second.tasks.release("IMPL-1")


@pytest.mark.parametrize("text", ["", "  ", "nothing", "9", "0", "-1", "../first", "WFS-", "first/second"])
def test_a_switch_to_nothing_leaves_all_as_it_was(project, first, second, text):
    before = first.state, second.state, project.active()

    with pytest.raises((NotFound, Invalid)):
        project.sessions.switch(text)

    assert (first.state, second.state, project.active()) == before


def test_a_part_of_a_name_that_several_have_is_refused_with_all_of_them(project, first, second):
    with pytest.raises(Invalid) as refused:
        project.sessions.switch("WFS")

    assert first.id in refused.value.message
    assert second.id in refused.value.message


def test_a_session_that_ended_is_not_switched_to(project, first, second):
    second.cancel("no longer wanted")
    project.flush()
    project.sessions.switch(first.id)

    with pytest.raises(Refused) as refused:
        project.sessions.switch(second.id)

    assert refused.value.way_out == f"detent reopen {second.id}"
    assert project.active() == first.id


def test_pause_leaves_no_active_session_in_any_document(project, first):
    project.sessions.pause("lunch")
    project.flush()

    assert project.active() is None
    assert state_document(project)["active_workflow"] is None
    assert shown(project, first.id)["paused_at"]
    assert check(project) == []
    with pytest.raises(NotFound):
        project.session()


def test_work_goes_on_after_a_pause_where_it_stood(project, first):
    first.tasks.start("IMPL-1")
    project.sessions.pause()
    project.flush()

    with open_project(project.place.root, actor="another") as other:
        other.sessions.resume()
        handle = other.session()
        assert handle.state.phases["IMPLEMENT"].status == "in_progress"
        claimed = handle.tasks.start()
        assert (claimed.task, handle.tasks.row("IMPL-1").attempts) == ("IMPL-1", 2)
        handle.tasks.done("IMPL-1")
        assert handle.state.phases["REVIEW"].status == "in_progress"


@pytest.mark.parametrize("named", [True, False])
def test_resume_frees_a_task_whose_holder_is_gone(project, first, named):
    first.tasks.start("IMPL-1", pid=2**22 + 1)

    project.sessions.resume(first.id if named else None)

    assert first.tasks.row("IMPL-1").status == "pending"
    assert project.notices == ["given back, because their holders are gone: IMPL-1"]


def test_resume_without_anything_to_resume_says_so(project):
    with pytest.raises(NotFound):
        project.sessions.resume()


def test_resume_while_a_session_is_active_is_that_one(project, first, second):
    assert project.sessions.resume().id == second.id


def test_reopening_goes_to_the_last_phase_and_keeps_the_tasks(project, first):
    first.tasks.start("IMPL-1")
    first.tasks.done("IMPL-1", "done")
    first.finish("looked at")
    project.flush()
    assert project.active() is None

    handle = project.sessions.reopen("first", "look again")

    assert handle.state.phases["REVIEW"].status == "in_progress"
    assert handle.state.phases["REVIEW"].attempt == 2
    assert handle.tasks.row("IMPL-1").status is TaskStatus.COMPLETED
    project.flush()
    assert project.history() == []


def test_an_open_session_is_not_reopened(project, first):
    with pytest.raises(Refused):
        project.sessions.reopen("first")


def test_archived_sessions_are_out_of_sight_and_keep_everything(project, first, second):
    with pytest.raises(Refused):
        project.sessions.archive(first.id)
    second.complete(force=True)
    project.flush()
    files = sorted(project.store.names(f"{second.id}/"))

    project.sessions.archive(second.id)
    project.flush()

    assert [one.id for one in project.sessions.sessions()] == [first.id]
    assert {one.id for one in project.sessions.sessions(archived=True)} == {first.id, second.id}
    assert sorted(project.store.names(f"{second.id}/")) == files
    assert project.sessions.reopen(second.id).state.archived is False


def test_the_list_tells_what_stands_in_each(project, first, second):
    second.tasks.add("Another")
    second.tasks.start("IMPL-1", owner="me")
    second.tasks.done("IMPL-1")
    second.tasks.start("IMPL-2", owner="me")

    listed = {one.id: one for one in project.sessions.sessions()}

    told = listed[second.id]
    assert (told.status, told.tasks_done, told.tasks, told.phase) == ("active", 1, 2, "IMPLEMENT")
    assert {task: claim.owner for task, claim in told.claims.items()} == {"IMPL-2": "me"}
    assert (listed[first.id].status, listed[first.id].tasks) == ("paused", 1)
    second.tasks.release("IMPL-2")


def test_a_marker_made_by_hand_for_a_paused_session_makes_it_go_on(project, first, second):
    for name in project.store.names(".active-"):
        os.unlink(f"{project.place.state}/{name}")
    with open(f"{project.place.state}/.active-{first.id}", "w", encoding="utf-8"):
        pass

    project.reconcile()
    project.flush()

    assert project.active() == first.id
    assert first.state.paused_at is None
    assert [shown(project, one.id)["status"] for one in (first, second)] == ["active", "paused"]
    assert check(project) == []


def test_the_first_command_in_a_session_that_was_never_paused_properly_works(project, first):
    """A session from before there were pauses: no marker, and nothing in its journal that says so."""
    os.unlink(f"{project.place.state}/.active-{first.id}")

    handle = project.sessions.switch("first")

    assert handle.tasks.start("IMPL-1").task == "IMPL-1"
    handle.tasks.release("IMPL-1")


def test_a_damaged_session_stops_nobody(project, first, second):
    path = f"{project.place.state}/{first.id}/journal.jsonl"
    with open(path, "rb") as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(b"nonsense\n")
    try:
        with open_project(project.place.root, actor="another") as other:
            assert {one.id: one.status for one in other.sessions.sessions()} == {
                first.id: "damaged",
                second.id: "active",
            }
            with pytest.raises(DetentError):
                other.sessions.switch(first.id)
            assert other.active() == second.id
            other.sessions.pause()
            assert other.sessions.resume().id == second.id
    finally:
        with open(path, "wb") as file:
            file.write(whole)
