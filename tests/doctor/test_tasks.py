"""The doctor of tasks: what it finds, what it mends, and that it never takes away what a person wrote."""

import json
import os
import shutil
from datetime import timedelta

import pytest

from detent.core.session.events import TaskMoved, TaskRemoved, TaskWritten
from detent.core.task.document import new_document
from detent.core.task.lifecycle import Action
from detent.core.task.row import TaskStatus
from detent.doctor.invariants import fix
from detent.doctor.markers import fix_markers
from detent.doctor.tasks import check_tasks, fix_tasks
from tests.support.values import actor

FLOW = "plan-implement-review"


@pytest.fixture
def handle(project):
    handle = project.start(FLOW, "Try it")
    for title in ("One", "Two", "Three"):
        handle.tasks.add(title)
    project.flush()
    return handle


@pytest.fixture
def folder(project, handle):
    return project.place.state + f"/{handle.id}/.task"


@pytest.fixture(autouse=True)
def _clean_afterwards(project):
    """Whatever a test did, one repair is enough, and a second one has nothing to do."""
    yield
    project.flush()
    fix_markers(project)
    for name in project.store.sessions():
        fix_tasks(project, name)
    assert fix_markers(project) == []
    for name in project.store.sessions():
        assert fix_tasks(project, name) == []
        assert list(check_tasks(project, name)) == []


def commit(project, handle, *events):
    """What no command would lead to, as a journal of other origin could hold it."""
    project.journal(handle.id).commit(lambda _: events, actor=actor("elsewhere"), now=project.clock())
    project.touched(handle.id)
    project.flush()


def found(project, handle):
    return {(finding.invariant, finding.subject.rpartition("/")[2]) for finding in check_tasks(project, handle.id)}


def read(folder, name):
    with open(f"{folder}/{name}", "rb") as file:
        return file.read()


def write(folder, name, data):
    with open(f"{folder}/{name}", "wb") as file:
        file.write(data)


def everything_kept(project):
    """All bytes that stand anywhere in the project's state."""
    for directory, _, names in os.walk(project.place.state):
        for name in names:
            with open(os.path.join(directory, name), "rb") as file:
                yield file.read()


def test_a_session_as_detent_wrote_it_has_no_finding(project, handle):
    assert list(check_tasks(project, handle.id)) == []
    assert fix_tasks(project, handle.id) == []


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe{}", b"[]", b"null", b"{" * 100_000])
def test_a_task_file_that_cannot_be_read_is_kept_and_restored(project, handle, folder, text):
    before = read(folder, "IMPL-1.json")
    write(folder, "IMPL-1.json", text)
    assert found(project, handle) == {("I8", "IMPL-1.json")}

    told = fix_tasks(project, handle.id)

    assert len(told) == 1
    assert "IMPL-1.json" in told[0]
    assert json.loads(read(folder, "IMPL-1.json")) | {"_detent": 0} == json.loads(before) | {"_detent": 0}
    assert read(folder, "IMPL-1.json.corrupt-1") == text
    assert handle.tasks.row("IMPL-1").title == "One"


def test_a_missing_file_is_written_again(project, handle, folder):
    os.unlink(f"{folder}/IMPL-2.json")
    assert found(project, handle) == {("I8", "IMPL-2.json")}

    fix_tasks(project, handle.id)

    assert json.loads(read(folder, "IMPL-2.json"))["title"] == "Two"


def test_an_old_copy_of_a_file_is_found_and_the_journal_wins(project, handle, folder):
    old = read(folder, "IMPL-1.json")
    handle.tasks.replan("IMPL-1", {"title": "Newer"}, reason="better")
    project.flush()
    write(folder, "IMPL-1.json", old)
    assert found(project, handle) == {("I8", "IMPL-1.json")}

    fix_tasks(project, handle.id)

    assert json.loads(read(folder, "IMPL-1.json"))["title"] == "Newer"
    assert handle.tasks.document("IMPL-1")["title"] == "Newer"


def test_a_file_that_was_copied_over_another_is_found_and_the_journal_wins(project, handle, folder):
    shutil.copy(f"{folder}/IMPL-1.json", f"{folder}/IMPL-2.json")
    assert found(project, handle) == {("I8", "IMPL-2.json")}

    fix_tasks(project, handle.id)

    assert json.loads(read(folder, "IMPL-2.json"))["title"] == "Two"


def test_a_renamed_file_is_written_again_under_its_name_and_the_other_is_kept(project, handle, folder):
    text = read(folder, "IMPL-1.json")
    os.rename(f"{folder}/IMPL-1.json", f"{folder}/IMPL-9.json")
    assert found(project, handle) == {("I8", "IMPL-1.json"), ("I8", "IMPL-9.json")}

    fix_tasks(project, handle.id)

    assert [row.id for row in handle.tasks.rows()] == ["IMPL-1", "IMPL-2", "IMPL-3"]
    assert not os.path.exists(f"{folder}/IMPL-9.json")
    assert text in list(everything_kept(project))


def test_a_pending_edit_is_a_warning_and_is_adopted(project, handle, folder):
    document = json.loads(read(folder, "IMPL-1.json"))
    write(folder, "IMPL-1.json", json.dumps(document | {"title": "By hand"}).encode())

    (finding,) = check_tasks(project, handle.id)
    assert (finding.severity, finding.way_out) == ("warning", "detent adopt")
    assert fix_tasks(project, handle.id) == [f"adopted the edit of {handle.id}/.task/IMPL-1.json"]

    assert handle.tasks.row("IMPL-1").title == "By hand"


def test_an_edit_that_is_set_aside_is_told_with_its_reason(project, handle, folder):
    document = json.loads(read(folder, "IMPL-1.json"))
    write(folder, "IMPL-1.json", json.dumps(document | {"title": ""}).encode())

    fix(project)

    [told] = [notice for notice in project.notices if "IMPL-1.json" in notice]
    assert "was not adopted and is kept as" in told
    assert "title" in told


def test_an_edit_of_a_session_that_ended_is_kept_beside_and_changes_nothing(project, handle, folder):
    handle.complete(force=True)
    project.flush()
    text = read(folder, "IMPL-1.json").replace(b"One", b"A person wrote this")
    write(folder, "IMPL-1.json", text)

    fix_tasks(project, handle.id)

    assert handle.tasks.row("IMPL-1").title == "One"
    assert text in list(everything_kept(project))


def test_views_that_are_missing_are_written_again(project, handle):
    for view in ("TODO_LIST.md", "IMPL_PLAN.md"):
        os.unlink(f"{project.place.state}/{handle.id}/{view}")
    assert found(project, handle) == {("I8", "TODO_LIST.md"), ("I8", "IMPL_PLAN.md")}

    fix_tasks(project, handle.id)

    assert found(project, handle) == set()


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"session_id": "WFS-other"}', b"\xff"])
def test_a_session_file_that_cannot_be_read_is_kept_as_corrupt_and_rebuilt(project, handle, text):
    path = f"{project.place.state}/{handle.id}/workflow-session.json"
    with open(path, "wb") as file:
        file.write(text)

    fix_tasks(project, handle.id)

    with open(path, "rb") as file:
        document = json.load(file)
    assert (document["session_id"], document["project"], document["status"]) == (handle.id, "Try it", "active")
    with open(f"{path}.corrupt-1", "rb") as file:
        assert file.read() == text


def test_a_session_file_that_is_missing_is_rebuilt(project, handle):
    path = f"{project.place.state}/{handle.id}/workflow-session.json"
    os.unlink(path)

    fix_tasks(project, handle.id)

    with open(path, "rb") as file:
        assert json.load(file)["progress"] == {"completed_phases": [], "current_tasks": []}


def test_a_task_whose_holder_died_is_given_back_and_its_attempt_is_counted(project, handle):
    handle.tasks.start("IMPL-1", owner="worker", pid=2**22 + 1)
    project.flush()
    (finding,) = check_tasks(project, handle.id)
    assert (finding.invariant, finding.severity) == ("I9", "warning")
    assert "worker is gone" in finding.message

    assert fix_tasks(project, handle.id) == ["give IMPL-1 back: worker is gone"]

    row = handle.tasks.row("IMPL-1")
    assert (row.status, row.attempts) == (TaskStatus.PENDING, 1)
    assert handle.state.claims == {}


def test_a_task_in_progress_whose_lease_ran_out_is_given_back_and_one_that_beats_is_not(project, handle, clock):
    handle.tasks.start("IMPL-1", lease_s=60)
    alive = handle.tasks.start("IMPL-2", lease_s=60)
    clock.now += timedelta(seconds=300)
    handle.tasks.beat("IMPL-2", alive.fence)

    fix_tasks(project, handle.id)

    assert handle.tasks.row("IMPL-1").status is TaskStatus.PENDING
    assert handle.tasks.row("IMPL-2").status is TaskStatus.ACTIVE
    handle.tasks.done("IMPL-2", fence=alive.fence)


def test_an_abandoned_task_with_a_summary_stays_as_it_is(project, handle):
    handle.tasks.start("IMPL-1", owner="worker", pid=2**22 + 1)
    os.makedirs(f"{project.place.state}/{handle.id}/.summaries")
    with open(f"{project.place.state}/{handle.id}/.summaries/IMPL-1-summary.md", "w", encoding="utf-8") as file:
        file.write("all of it\n")
    project.flush()

    (finding,) = check_tasks(project, handle.id)
    assert fix_tasks(project, handle.id) == []
    assert handle.tasks.row("IMPL-1").status is TaskStatus.ACTIVE

    assert finding.way_out == "detent task release IMPL-1"
    handle.tasks.release("IMPL-1")
    project.flush()
    assert list(check_tasks(project, handle.id)) == []


def test_a_task_in_progress_that_nobody_holds_is_an_error_and_is_given_back(project, handle):
    commit(project, handle, TaskMoved(task="IMPL-1", action=Action.START, status=TaskStatus.ACTIVE))
    (finding,) = check_tasks(project, handle.id)
    assert (finding.invariant, finding.severity) == ("I9", "error")

    fix_tasks(project, handle.id)

    assert handle.tasks.row("IMPL-1").status is TaskStatus.PENDING


def test_a_container_without_parts_is_a_task_again(project, handle):
    commit(project, handle, TaskMoved(task="IMPL-1", action=Action.SPLIT, status=TaskStatus.CONTAINER))
    assert found(project, handle) == {("I8", handle.id)}

    assert fix_tasks(project, handle.id) == ["make IMPL-1 a task again, which has no parts"]

    assert handle.tasks.row("IMPL-1").status is TaskStatus.PENDING


def test_a_task_with_parts_becomes_their_container(project, handle):
    commit(project, handle, TaskWritten(task="IMPL-1.1", document=new_document("IMPL-1.1", "A part")))
    assert found(project, handle) == {("I8", handle.id)}

    assert fix_tasks(project, handle.id) == ["make IMPL-1 a container, which has parts"]

    assert handle.tasks.row("IMPL-1").status is TaskStatus.CONTAINER


def test_a_parent_that_is_gone_is_rebuilt_from_its_parts(project, handle):
    handle.tasks.split("IMPL-1", ["A part", "Another"])
    commit(project, handle, TaskRemoved(task="IMPL-1"))
    assert found(project, handle) == {("I8", handle.id)}

    told = fix_tasks(project, handle.id)

    assert told == ["make IMPL-1 again, of which IMPL-1.1 is a part"]
    assert handle.tasks.row("IMPL-1").status is TaskStatus.CONTAINER
    assert handle.state.tasks.children("IMPL-1") == ("IMPL-1.1", "IMPL-1.2")


def test_a_task_with_parts_that_was_already_worked_on_is_reported_and_left(project, handle):
    handle.tasks.start("IMPL-1")
    commit(project, handle, TaskWritten(task="IMPL-1.1", document=new_document("IMPL-1.1", "A part")))

    assert fix_tasks(project, handle.id) == []
    assert found(project, handle) == {("I8", handle.id)}

    handle.tasks.release("IMPL-1")
    assert fix_tasks(project, handle.id) == ["make IMPL-1 a container, which has parts"]


def test_a_dependency_that_does_not_exist_is_removed_and_logged(project, handle):
    document = handle.tasks.document("IMPL-1")
    document["context"]["depends_on"] = ["IMPL-2", "IMPL-7"]
    commit(project, handle, TaskWritten(task="IMPL-1", document=document))
    assert found(project, handle) == {("I8", handle.id)}

    told = fix_tasks(project, handle.id)

    assert told == ["IMPL-1 no longer depends on IMPL-7, which does not exist"]
    assert handle.tasks.row("IMPL-1").depends_on == ("IMPL-2",)
    last = list(handle.log())[-1].events[-1]
    assert isinstance(last, TaskWritten)
    assert last.reason == told[0]


def test_a_circle_is_reported_for_a_person_to_open(project, handle):
    for own, other in (("IMPL-1", "IMPL-2"), ("IMPL-2", "IMPL-1")):
        document = handle.tasks.document(own)
        document["context"]["depends_on"] = [other]
        commit(project, handle, TaskWritten(task=own, document=document))

    (finding,) = check_tasks(project, handle.id)
    assert "in a circle: IMPL-1 -> IMPL-2 -> IMPL-1" in finding.message
    assert fix_tasks(project, handle.id) == []

    handle.tasks.replan("IMPL-1", {"context": {"depends_on": []}}, reason="open the circle")


def test_dry_run_tells_the_same_and_changes_nothing(project, handle, folder):
    write(folder, "IMPL-1.json", b"{")
    os.unlink(f"{folder}/IMPL-2.json")
    handle.tasks.start("IMPL-3", owner="worker", pid=2**22 + 1)
    project.flush()
    before = sorted(everything_kept(project))

    would = fix_tasks(project, handle.id, dry_run=True)

    assert sorted(everything_kept(project)) == before
    assert len(would) == 3
    assert fix_tasks(project, handle.id) == would


def test_a_marker_of_no_session_is_removed(project, handle):
    project.store.put(".active-WFS-gone", b"")

    assert fix_markers(project, dry_run=True) == ["remove .active-WFS-gone: there is no such session"]
    assert fix_markers(project) == ["remove .active-WFS-gone: there is no such session"]

    assert project.store.names(".active-") == [f".active-{handle.id}"]


def test_of_several_markers_one_stays_and_the_other_sessions_are_paused(project, handle):
    other = project.start(FLOW, "Another")
    project.flush()
    project.store.put(f".active-{handle.id}", b"")
    active = project.active()

    fix_markers(project)

    assert project.store.names(".active-") == [f".active-{active}"]
    paused = handle if active == other.id else other
    assert paused.state.paused_at is not None
    with open(f"{project.place.state}/{paused.id}/workflow-session.json", "rb") as file:
        assert json.load(file)["status"] == "paused"


def test_a_session_whose_marker_was_removed_is_paused_and_one_that_was_marked_goes_on(project, handle):
    handle.tasks.start("IMPL-1")
    project.flush()
    project.store.delete(f".active-{handle.id}")

    fix_markers(project)
    assert handle.state.paused_at is not None
    assert handle.tasks.row("IMPL-1").status is TaskStatus.PENDING
    project.store.put(f".active-{handle.id}", b"")
    fix_markers(project)

    assert handle.state.paused_at is None
    assert project.active() == handle.id


def test_the_marker_of_a_session_that_ended_is_removed(project, handle):
    handle.complete(force=True)
    project.flush()
    project.store.put(f".active-{handle.id}", b"")

    assert fix_markers(project) == [f"remove .active-{handle.id}: the session has ended"]

    assert project.active() is None
