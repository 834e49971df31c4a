"""What every dispatcher must do. `tests/run` holds the threads to it, `tests/machines` the workers of Temporal.

An implementation gives the fixture `stage`: a project whose phases are done by shell commands, and its dispatcher.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from detent.core.run.agent_event import Failure
from detent.core.session.events import PhaseFailed, PhaseFinished
from detent.engine.session import SessionHandle
from detent.run.context import RunContext
from detent.run.dispatcher import Dispatcher
from detent.run.job import Job, JobOutcome, JobResult

#: Each phase is done by what its name says.
PHASES = """
{key = "good", needs = []}, {key = "bad", needs = []}, {key = "slow", needs = []},
{key = "left", needs = []}, {key = "right", needs = []}
"""
#: `left` and `right` wait for each other, so they end only if they run at the same time.
COMMAND = """
case $DETENT_PHASE in
bad) echo broken >&2; exit 1;;
slow) sleep 60;;
left) touch "$MEET/left"; until test -e "$MEET/right"; do sleep 0.05; done;;
right) touch "$MEET/right"; until test -e "$MEET/left"; do sleep 0.05; done;;
esac
echo done
"""
WAIT_S = 60.0


class Stage(Protocol):
    handle: SessionHandle
    context: RunContext
    dispatcher: Dispatcher

    def close(self) -> None: ...


def start(stage: Stage, phase: str) -> "tuple[Job, Future[JobResult]]":
    job = Job(stage.context, phase, version=stage.handle.state.version)
    return job, stage.dispatcher.start(job)


def ends(stage: Stage, phase: str) -> list[type]:
    """The ends of attempts of the phase in the journal."""
    return [
        type(event)
        for commit in stage.handle.log()
        for event in commit.events
        if isinstance(event, PhaseFinished | PhaseFailed) and event.phase == phase
    ]


def until(condition: Callable[[], object]) -> None:
    over = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < over
        time.sleep(0.05)


class DispatcherContract:
    def test_a_job_ends_once_with_its_result(self, stage: Stage) -> None:
        job, future = start(stage, "good")
        assert future.result(WAIT_S).outcome is JobOutcome.FINISHED
        assert (job.token.attempt, job.had_turn, ends(stage, "good")) == (1, True, [PhaseFinished])

    def test_a_job_that_fails_says_why(self, stage: Stage) -> None:
        _, future = start(stage, "bad")
        result = future.result(WAIT_S)
        assert (result.outcome, result.failure) == (JobOutcome.FAILED, Failure.ERROR)
        assert "broken" in result.reason
        assert ends(stage, "bad") == [PhaseFailed]

    def test_jobs_run_at_the_same_time(self, stage: Stage) -> None:
        jobs = [start(stage, phase) for phase in ("left", "right")]
        assert {future.result(WAIT_S).outcome for _, future in jobs} == {JobOutcome.FINISHED}

    def test_a_job_that_is_stopped_ends_and_its_attempt_is_interrupted(self, stage: Stage) -> None:
        job, future = start(stage, "slow")
        until(lambda: stage.handle.state.phases["slow"].delegations)
        stage.dispatcher.stop(job, "enough")
        stage.dispatcher.tend()
        assert future.result(WAIT_S).outcome is JobOutcome.STOPPED
        assert ends(stage, "slow") == [PhaseFailed]

    def test_a_phase_that_is_settled_is_left_alone(self, stage: Stage) -> None:
        start(stage, "good")[1].result(WAIT_S)
        _, future = start(stage, "good")
        assert future.result(WAIT_S).outcome is JobOutcome.ELSEWHERE
        assert ends(stage, "good") == [PhaseFinished]

    def test_a_job_that_cannot_be_done_ends_with_an_error(self, stage: Stage) -> None:
        _, future = start(stage, "unknown")
        assert future.exception(WAIT_S) is not None
