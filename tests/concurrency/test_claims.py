"""Many processes work on the tasks of one session: each task is in one pair of hands, and the dead hold none."""

import json
import os
import signal
import time
from collections import Counter

import pytest

from detent.core.session.events import TaskMoved
from detent.core.task.document import new_document
from detent.core.task.lifecycle import Action
from detent.core.task.row import TaskStatus
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.errors import NotFound, Refused
from tests.support import claimers
from tests.support.project import build_project
from tests.support.workers import PATIENCE_S, run

PROCESSES = 8
TASKS = 500


@pytest.fixture
def directory(tmp_path):
    build_project(tmp_path)
    yield str(tmp_path)
    with open_project(tmp_path, actor="tester") as project:
        project.reconcile()
        assert check(project) == []


def planned(directory, count):
    with open_project(directory, actor="tester") as project:
        handle = project.start("plan-implement-review", "Try it")
        handle.tasks.write([new_document(f"IMPL-{number}", f"Task {number}") for number in range(1, count + 1)])
        return handle.id


def moves(directory, action):
    with open_project(directory, actor="tester") as project:
        return [
            event
            for commit in project.session().log()
            for event in commit.events
            if isinstance(event, TaskMoved) and event.action == action
        ]


@pytest.mark.parametrize("finishing", [False, True])
def test_of_many_processes_that_take_what_is_next_each_task_goes_to_one(directory, context, finishing):
    count = TASKS if not finishing else TASKS // 4
    planned(directory, count)
    barrier, reports = context.Barrier(PROCESSES), context.Queue()
    jobs = [
        (claimers.claim_all, (directory, f"process{number}", barrier, reports), {"finishing": finishing})
        for number in range(PROCESSES)
    ]

    found = dict(run(context, *jobs, reports=reports))

    taken = [task for claims in found.values() for task, _ in claims]
    assert Counter(taken) == Counter(f"IMPL-{number}" for number in range(1, count + 1))
    assert [event.task for event in moves(directory, Action.START)] == sorted(taken, key=lambda task: int(task[5:]))
    fences = [fence for claims in found.values() for _, fence in claims]
    assert len(set(fences)) == count
    with open_project(directory, actor="tester") as project:
        session = project.session().state
        wanted = TaskStatus.COMPLETED if finishing else TaskStatus.ACTIVE
        assert {row.status for row in session.tasks} == {wanted}
        if not finishing:
            owners = {task: claim.owner for task, claim in session.claims.items()}
            assert owners == {task: name for name, claims in found.items() for task, _ in claims}
            # Those who held them are gone, so that the next one gets them back.
            assert len(project.session().tasks.release_abandoned()) == count


def test_the_task_of_a_killed_process_goes_to_the_next_and_its_late_word_does_not_count(directory, context):
    planned(directory, 1)
    reports = context.Queue()
    worker = context.Process(
        target=claimers.claim_and_hang, args=(directory, "dead", reports), kwargs={"task": None, "lease_s": 3600.0}
    )
    worker.start()
    _, task, fence = reports.get(timeout=PATIENCE_S)
    with open_project(directory, actor="next") as project:
        tasks = project.session().tasks
        with pytest.raises(NotFound, match="1 in progress"):
            tasks.start(owner="next")
        with pytest.raises(Refused, match="dead"):
            tasks.start(task, owner="next")

        os.kill(worker.pid, signal.SIGKILL)
        worker.join(PATIENCE_S)
        claimed = tasks.start(owner="next")

        assert (claimed.task, claimed.claim.owner) == (task, "next")
        assert claimed.fence > fence
        for late in (tasks.done, tasks.fail, tasks.block):
            with pytest.raises(Refused, match="next"):
                late(task, "the word of the dead", fence=fence)
        with pytest.raises(Refused):
            tasks.release(task, fence=fence)
        with pytest.raises(Refused):
            tasks.beat(task, fence)
        assert tasks.summary(task) is None
        tasks.done(task, "by the next", fence=claimed.fence)
        assert tasks.summary(task) == "by the next\n"
        assert tasks.row(task).attempts == 2


def test_a_lease_that_ran_out_frees_a_task_whose_process_is_not_known(directory):
    planned(directory, 2)
    with open_project(directory, actor="tester") as project:
        tasks = project.session().tasks
        quiet = tasks.start("IMPL-1", owner="quiet", lease_s=0.05)
        tasks.start("IMPL-2", owner="patient", lease_s=60.0)
        time.sleep(0.1)

        assert tasks.abandoned() == {"IMPL-1"}
        assert tasks.start("IMPL-1", owner="next").claim.owner == "next"

        with pytest.raises(Refused):
            tasks.done("IMPL-1", fence=quiet.fence)
        assert tasks.abandoned() == frozenset()


def test_a_long_run_that_says_so_keeps_its_task(directory, context):
    planned(directory, 1)
    reports, stop = context.Queue(), context.Event()
    worker = context.Process(
        target=claimers.claim_and_beat,
        args=(directory, "busy", reports, stop),
        kwargs={"task": "IMPL-1", "lease_s": 2.5},
    )
    worker.start()
    reports.get(timeout=PATIENCE_S)
    with open_project(directory, actor="tester") as project:
        tasks = project.session().tasks
        until = time.monotonic() + 4
        while time.monotonic() < until:
            assert tasks.abandoned() == frozenset()
            time.sleep(0.1)
        assert tasks.release_abandoned() == []
        stop.set()
        assert reports.get(timeout=PATIENCE_S)[:2] == ("busy", "done")
        worker.join(PATIENCE_S)

        assert tasks.row("IMPL-1").status is TaskStatus.COMPLETED
        assert tasks.row("IMPL-1").attempts == 1


def test_of_many_processes_that_say_it_is_done_one_does_and_its_summary_stands(directory, context):
    planned(directory, 12)
    names = [f"IMPL-{number}" for number in range(1, 13)]
    with open_project(directory, actor="tester") as project:
        for task in names:
            project.session().tasks.start(task)
    barrier, reports = context.Barrier(4), context.Queue()
    jobs = [
        (claimers.finish_each, (directory, f"process{number}", barrier, reports), {"tasks": names})
        for number in range(4)
    ]

    answers = [answer for _, found in run(context, *jobs, reports=reports) for answer in found]

    with open_project(directory, actor="tester") as project:
        tasks = project.session().tasks
        for task in names:
            (winner,) = [name for answered, name, _ in answers if answered == task and name]
            assert tasks.summary(task) == f"by {winner}\n"
            assert all("completed" in message for answered, _, message in answers if answered == task and message)
    assert len(moves(directory, Action.DONE)) == len(names)


def test_tasks_added_at_the_same_moment_get_numbers_of_their_own(directory, context):
    started(directory)
    barrier, reports = context.Barrier(4), context.Queue()
    jobs = [
        (claimers.add_many, (directory, f"process{number}", barrier, reports), {"times": 20}) for number in range(4)
    ]

    found = dict(run(context, *jobs, reports=reports))

    assert sorted(task for added in found.values() for task in added) == sorted(
        f"IMPL-{number}" for number in range(1, 81)
    )


def started(directory):
    with open_project(directory, actor="tester") as project:
        return project.start("plan-implement-review", "Try it").id


def test_edits_by_hand_while_others_work_are_adopted_and_nothing_is_lost(directory, context):
    session = planned(directory, 60)
    barrier, reports = context.Barrier(3), context.Queue()
    edited = [f"IMPL-{number}" for number in range(41, 61)]
    jobs = [
        (claimers.add_many, (directory, "adding", barrier, reports), {"times": 20}),
        (claimers.add_many, (directory, "helping", barrier, reports), {"times": 20}),
        (claimers.edit_files, (directory, session, "person", barrier, reports), {"tasks": edited}),
    ]

    run(context, *jobs, reports=reports)

    with open_project(directory, actor="tester") as project:
        project.reconcile()
        rows = {row.id: row for row in project.session().tasks.rows()}
        assert len(rows) == 100
        for task in edited:
            with open(f"{directory}/.workflow/{session}/.task/{task}.json", encoding="utf-8") as file:
                assert json.load(file)["title"] == rows[task].title == f"person: Task {task[5:]}"
