"""The picture of a run is what its events say, and nothing that is over stays in it."""

from datetime import timedelta

import pytest

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import Failed, Failure, Finished, Said, ToolStarted, ToolUsed, Used
from detent.core.run.run_event import End, GateStarted, Need, PhaseEnded, Retrying, RunEnded, TaskEnded
from detent.core.run.run_view import MAX_LINE, MAX_LINES, Doing, RunView, fold
from detent.core.session.phase_state import Report, Tokens
from tests.support.run_story import at, chain_run, did, judged, needed, started, turn, view, whole_run


def work_of(shown: RunView, phase: str, task: str | None = None):
    (found,) = [job for job in shown.of_phase(phase) if job.task == task]
    return found


def ended(seconds: float, phase: str) -> PhaseEnded:
    return PhaseEnded(at=at(seconds), phase=phase, attempt=1, status="completed", said="")


def used(seconds: float, phase: str, amount: int, task: str | None = None):
    return did(seconds, phase, Used(tokens=Tokens(input=amount, cost=amount / 100)), task)


def test_a_turn_shows_who_works_and_since_when():
    job = work_of(view(started(), turn(5, "a", role="architect", attempt=2, turn=3)), "a")

    assert (job.agent, job.role, job.attempt, job.turn, job.since) == ("claude", "architect", 2, 3, at(5))
    assert job.doing is Doing.WORKING


def test_the_last_tool_is_the_one_that_is_shown():
    shown = view(turn(0, "a"), did(1, "a", ToolUsed(tool="Read")), did(2, "a", ToolUsed(tool="Bash", input="ls")))

    job = work_of(shown, "a")
    assert (job.tool, job.tools, job.heard) == (ToolUsed(tool="Bash", input="ls"), 2, at(2))


def test_a_tool_that_has_not_ended_is_the_tool_in_use_and_not_counted():
    begun = ToolStarted(tool="Bash", input="make")
    shown = view(turn(0, "a"), did(1, "a", ToolUsed(tool="Read")), did(2, "a", begun))

    job = work_of(shown, "a")
    assert (job.tool, job.tools, job.doing) == (begun, 1, Doing.WORKING)


def test_only_the_last_lines_are_kept_and_long_ones_are_cut():
    told = "\n".join(f"line {number}" for number in range(9)) + "\n\n" + "x" * 1000

    job = work_of(view(turn(0, "a"), did(1, "a", Said(text=told))), "a")
    assert len(job.lines) == MAX_LINES
    assert job.lines == ("line 7", "line 8", "x" * MAX_LINE)


def test_tokens_of_a_turn_replace_one_another_and_those_of_turns_add_up():
    shown = view(started(), turn(0, "a"), used(1, "a", 5), used(2, "a", 7))
    assert shown.tokens == Tokens(input=7, cost=0.07)

    shown = fold(fold(shown, turn(3, "a", turn=2)), used(4, "a", 100))
    assert shown.tokens_of("a") == Tokens(input=107, cost=1.07)
    assert shown.unreported == Tokens(input=100, cost=1.0)


@pytest.mark.parametrize(
    "end",
    [
        did(3, "a", Finished()),
        did(3, "a", Finished(report=Report(tokens=Tokens(input=7, cost=0.07)))),
        did(3, "a", Failed(failure=Failure.ERROR, reason="broke")),
        Retrying(at=at(3), phase="a", reason="busy", pause_s=1, again=1, of=3),
        ended(3, "a"),
        RunEnded(at=at(3), end=End.PAUSED),
    ],
    ids=lambda end: type(getattr(end, "did", end)).__name__,
)
def test_what_a_turn_used_is_counted_once_however_it_ends(end):
    shown = view(started(), turn(0, "a"), used(1, "a", 7), end, ended(4, "a"))

    assert shown.tokens == Tokens(input=7, cost=0.07)
    assert shown.unreported == Tokens()


def test_a_turn_that_is_tried_again_counts_from_nothing_and_what_it_used_before_stays():
    again = Retrying(at=at(2), phase="a", reason="busy", pause_s=1, again=1, of=3)

    assert view(turn(0, "a"), used(1, "a", 7), again, used(3, "a", 2)).tokens.input == 9


def test_tasks_of_one_phase_are_told_apart():
    shown = view(turn(0, "a", task="IMPL-1"), turn(0, "a", task="IMPL-2"), used(1, "a", 3, "IMPL-1"))
    assert [job.task for job in shown.of_phase("a")] == ["IMPL-1", "IMPL-2"]

    shown = fold(shown, TaskEnded(at=at(2), phase="a", task="IMPL-1", status="completed"))
    assert [job.task for job in shown.of_phase("a")] == ["IMPL-2"]
    assert shown.tokens_of("a") == Tokens(input=3, cost=0.03)


def test_a_pause_says_when_the_next_try_comes():
    again = Retrying(at=at(10), phase="a", reason="429", pause_s=8, again=2, of=3)

    job = work_of(view(turn(0, "a"), again), "a")
    assert (job.doing, job.until, job.note) == (Doing.RETRYING, at(10) + timedelta(seconds=8), "try 2 of 3: 429")
    assert work_of(view(turn(0, "a"), again, did(19, "a", ToolUsed(tool="Read"))), "a").doing is Doing.WORKING


def test_a_gate_is_shown_while_it_runs_and_its_verdict_afterwards():
    running = view(turn(0, "a"), GateStarted(at=at(1), phase="a", gate="tests", command="make test"))
    assert (work_of(running, "a").doing, work_of(running, "a").note) == (Doing.GATE, "tests: make test")

    shown = fold(running, judged(2, "a", "tests", Verdict.FAIL, "2 failed"))
    assert work_of(shown, "a").doing is Doing.TURN_OVER
    assert shown.verdicts["a"]["tests"].reason == "2 failed"


def test_a_verdict_alone_makes_no_work():
    assert view(judged(1, "a", "tests", Verdict.PASS)).jobs == ()


def test_a_phase_that_ended_leaves_nothing_but_what_it_used():
    shown = view(started(), *chain_run()[1:], needed(101, "03-architecture"), ended(102, "03-architecture"))

    assert (shown.jobs, shown.verdicts, shown.needs) == ((), {}, ())
    assert shown.tokens.input == 39_100


@pytest.mark.parametrize(
    "event", [turn(9, "a"), ended(9, "a"), judged(9, "a", "approval", Verdict.PASS)], ids=["turn", "ended", "opened"]
)
def test_nobody_is_needed_where_the_phase_goes_on(event):
    shown = fold(view(needed(1, "a"), needed(1, "b")), event)

    assert [need.phase for need in shown.needs] == ["b"]


def test_a_verdict_that_does_not_open_the_gate_leaves_the_person_needed():
    shown = view(needed(1, "a"), judged(2, "a", "approval", Verdict.PENDING), judged(3, "a", "tests", Verdict.PASS))

    assert len(shown.needs) == 1


def test_the_same_need_told_again_is_one_need():
    assert len(view(needed(1, "a"), needed(9, "a"), needed(9, "a", need=Need.REVIEW)).needs) == 2


def test_a_run_that_starts_knows_nothing_of_the_one_before():
    shown = view(*whole_run(), started(200, run="run-2"))

    assert shown == RunView(run="run-2", session="WFS-add-login", started_at=at(200))


def test_a_picture_may_begin_anywhere():
    events = whole_run()

    for first in range(len(events)):
        assert view(*events[first:]).ended is not None


def test_when_the_run_ended_nobody_works():
    shown = view(*whole_run())

    assert shown.jobs == ()
    assert shown.ended is not None
    assert [need.phase for need in shown.needs] == []
