"""A run of a session, with agents in this process: who works when, on what, and how it ends."""

import threading
import time

import pytest

from detent.core.run.agent_event import Failed, Failure, ToolUsed, Used
from detent.core.run.run_event import End, Need, PhaseEnded, Retrying, RunEnded, RunStarted, TurnStarted
from detent.core.session.phase_state import Tokens
from detent.core.task.row import TaskStatus
from tests.support.scripted_run import FLOW, GATED, Cast, broken, done

MISSING = '[{key="a", gates=[{kind="artifacts", paths=["made.txt"]}]}]'
APPROVED = '[{key="a", gates=[{kind="approval"}]}, "b"]'


# Order


def test_phases_come_one_after_the_other_each_told_what_the_one_before_left(scene):
    here, cast = scene(), Cast(lambda turn, stopping: (done(f"did {turn.phase}", context=f"mind {turn.phase}"),))

    assert here.run(cast) is End.COMPLETED

    assert cast.worked_on == ["a", "b", "c"]
    assert "did a" in cast.prompts("b")[0]
    assert "mind b" in cast.prompts("c")[0]
    assert {state.summary for state in here.session.phases.values()} == {"did a", "did b", "did c"}
    assert isinstance(here.told[0], RunStarted)
    assert here.told[-1] == RunEnded(at=here.told[-1].at, end=End.COMPLETED)


def test_no_more_work_at_once_than_allowed_and_as_many_as_that_where_needs_let_them(scene):
    together, settled = threading.Barrier(3, timeout=60), set()
    needs = {"a": (), **dict.fromkeys("bcdefg", ("a",)), "z": tuple("bcdefg")}
    here = scene(str([{"key": key, "needs": list(of)} for key, of in needs.items()]).replace("':", "' ="))

    def act(turn, stopping):
        assert settled.issuperset(needs[turn.phase])
        if turn.phase in "bcdefg":
            together.wait()
            # One more than allowed would begin meanwhile.
            time.sleep(0.15)
        settled.add(turn.phase)
        yield done()

    cast = Cast(act)

    assert here.run(cast, parallel=3) is End.COMPLETED
    assert cast.most == 3
    assert cast.worked_on[0] == "a"
    assert cast.worked_on[-1] == "z"
    assert sorted(cast.worked_on) == [*"abcdefg", "z"]


def test_one_at_a_time_if_nothing_is_said(scene):
    def act(turn, stopping):
        time.sleep(0.15)
        yield done()

    here, cast = scene('["a", {key="b", needs=["a"]}, {key="c", needs=["a"]}]'), Cast(act)

    here.run(cast)

    assert (cast.most, here.is_completed("a", "b", "c")) == (1, True)


def test_everything_is_told_from_the_thread_that_runs(scene):
    here = scene('["a", {key="b", needs=["a"]}, {key="c", needs=["a"]}]')

    here.run(Cast(lambda turn, stopping: (ToolUsed(tool="Read"), done())), parallel=2)

    assert here.threads == {threading.get_ident()}
    assert {one.phase for one in here.heard(PhaseEnded)} == {*"abc"}


# Gates and turns


def test_a_gate_that_failed_is_the_next_turn_with_its_evidence(scene, tmp_path):
    here = scene(GATED)

    def act(turn, stopping):
        if "where is ok" in turn.prompt.partition("Done when")[0]:
            (tmp_path / "ok").touch()
        yield done()

    cast = Cast(act)

    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == ["a", "a", "b"]
    assert "# What failed" in cast.prompts("a")[1]
    assert "# What failed" not in cast.prompts("a")[0]
    assert here.attempts == {"a": 1, "b": 1}
    assert [(one.phase, one.turn) for one in here.heard(TurnStarted)] == [("a", 1), ("a", 2), ("b", 1)]


@pytest.mark.parametrize(("turns", "given"), [(1, 1), (2, 2), (10, 3)])
def test_turns_have_a_limit_and_the_same_failure_again_and_again_ends_them_sooner(scene, turns, given):
    here, cast = scene(MISSING), Cast()

    assert here.run(cast, turns=turns) is End.WAITING

    assert len(cast.turns) == given
    assert here.escalations == [("gates_closed", "a")]
    [need] = here.needed
    assert (need.need, need.phase) == (Need.DECISION, "a")
    assert "made.txt" in need.text


def test_a_check_that_fails_the_same_way_each_time_is_given_up(scene):
    here, cast = scene(GATED), Cast()

    assert here.run(cast) is End.WAITING
    assert len(cast.turns) == 3
    assert [phase for _, phase in here.escalations] == ["a"]


def test_after_retry_the_phase_goes_on_where_it_stands(scene, tmp_path):
    here, cast = scene(GATED), Cast()
    here.run(cast)
    (tmp_path / "ok").touch()
    here.handle.resolve("retry", "mended by hand")

    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == ["a", "a", "a", "b"]


def test_what_a_phase_was_to_leave_behind_is_its_artifact(scene, tmp_path):
    here = scene(MISSING)

    def act(turn, stopping):
        (tmp_path / "made.txt").touch()
        yield done(artifacts=("nowhere.txt", "/etc/passwd", "made.txt"))

    assert here.run(Cast(act)) is End.COMPLETED
    assert here.session.phases["a"].artifacts == ("made.txt",)
    [warned] = [one.warnings for one in here.heard(PhaseEnded)]
    assert [text for text in warned if "nowhere.txt" in text or "/etc/passwd" in text] == list(warned)
    assert len(warned) == 2


# Attempts


def test_what_failed_is_done_again_knowing_what_failed(scene):
    here, cast = (
        scene(),
        Cast(lambda turn, stopping: (broken(f"no {len(cast.turns)}") if len(cast.turns) < 3 else done(),)),
    )

    assert here.run(cast) is End.COMPLETED

    assert here.attempts == {"a": 3, "b": 1, "c": 1}
    first, second, third = cast.prompts("a")
    assert ("no 1" in first, "no 1" in second, "no 2" in third) == (False, True, True)


@pytest.mark.parametrize("failure", [Failure.ERROR, Failure.TIMEOUT])
def test_attempts_have_a_limit_and_then_a_person_decides(scene, failure):
    here, cast = scene(), Cast(lambda turn, stopping: (broken("never works", failure),))

    assert here.run(cast, attempts=2) is End.WAITING

    assert (len(cast.turns), here.escalations) == (2, [(f"agent_{failure}", "a")])
    assert "never works" in here.needed[0].text
    here.handle.resolve("retry")
    assert here.run() is End.COMPLETED
    assert here.attempts["a"] == 3


def test_a_refusal_is_not_asked_for_twice(scene):
    here, cast = scene(), Cast(lambda turn, stopping: (broken("I will not", Failure.REFUSED),))

    assert here.run(cast) is End.WAITING
    assert (len(cast.turns), here.escalations) == (1, [("agent_refused", "a")])


def test_a_passing_failure_is_the_same_attempt_and_what_it_cost_counts(scene):
    here = scene('["a"]')

    def act(turn, stopping):
        yield Used(tokens=Tokens(input=10, output=1, cost=0.5))
        yield broken("busy", Failure.TRANSIENT) if len(cast.turns) < 3 else done()

    cast = Cast(act, retries=2)

    assert here.run(cast) is End.COMPLETED
    assert (len(cast.turns), here.attempts) == (3, {"a": 1})
    assert [(one.again, one.of) for one in here.heard(Retrying)] == [(1, 2), (2, 2)]
    assert here.session.phases["a"].tokens == Tokens(input=30, output=3, cost=1.5)


def test_a_passing_failure_of_work_that_had_begun_and_does_not_pass_is_a_failed_attempt(scene):
    here = scene()
    cast = Cast(lambda turn, stopping: (ToolUsed(tool="Read"), broken("busy", Failure.TRANSIENT)), retries=1)

    assert here.run(cast, attempts=2) is End.WAITING
    assert (len(cast.turns), here.escalations) == (4, [("agent_transient", "a")])
    assert here.attempts["a"] == 2


def test_a_turn_that_was_never_answered_uses_up_no_attempt(scene):
    here = scene()
    cast = Cast(lambda turn, stopping: (broken("busy", Failure.TRANSIENT),), retries=1)

    assert here.run(cast, attempts=2) is End.WAITING
    assert (len(cast.turns), here.escalations) == (4, [("agent_transient", "a")])
    assert (here.attempts["a"], here.statuses["a"]) == (1, "in_progress")

    here.handle.resolve("retry", "it is back")
    assert here.run(Cast()) is End.COMPLETED
    assert here.attempts == {"a": 1, "b": 1, "c": 1}


def test_a_task_that_was_never_answered_is_given_back(scene):
    here = scene("", more='gates = "off"', workflow=FLOW)
    here.handle.tasks.add("One")

    def act(turn, stopping):
        yield broken("busy", Failure.TRANSIENT) if turn.task else done()

    assert here.run(Cast(act, retries=0), attempts=1) is End.WAITING
    assert here.escalations == [("agent_transient", "IMPLEMENT")]
    assert here.handle.tasks.row("IMPL-1").status is TaskStatus.PENDING


def test_the_pause_is_as_long_as_the_service_asks(scene):
    here = scene()
    failures = iter([Failed(failure=Failure.TRANSIENT, reason="busy", retry_after_s=0.3)])

    def act(turn, stopping):
        yield next(failures, None) or done()

    assert here.run(Cast(act)) is End.COMPLETED
    assert [one.pause_s for one in here.heard(Retrying)] == [0.3]


def test_an_agent_that_says_nothing_at_the_end_has_failed(scene):
    here = scene()

    assert here.run(Cast(lambda turn, stopping: (ToolUsed(tool="Read"),)), attempts=1) is End.WAITING
    assert "without a result" in str(here.session.phases["a"].error)


# People


@pytest.mark.parametrize(
    ("action", "end", "left"), [("skip", End.COMPLETED, "skipped"), ("cancel", End.CANCELLED, "failed")]
)
def test_what_a_person_decides_beside_is_carried_on_with(scene, action, end, left):
    here = scene()

    def idle():
        if here.escalations:
            here.beside(lambda handle: handle.resolve(action, "so it is"))

    cast = Cast(lambda turn, stopping: (broken() if turn.phase == "a" else done(),))

    assert here.run(cast, attempts=1, wait=True, idle=idle) is end
    assert here.statuses["a"] == left
    assert cast.worked_on == (["a", "b", "c"] if action == "skip" else ["a"])


def test_a_phase_that_waits_for_a_person_ends_the_run_and_needs_no_other_turn_in_the_next(scene):
    here, cast = scene(APPROVED), Cast(lambda turn, stopping: (done(f"did {turn.phase}"),))

    assert here.run(cast) is End.WAITING
    [need] = here.needed
    assert (need.need, need.phase, need.about) == (Need.APPROVAL, "a", "approval")
    assert "detent approve" in need.way_out
    here.handle.approve("fine", phase="a")

    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == ["a", "b"]
    assert here.session.phases["a"].summary == "did a"


def test_a_run_that_waits_goes_on_when_somebody_approved_elsewhere(scene):
    here, cast = scene(APPROVED), Cast()
    asked = iter([True])

    def idle():
        if here.needed and next(asked, False):
            here.beside(lambda handle: handle.approve("fine", phase="a"))

    assert here.run(cast, wait=True, idle=idle) is End.COMPLETED
    assert cast.worked_on == ["a", "b"]
    assert len(here.needed) == 1


def test_others_go_on_while_one_phase_waits_for_a_person(scene):
    here = scene(
        '["a", {key="b", needs=["a"], gates=[{kind="approval"}]}, {key="c", needs=["a"]}, {key="d", needs=["c"]}]'
    )

    assert here.run() is End.WAITING
    assert here.statuses == {"a": "completed", "b": "in_progress", "c": "completed", "d": "completed"}


@pytest.mark.parametrize(("decision", "turns"), [("continue", ["a", "b"]), ("redo", ["a", "a", "b"])])
def test_under_supervision_nothing_follows_before_a_person_has_looked(scene, decision, turns):
    here, cast = scene('["a", "b"]', more="[supervised]\nphases = ['a']"), Cast()

    assert here.run(cast) is End.WAITING
    assert (cast.worked_on, here.needed[0].need) == (["a"], Need.REVIEW)

    here.handle.review(decision, phase="a", note="once more")
    if decision == "redo":
        assert here.run(cast) is End.WAITING
        here.handle.review("continue", phase="a")
    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == turns
    assert decision == "continue" or "once more" in cast.prompts("a")[1]
