"""Tasks as the library gives them: what is told back, who holds what, and what a refusal says."""

import os
from datetime import timedelta

import pytest

from detent.core.session.events import TaskMoved
from detent.core.task.document import new_document
from detent.core.task.row import TaskStatus
from detent.core.task.split import ChildDraft
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.engine.projections import task_files
from detent.engine.tasks.tasks import MAX_SUMMARY_BYTES
from detent.errors import DetentError, Invalid, NotFound, Refused
from tests.support.values import written_tasks

FLOW = "plan-implement-review"
DEAD = 2**22 + 1


@pytest.fixture
def tasks(project):
    return project.start(FLOW, "Try it").tasks


@pytest.fixture
def three(tasks):
    for title in ("One", "Two", "Three"):
        tasks.add(title)
    return tasks


def test_add_gives_numbers_in_a_row_and_a_pending_task(tasks):
    assert [written_tasks(tasks.add(title)) for title in ("One", "Two")] == [["IMPL-1"], ["IMPL-2"]]

    assert {(row.status, row.attempts, row.version) for row in tasks.rows()} == {(TaskStatus.PENDING, 0, 1)}


@pytest.mark.parametrize("spelling", ["IMPL-2", "impl-2", "IMPL-002", "Impl-02"])
def test_any_spelling_of_an_id_finds_the_task(three, spelling):
    assert three.row(spelling).title == "Two"
    assert three.document(spelling)["id"] == "IMPL-2"
    claimed = three.start(spelling)
    assert claimed.task == "IMPL-2"
    three.done(spelling, "all", fence=claimed.fence)
    assert three.summary(spelling) == "all\n"


@pytest.mark.parametrize("task", ["IMPL-9", "IMPL-1.1"])
@pytest.mark.parametrize(
    "command",
    ["row", "document", "start", "done", "unblock", "retry", "release", "reopen", "remove", "resume", "context"],
)
def test_a_task_that_does_not_exist_is_said_to_be_missing(three, command, task):
    with pytest.raises(NotFound, match=task):
        getattr(three, command)(task)


@pytest.mark.parametrize("task", ["", "IMPL", "TASK-1", "IMPL-0", "IMPL-1.2.3", "../IMPL-1", "IMPL-1/../x"])
@pytest.mark.parametrize("command", ["row", "document", "start", "done", "remove", "summary"])
def test_what_is_no_id_is_refused(three, command, task):
    with pytest.raises(Invalid):
        getattr(three, command)(task)


@pytest.mark.parametrize("title", ["", "  ", "x" * 1001, "nul\0"])
def test_a_title_must_be_a_text(tasks, title):
    with pytest.raises(Invalid):
        tasks.add(title)


@pytest.mark.parametrize("title", ["two\nlines", "tab\there", " blanks  around "])
def test_a_title_becomes_one_line(tasks, title):
    tasks.add(title)

    assert tasks.row("IMPL-1").title == " ".join(title.split())


def test_write_is_all_or_nothing(three):
    documents = [new_document("IMPL-4", "Four"), new_document("IMPL-5", "Five", depends_on=["IMPL-99"])]

    with pytest.raises(Invalid, match="IMPL-99"):
        three.write(documents)

    assert len(three.rows()) == 3


def test_write_can_be_told_to_add_or_to_change_only(three):
    with pytest.raises(Invalid, match="already"):
        three.write([new_document("IMPL-1", "Again")], new=True)
    with pytest.raises(Invalid, match="no task"):
        three.write([new_document("IMPL-4", "Four")], new=False)

    three.write([new_document("IMPL-1", "Again"), new_document("IMPL-4", "Four")])

    assert [three.row(task).title for task in ("IMPL-1", "IMPL-4")] == ["Again", "Four"]


def test_two_documents_of_one_task_in_one_write_are_refused(tasks):
    with pytest.raises(Invalid):
        tasks.write([new_document("IMPL-1", "One"), new_document("IMPL-1", "Another")], new=True)


@pytest.mark.parametrize("status", ["active", "failed"])
def test_a_task_does_not_begin_in_the_middle(tasks, status):
    with pytest.raises(Invalid):
        tasks.write([new_document("IMPL-1", "One") | {"status": status}])


def test_changing_a_task_does_not_forget_how_often_it_was_tried(three):
    claimed = three.start("IMPL-1")
    document = {key: value for key, value in three.document("IMPL-1").items() if key != "execution"}

    three.write([document | {"title": "Changed"}])

    row = three.row("IMPL-1")
    assert (row.title, row.status, row.attempts) == ("Changed", TaskStatus.ACTIVE, 1)
    three.done("IMPL-1", fence=claimed.fence)


def test_replanning_merges_objects_and_raises_the_version(three):
    three.replan("IMPL-1", {"context": {"acceptance": ["it works"]}}, reason="more")
    three.replan("IMPL-1", {"context": {"requirements": ["this"]}}, reason="and more")

    document = three.document("IMPL-1")
    assert (document["context"]["acceptance"], document["context"]["requirements"]) == (["it works"], ["this"])
    assert document["version"] == 3


def test_next_follows_dependencies_and_then_numbers(tasks):
    tasks.add("One")
    tasks.add("Two")
    tasks.replan("IMPL-1", {"context": {"depends_on": ["IMPL-2"]}}, reason="order")

    assert tasks.next().id == "IMPL-2"
    assert tasks.start().task == "IMPL-2"
    assert tasks.next() is None
    with pytest.raises(NotFound, match="1 in progress, 1 waiting"):
        tasks.start()
    tasks.done("IMPL-2")
    assert tasks.start().task == "IMPL-1"
    tasks.done("IMPL-1")
    with pytest.raises(NotFound, match="all tasks are done"):
        tasks.start()


def test_without_tasks_there_is_nothing_to_start(tasks):
    assert tasks.next() is None
    with pytest.raises(NotFound, match="no tasks"):
        tasks.start()


def test_a_task_that_is_held_says_by_whom(three):
    three.start("IMPL-1", owner="somebody")

    with pytest.raises(Refused, match="held by somebody") as refused:
        three.start("IMPL-1")

    assert refused.value.way_out


@pytest.mark.parametrize("command", ["done", "fail", "block", "release"])
def test_only_the_claim_that_is_held_counts(three, command):
    told = ("it broke",) if command in ("fail", "block") else ()
    first = three.start("IMPL-1", owner="first")
    three.release("IMPL-1")
    with pytest.raises(Refused, match="no longer held"):
        getattr(three, command)("IMPL-1", *told, fence=first.fence)
    second = three.start("IMPL-1", owner="second")
    with pytest.raises(Refused, match="held by second"):
        getattr(three, command)("IMPL-1", *told, fence=first.fence)

    getattr(three, command)("IMPL-1", *told, fence=second.fence)

    assert three.row("IMPL-1").status is not TaskStatus.ACTIVE
    assert "IMPL-1" not in three._handle.state.claims


def test_a_dead_process_holds_nothing_and_one_on_another_machine_may_be_alive(three, project):
    three.start("IMPL-1", pid=DEAD)
    three.start("IMPL-2", pid=os.getpid())
    assert three.abandoned() == {"IMPL-1"}

    assert three.release_abandoned() == ["IMPL-1"]

    assert three.row("IMPL-1").status is TaskStatus.PENDING
    assert three.row("IMPL-2").status is TaskStatus.ACTIVE


def test_a_beat_renews_the_lease_of_its_claim_only(three, clock):
    claimed = three.start("IMPL-1", lease_s=60.0)
    clock.now += timedelta(seconds=50)
    three.beat("IMPL-1", claimed.fence)
    clock.now += timedelta(seconds=50)
    assert three.abandoned() == frozenset()
    with pytest.raises(Refused):
        three.beat("IMPL-1", claimed.fence + 1)
    with pytest.raises(DetentError):
        three.beat("IMPL-2", claimed.fence)
    clock.now += timedelta(seconds=20)
    assert three.abandoned() == {"IMPL-1"}
    three.release_abandoned()


@pytest.mark.parametrize("lease_s", [60, 60.0, 0.5])
def test_a_lease_of_any_kind_of_number_can_be_replayed(three, project, lease_s):
    three.start("IMPL-1", lease_s=lease_s, pid=os.getpid())
    three.beat("IMPL-1", three._handle.state.claims["IMPL-1"].fence)

    with open_project(project.place.root, actor="another") as other:
        assert other.session().state == three._handle.state
    three.release("IMPL-1")


def test_fail_and_block_need_a_reason_which_the_document_tells(three):
    three.start("IMPL-1")
    for command in (three.fail, three.block):
        with pytest.raises(Invalid):
            command("IMPL-1", "  ")
    three.fail("IMPL-1", "it broke")
    assert three.document("IMPL-1")["execution"]["last_error"] == "it broke"
    three.block("IMPL-2", "ask first")
    assert three.document("IMPL-2")["execution"]["waiting_on"] == "ask first"

    three.retry("IMPL-1")
    three.unblock("IMPL-2")

    assert "last_error" not in three.document("IMPL-1")["execution"]
    assert "waiting_on" not in three.document("IMPL-2").get("execution", {})


def test_a_task_that_waits_is_not_resumed_either(three):
    three.replan("IMPL-2", {"context": {"depends_on": ["IMPL-1"]}}, reason="order")
    three.block("IMPL-2", "ask first")

    with pytest.raises(Refused, match="waits for IMPL-1"):
        three.resume("IMPL-2")

    three.start("IMPL-1")
    three.done("IMPL-1")
    assert three.resume("IMPL-2").claim.owner == "tester"
    three.release("IMPL-2")


def test_a_summary_has_a_limit_and_is_not_written_for_a_task_that_is_not_done(three, project):
    three.start("IMPL-1")
    with pytest.raises(Invalid):
        three.done("IMPL-1", "x" * (MAX_SUMMARY_BYTES + 1))
    with pytest.raises(Refused):
        three.done("IMPL-2", "not even started")

    assert [three.summary(task) for task in ("IMPL-1", "IMPL-2")] == [None, None]
    three.done("IMPL-1", "ü" * 1000)
    assert three.summary("IMPL-1") == "ü" * 1000 + "\n"


def test_a_second_done_changes_neither_the_task_nor_its_summary(three):
    three.start("IMPL-1")
    three.done("IMPL-1", "the first")
    version = three._handle.state.version

    with pytest.raises(Refused):
        three.done("IMPL-1", "the second")

    assert three.summary("IMPL-1") == "the first\n"
    assert three._handle.state.version == version


def test_a_task_done_again_has_the_new_summary(three):
    for text in ("the first", "the second"):
        three.start("IMPL-1")
        three.done("IMPL-1", text)
        three.reopen("IMPL-1") if text == "the first" else None

    assert three.summary("IMPL-1") == "the second\n"


def test_split_warns_of_parts_that_touch_the_same_file_or_sound_alike(three):
    drafts = [
        ChildDraft(title="Write the login page", focus_paths=("src/login.py",)),
        ChildDraft(title="Write the login pages", focus_paths=("src/login.py",)),
    ]

    warnings = " ".join(three.split("IMPL-1", drafts).warnings)

    assert "src/login.py" in warnings
    assert "nearly the same title" in warnings


@pytest.mark.parametrize("parts", [[], [""], [ChildDraft(title="x", after=(2,))], [ChildDraft(title="x", after=(1,))]])
def test_split_refuses_parts_that_cannot_be_done(three, parts):
    with pytest.raises(Invalid):
        three.split("IMPL-1", parts)

    assert three.row("IMPL-1").status is TaskStatus.PENDING


def test_a_part_that_waits_for_the_container_s_dependant_is_refused(three):
    three.replan("IMPL-2", {"context": {"depends_on": ["IMPL-1"]}}, reason="order")

    with pytest.raises(Invalid):
        three.split("IMPL-1", [ChildDraft(title="x", depends_on=("IMPL-2",))])

    assert three.row("IMPL-1").status is TaskStatus.PENDING


def test_the_context_of_a_task_names_the_summaries_of_what_its_container_needs_too(three):
    three.start("IMPL-1")
    three.done("IMPL-1", "Use port 8080.")
    three.replan("IMPL-2", {"context": {"depends_on": ["IMPL-1"]}}, reason="order")
    three.split("IMPL-2", ["Part"])

    assert three.context("IMPL-2.1")["dependency_summaries"] == {"IMPL-1": "Use port 8080.\n"}


def test_another_process_sees_the_same(three, project):
    three.split("IMPL-2", ["Left", "Right"])
    three.start("IMPL-2.1")
    three.done("IMPL-2.1", "done")

    with open_project(project.place.root, actor="another") as other:
        assert other.session().tasks.rows() == three.rows()
        assert other.session().state == three._handle.state
        assert other.session().tasks.document("IMPL-2.1") == three.document("IMPL-2.1")


def test_a_change_of_one_task_writes_one_task_file(three, project, monkeypatch):
    project.flush()
    names = []
    put = project.store.put
    monkeypatch.setattr(project.store, "put", lambda name, data: (names.append(name), put(name, data))[1])

    three.start("IMPL-2")
    project.flush()

    assert [name for name in names if "/.task/IMPL" in name] == ["WFS-try-it/.task/IMPL-2.json"]


def test_views_of_very_many_tasks_tell_how_many_are_not_shown(three, project, monkeypatch):
    monkeypatch.setattr(task_files, "MAX_SHOWN", 2)
    three.add("Four")
    project.flush()

    text = (project.store.get("WFS-try-it/TODO_LIST.md") or b"").decode()

    assert "## Notes\n2 more tasks" in text
    assert text.count("**IMPL") == 2


# Acceptance criteria


@pytest.fixture
def accepted(tasks):
    """A task with two acceptance criteria, that is being worked on."""
    tasks.add("Form", acceptance=["the tests pass", "Ada has seen it"])
    return tasks.start("IMPL-1")


@pytest.mark.parametrize("met", [(), ("they do",)])
@pytest.mark.parametrize("summary", ["", "the form validates"])
def test_a_task_is_not_done_before_each_criterion_is_told_as_met(tasks, accepted, met, summary):
    with pytest.raises(Refused, match="Ada has seen it") as refused:
        tasks.done("IMPL-1", summary, met=met)

    assert refused.value.way_out == 'detent task done IMPL-1 -m "SUMMARY" --met "HOW" --met "HOW"'
    assert ("1. the tests pass" in refused.value.message) is not met
    assert ("the summary is kept in" in refused.value.message) is bool(summary)
    assert tasks.row("IMPL-1").status is TaskStatus.ACTIVE


@pytest.mark.parametrize("met", [("a", "b", "c"), ("a", " ")])
def test_a_text_too_many_and_an_empty_text_are_refused(tasks, accepted, met):
    with pytest.raises(DetentError):
        tasks.done("IMPL-1", met=met)

    assert tasks.row("IMPL-1").status is TaskStatus.ACTIVE


def test_what_was_met_is_recorded_and_in_the_summary(tasks, accepted):
    outcome = tasks.done("IMPL-1", "the form validates", met=["all 12 pass", "on Monday"], fence=accepted.fence)

    [moved] = [event for event in outcome.events if isinstance(event, TaskMoved)]
    assert moved.met == ("all 12 pass", "on Monday")
    assert tasks.summary("IMPL-1") == (
        "the form validates\n\nAccepted:\n- the tests pass: all 12 pass\n- Ada has seen it: on Monday\n"
    )


def test_no_summary_is_needed_beside_what_was_met(tasks, accepted):
    tasks.done("IMPL-1", met=["yes", "yes"])

    assert tasks.row("IMPL-1").status is TaskStatus.COMPLETED
    assert "Ada has seen it: yes" in tasks.summary("IMPL-1")


# Views


VIEWS = ("TODO_LIST.md", "IMPL_PLAN.md")


def views_of(handle, project):
    project.flush()
    assert check(project) == []
    return [view for view in VIEWS if project.store.get(f"{handle.id}/{view}") is not None]


def test_a_session_without_tasks_has_no_empty_views(project):
    handle = project.start("fix", "Mend it")

    assert views_of(handle, project) == []

    handle.tasks.add("First")
    assert views_of(handle, project) == [*VIEWS]

    handle.tasks.remove("IMPL-1")
    assert views_of(handle, project) == [*VIEWS]
    assert "First" not in (project.store.get(f"{handle.id}/TODO_LIST.md") or b"").decode()


def test_a_workflow_of_tasks_begins_with_its_views(project):
    assert views_of(project.start(FLOW, "Try it"), project) == [*VIEWS]
