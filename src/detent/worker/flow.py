"""A session as a workflow of Temporal: keeps its run loop alive, and gives the jobs of the loop to workers.

It holds nothing that counts. If Temporal loses it, the next `detent run --on` starts another one, and the journal says
what was done. Fencing is the journal's: a worker that Temporal took for dead may work on, and its commits are refused.
"""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, is_cancelled_exception

from detent.run.job import JobOutcome
from detent.worker.board import Assignment, Board, Ended, flow_name, loop_run
from detent.worker.given import JOB, LOOP, NAME, Given, JobTurn, LoopTurn
from detent.worker.queues import job_queue, loop_queue

#: Kinds of errors that another try can end: a store that cannot be reached, and a loop that was handed on.
PASSING, LEFT = "passing", "left"
#: An activity may take as long as a run may.
_LONGEST = timedelta(days=365)
#: Pauses between two tries of an activity.
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 30.0
#: A loop that ran for longer is tried again at once.
_FAILED_SOON = timedelta(seconds=60)
#: A loop that asks for the ends of jobs gets an answer after this time at the latest.
WAIT_S = 60.0
_ONCE = RetryPolicy(maximum_attempts=1)


def _defect(error: BaseException) -> str | None:
    """The error of an activity that no other try can end, as a sentence; None for a worker that is gone or cut off."""
    cause = error.cause if isinstance(error, ActivityError) else None
    is_defect = isinstance(cause, ApplicationError) and cause.type not in (PASSING, LEFT)
    return f"{cause.type}: {cause.message}" if is_defect and isinstance(cause, ApplicationError) else None


@workflow.defn(name=NAME)
class SessionFlow:
    @workflow.init
    def __init__(self, given: dict[str, Any]) -> None:
        self._given = msgspec.convert(given, Given)
        self._board = Board()
        self._jobs: dict[str, workflow.ActivityHandle[Any]] = {}
        # A message of a loop may come before `run` is called.
        self._turn = self._next_turn(1)

    def _next_turn(self, term: int) -> LoopTurn:
        info = workflow.info()
        flow = flow_name(info.run_id)
        jobs = tuple(self._board.attach(loop_run(flow, term)))
        return LoopTurn(given=self._given, flow=flow, workflow=info.workflow_id, term=term, open=jobs)

    @workflow.run
    async def run(self, given: dict[str, Any]) -> str:
        turn, taken, fails = self._turn, self._given, 0
        while True:
            began = workflow.now()
            loop = workflow.start_activity(
                LOOP,
                msgspec.to_builtins(turn),
                task_queue=loop_queue(taken.project),
                heartbeat_timeout=timedelta(seconds=taken.heartbeat_s),
                start_to_close_timeout=_LONGEST,
                retry_policy=_ONCE,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
            renewing = asyncio.create_task(self._cancel_when_long(loop))
            try:
                end: str = await loop
            except ActivityError as error:
                if (defect := _defect(error)) is not None:
                    raise ApplicationError(defect, non_retryable=True) from error
                if is_cancelled_exception(error) and not workflow.info().is_continue_as_new_suggested():
                    raise
                end = ""
            finally:
                renewing.cancel()
            if end:
                # Loops that still listen get their answer.
                self._board.loop = ""
                await workflow.wait_condition(workflow.all_handlers_finished)
                return end
            if workflow.info().is_continue_as_new_suggested():
                self._board.loop = ""
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(given)
            turn = self._next_turn(turn.term + 1)
            fails = fails + 1 if workflow.now() - began < _FAILED_SOON else 1
            if fails > 1:
                await asyncio.sleep(min(_PAUSE_S * 2 ** min(fails - 2, 8), _LONGEST_PAUSE_S))

    async def _cancel_when_long(self, loop: "workflow.ActivityHandle[Any]") -> None:
        """End the loop when the history of the workflow is long: the next one has a new history."""
        await workflow.wait_condition(lambda: workflow.info().is_continue_as_new_suggested())
        loop.cancel()

    # Messages of the loop

    @workflow.update
    async def ended(self, loop: str, after: int) -> list[Any]:
        """The ends of jobs behind the first `after` of this loop."""
        await workflow.wait_condition(
            lambda: self._board.loop != loop or len(self._board.ended) > after, timeout=WAIT_S
        ) if self._board.loop == loop else None
        return msgspec.to_builtins(self._board.ended[after:]) if self._board.loop == loop else []

    @workflow.signal
    async def submit(self, loop: str, job: dict[str, Any]) -> None:
        assignment = msgspec.convert(job, Assignment)
        if self._board.submit(loop, assignment):
            await self._do(assignment)

    @workflow.signal
    def stop(self, loop: str, job: str, why: str) -> None:
        if self._board.stop(loop, job, why) and job in self._jobs:
            self._jobs[job].cancel()

    async def _do(self, assignment: Assignment) -> None:
        tries = 0
        given = self._given
        while True:
            tries += 1
            turn = JobTurn(given=given, assignment=assignment, tries=tries)
            self._jobs[assignment.id] = activity = workflow.start_activity(
                JOB,
                msgspec.to_builtins(turn),
                task_queue=job_queue(given.project, assignment.labels),
                heartbeat_timeout=timedelta(seconds=given.heartbeat_s),
                start_to_close_timeout=_LONGEST,
                retry_policy=_ONCE,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
            try:
                ended = msgspec.convert(await activity, Ended)
                break
            except (ActivityError, CancelledError) as error:
                if (defect := _defect(error)) is not None:
                    ended = Ended(id=assignment.id, error=defect)
                    break
                if why := self._board.stopping.get(assignment.id):
                    ended = Ended(id=assignment.id, outcome=JobOutcome.STOPPED, reason=why)
                    break
                await asyncio.sleep(min(_PAUSE_S * 2 ** min(tries - 1, 8), _LONGEST_PAUSE_S))
        del self._jobs[assignment.id]
        self._board.end(ended)
