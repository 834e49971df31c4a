"""A run that does the tasks of a session: each once, those first that others build on, several at a time."""

import subprocess
import threading
import time
from typing import Any

import pytest

from detent.core.run.agent_event import Failure, Used
from detent.core.run.run_event import End, Need, RunStarted, StepRan, TaskEnded, TurnStarted
from detent.core.session.phase_state import Tokens
from detent.core.task.document import new_document
from detent.core.task.row import TaskStatus
from tests.support.command import DETENT
from tests.support.scripted_run import Cast, Scene, broken, done, stopped_only
from tests.support.waiting import until

FLOW = "plan-implement-review"
LEAVES = ["IMPL-1", "IMPL-2.1", "IMPL-2.2", "IMPL-3"]


def step(name, command, **more):
    return {"step": name, "action": f"do {name}", "command": f"bash({command})", **more}


def stepped(number, title, *steps):
    document = new_document(f"IMPL-{number}", title)
    document["flow_control"] |= {"pre_analysis": list(steps), "implementation_approach": "work"}
    return document


@pytest.fixture
def scene(tmp_path):
    here = Scene(tmp_path, "", more='gates = "off"', workflow=FLOW)
    yield here
    here.close()


@pytest.fixture
def planned(scene):
    """One task, a container with two parts of which the second follows the first, and one that needs all of them."""
    tasks = scene.handle.tasks
    tasks.add("Alone", requirements=["be alone"])
    tasks.add("Whole")
    tasks.split("IMPL-2", ["First part", "Second part"])
    tasks.replan("IMPL-2.2", {"context": {"depends_on": ["IMPL-2.1"]}}, reason="it builds on it")
    tasks.add("Last", depends_on=["IMPL-1", "IMPL-2.2"])
    return scene


def statuses(scene):
    return {row.id: str(row.status) for row in scene.handle.tasks.rows()}


def test_every_task_is_done_once_and_after_those_it_needs(planned):
    cast = Cast(lambda turn, stopping: (done(f"did {turn.task or turn.phase}"),))

    assert planned.run(cast, parallel=2) is End.COMPLETED

    order = cast.worked_on
    assert sorted(order) == sorted(["PLAN", *LEAVES, "REVIEW"])
    assert (order[0], order[-2:]) == ("PLAN", ["IMPL-3", "REVIEW"])
    assert order.index("IMPL-2.1") < order.index("IMPL-2.2")
    assert set(statuses(planned).values()) <= {"completed", "container"}
    assert all(planned.handle.tasks.summary(task) == f"did {task}\n" for task in LEAVES)
    assert "did IMPL-2.2" in cast.prompts("IMPL-3")[0]
    assert "be alone" in cast.prompts("IMPL-1")[0]


def test_tasks_that_need_nothing_of_each_other_are_done_at_once(planned):
    together = threading.Barrier(2, timeout=60)

    def act(turn, stopping):
        if turn.task in ("IMPL-1", "IMPL-2.1"):
            together.wait()
        yield done()

    cast = Cast(act)

    assert planned.run(cast, parallel=2) is End.COMPLETED
    assert cast.most == 2
    assert cast.beside["IMPL-3"] == set()


def test_one_at_a_time_does_them_all_too(planned):
    def act(turn, stopping):
        time.sleep(0.1)
        yield done()

    cast = Cast(act)

    assert planned.run(cast) is End.COMPLETED
    assert cast.most == 1
    assert sorted(turn.task for turn in cast.turns if turn.task) == LEAVES


def test_what_the_agent_of_the_plan_adds_is_done(scene):
    def act(turn, stopping):
        if turn.phase == "PLAN":
            scene.beside(lambda handle: handle.tasks.add("Found while planning"))
        yield done()

    cast = Cast(act)

    assert scene.run(cast) is End.COMPLETED
    assert cast.worked_on == ["PLAN", "IMPL-1", "REVIEW"]


def test_without_tasks_the_phase_is_one_piece_of_work(scene):
    cast = Cast()

    assert scene.run(cast) is End.COMPLETED
    assert cast.worked_on == ["PLAN", "IMPLEMENT", "REVIEW"]


def test_a_task_belongs_to_the_agent_that_has_it(planned):
    cast = Cast()
    planned.run(cast)

    for turn in (one for one in cast.turns if one.task):
        assert turn.env["DETENT_TASK"] == turn.task
        assert int(turn.env["DETENT_CLAIM"]) > 0
        assert (turn.phase, turn.env["DETENT_PHASE"]) == ("IMPLEMENT", "IMPLEMENT")
    assert {one.task for one in planned.heard(TurnStarted)} == {None, *LEAVES}
    assert [one.status for one in planned.heard(TaskEnded)] == ["completed"] * 4


# Steps


def test_steps_run_before_the_agent_who_reads_what_they_found(scene, tmp_path):
    first = step("look", "echo found it; echo x >> looked", output_to="seen")
    second = step("use", "echo used [seen]", output_to="more")
    scene.handle.tasks.write([stepped(1, "With steps", first, second)])

    def act(turn, stopping):
        assert turn.task is None or (tmp_path / "looked").exists()
        yield done()

    cast = Cast(act)

    assert scene.run(cast) is End.COMPLETED
    [prompt] = cast.prompts("IMPL-1")
    assert "01-look.out):\n```\nfound it\n```" in prompt
    assert "02-use.out):\n```\nused found it\n```" in prompt
    assert (tmp_path / "looked").read_text() == "x\n"
    assert [one.step for one in scene.heard(StepRan)] == ["look", "look", "use", "use"]


def test_a_step_that_needs_a_person_blocks_its_task_and_is_told(scene, tmp_path):
    asks = step("ask", "test -e there", on_error="manual_intervention")
    scene.handle.tasks.write([stepped(1, "Blocked", asks), new_document("IMPL-2", "Free")])
    cast = Cast()

    assert scene.run(cast) is End.WAITING

    assert cast.worked_on == ["PLAN", "IMPL-2"]
    assert statuses(scene) == {"IMPL-1": "blocked", "IMPL-2": "completed"}
    [need] = scene.needed
    assert (need.need, need.about, need.way_out) == (Need.WORK, "IMPL-1", "detent flow resume IMPL-1 --retry")


def test_a_step_that_fails_fails_its_task_which_is_tried_again(scene, tmp_path):
    counts = step("count", "echo x >> tried; test $(wc -l < tried) -gt 1", on_error="fail")
    scene.handle.tasks.write([stepped(1, "Fails once", counts)])
    cast = Cast()

    assert scene.run(cast) is End.COMPLETED
    assert (tmp_path / "tried").read_text() == "x\nx\n"
    assert cast.worked_on == ["PLAN", "IMPL-1", "REVIEW"]


# Failures


def test_a_task_that_failed_is_tried_again_knowing_why(planned):
    def act(turn, stopping):
        failed = turn.task == "IMPL-1" and len(cast.prompts("IMPL-1")) == 1
        yield broken("the disk was full") if failed else done()

    cast = Cast(act)

    assert planned.run(cast) is End.COMPLETED
    first, second = cast.prompts("IMPL-1")
    assert ("the disk was full" in first, "the disk was full" in second) == (False, True)


@pytest.mark.parametrize(("failure", "tries"), [(Failure.ERROR, 2), (Failure.REFUSED, 1)])
def test_a_task_that_keeps_failing_is_decided_by_a_person_while_the_others_are_done(planned, failure, tries):
    cast = Cast(lambda turn, stopping: (broken("hopeless", failure) if turn.task == "IMPL-1" else done(),))

    assert planned.run(cast, attempts=2) is End.WAITING

    assert cast.worked_on.count("IMPL-1") == tries
    assert statuses(planned)["IMPL-1"] == "failed"
    assert planned.escalations == [(f"agent_{failure}", "IMPLEMENT")]
    assert "IMPL-1: hopeless" in planned.session.escalations[0].detail


def test_after_retry_the_failed_task_is_done(planned):
    hopeless = Cast(lambda turn, stopping: (broken("hopeless") if turn.task == "IMPL-1" else done(),))
    planned.run(hopeless, attempts=1)

    planned.handle.resolve("retry", "it may work now")

    assert planned.run() is End.COMPLETED


def test_a_task_that_a_person_took_away_is_left(planned):
    def act(turn, stopping):
        if turn.task == "IMPL-1" and len(cast.prompts("IMPL-1")) == 1:
            planned.beside(lambda handle: handle.tasks.release("IMPL-1", reason="give it back"))
            yield stopped_only(stopping)
        else:
            yield done()

    cast = Cast(act)

    assert planned.run(cast) is End.COMPLETED
    assert cast.worked_on.count("IMPL-1") == 2


def test_a_task_that_somebody_else_finished_is_done(planned):
    def act(turn, stopping):
        if turn.task == "IMPL-1":
            planned.beside(lambda handle: handle.tasks.done("IMPL-1", "by hand"))
            yield stopped_only(stopping)
        else:
            yield done()

    cast = Cast(act)

    assert planned.run(cast) is End.COMPLETED
    assert planned.handle.tasks.summary("IMPL-1") == "by hand\n"
    assert cast.worked_on.count("IMPL-1") == 1


def test_a_paused_run_gives_its_tasks_back(planned):
    runner: Any = None

    def act(turn, stopping):
        if turn.task is None:
            yield done()
            return
        runner.pause("enough")
        yield stopped_only(stopping)

    runner = planned.runner(Cast(act), parallel=2)

    assert runner.run() is End.PAUSED
    assert TaskStatus.ACTIVE not in {row.status for row in planned.handle.tasks.rows()}
    assert planned.statuses["IMPLEMENT"] == "in_progress"
    assert planned.run() is End.COMPLETED


def test_the_tasks_of_a_run_that_was_killed_are_given_back_and_done(planned, tmp_path):
    agent = '[agents.script]\nadapter = "command"\ncommand = "echo up >> up; sleep 300"\n[run]\nagent = "script"\n'
    with (tmp_path / "detent.toml").open("a") as settings:
        settings.write(agent)
    planned.handle.finish(phase="PLAN", summary="planned")
    up = tmp_path / "up"
    killed = subprocess.Popen([DETENT, "run", "--parallel", "2"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        assert until(lambda: up.exists() and up.read_text() == "up\nup\n"), killed.poll()
    finally:
        killed.kill()
        killed.wait()
    assert list(statuses(planned).values()).count("active") == 2
    cast = Cast()

    assert planned.run(cast, parallel=2) is End.COMPLETED

    [started] = planned.heard(RunStarted)
    assert {text for text in started.taken_over if "was given back" in text} == {
        "IMPL-1 was given back",
        "IMPL-2.1 was given back",
    }
    assert sorted(turn.task for turn in cast.turns if turn.task) == LEAVES
    # No agent counts as being at work any more, not even those that were killed.
    assert all(one.ended_at for one in planned.session.phases["IMPLEMENT"].delegations)
    assert len(planned.session.phases["IMPLEMENT"].delegations) == 2 + len(LEAVES)


# Budgets


@pytest.mark.parametrize(("each", "turns"), [(150, 1), (60, 2)])
def test_tasks_that_use_too_much_together_are_stopped_and_a_person_decides(tmp_path, each, turns):
    scene = Scene(tmp_path, "", more='gates = "off"\nbudget = { tokens = 100 }', workflow=FLOW)
    scene.handle.tasks.add("One")
    scene.handle.tasks.add("Two")

    def act(turn, stopping):
        worked = [one for one in cast.turns if one.task]
        assert len(worked) <= turns, "it goes on and on"
        if worked:
            yield Used(tokens=Tokens(input=each))
        yield stopped_only(stopping) if worked and len(worked) == turns else done()

    cast = Cast(act)

    assert scene.run(cast) is End.WAITING
    assert scene.escalations == [("budget_exceeded", "IMPLEMENT")]
    scene.handle.resolve("retry", "it may cost more")
    assert scene.run() is End.COMPLETED
    scene.close()


# Acceptance criteria


def test_an_agent_is_asked_how_each_criterion_is_met(scene):
    scene.handle.tasks.add("Form", acceptance=["the tests pass", "Ada has seen it"])
    cast = Cast(lambda turn, stopping: (done(met=("all 12", "on Monday")),))

    assert scene.run(cast) is End.COMPLETED

    [prompt] = cast.prompts("IMPL-1")
    assert "1. the tests pass\n2. Ada has seen it" in prompt
    assert "Met:" in prompt
    assert "Ada has seen it: on Monday" in scene.handle.tasks.summary("IMPL-1")


def test_a_report_that_leaves_a_criterion_out_fails_the_try_and_the_next_one_is_told(scene):
    scene.handle.tasks.add("Form", acceptance=["the tests pass", "Ada has seen it"])
    told = iter([("all 12",), ("all 12", "on Monday")])
    cast = Cast(lambda turn, stopping: (done(met=next(told) if turn.task else ()),))

    assert scene.run(cast) is End.COMPLETED

    first, second = cast.prompts("IMPL-1")
    assert "nothing says how these acceptance criteria of IMPL-1 are met" in second
    assert "- 2. Ada has seen it" in second
    assert "nothing says" not in first


def test_a_task_without_criteria_is_not_asked_about_them(scene):
    scene.handle.tasks.add("Form")
    cast = Cast()

    assert scene.run(cast) is End.COMPLETED
    assert "Met:" not in cast.prompts("IMPL-1")[0]
