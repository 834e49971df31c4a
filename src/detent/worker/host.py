"""Does one assignment on this machine: takes over what a dead worker left, does the job, says how it ended."""

from contextlib import suppress
from typing import TYPE_CHECKING

from detent.core.session.budget import budget_escalation
from detent.core.session.commands import Fail
from detent.core.session.open_decision import task_phase
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.errors import Conflict, DetentError, LockTimeout, Refused, StoreFailed
from detent.run.dispatcher import do_job
from detent.run.job import Job, JobOutcome, JobResult
from detent.run.recovery import recover
from detent.worker.board import Assignment, Ended, Order, order_of

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.run.context import RunContext

#: Errors that another try, perhaps on another machine, can end.
PASSING = (StoreFailed, LockTimeout, Conflict)


class Hosted:
    """A job of an assignment, on a project of its own."""

    def __init__(self, project: "Project", context: "RunContext", assignment: Assignment) -> None:
        self._project, self._context, self._assignment = project, context, assignment
        # The tree of this machine says nothing about the attempt of another one.
        self._handle = project.session(context.session).without_checkpoints()
        self.job = Job(context, assignment.phase, version=assignment.version, does_task=assignment.does_task)
        # A worker may freeze after it fenced off others, and wake when a later worker has begun an attempt.
        self.job.may_resume = lambda session: not self._others(session)
        context.failures.update(assignment.failures)
        context.busy = 1

    def run(self, *, is_retry: bool) -> Ended:
        """Do the job. `is_retry`: a worker that had it before is dead, or cut off."""
        is_own = self.job.does_task or self._fence_off(is_retry=is_retry)
        result = do_job(self._project, self.job) if is_own else JobResult(JobOutcome.ELSEWHERE)
        claim = self.job.claim
        return Ended(
            id=self._assignment.id,
            outcome=result.outcome,
            failure=result.failure,
            reason=result.reason,
            version=result.version,
            token=str(claim.token) if claim is not None else "",
            task=claim.task if claim is not None else None,
            fence=claim.fence if claim is not None else 0,
            had_turn=self.job.had_turn,
            turns=self._context.turns,
        )

    def _fence_off(self, *, is_retry: bool) -> bool:
        """End the attempt of a worker that is gone: its token is refused from here on. False if a later worker has it.

        An attempt whose work is recorded goes on, with its files and its gates.
        """
        phase, session = self.job.phase, self._handle.state
        own, left = order_of(self._context.run), self._others(session)
        if own is not None and any(other.is_after(own) for other in left):
            return False
        # A worker that ended its attempt after all is no problem: the job looks at the session again.
        with suppress(Refused):
            if left:
                others = set(session.phases) - {phase}
                recover(self._project, self._handle, self._context.agents, in_flight=others)
            if is_retry or self._assignment.takes_over:
                self._fail_idle(phase)
        return True

    def _others(self, session: Session) -> list[Order]:
        """The workers whose agents have an open turn of the phase; this one is not among them."""
        orders = (
            order_of(delegation.agent_id)
            for delegation in session.phases[self.job.phase].delegations
            if delegation.ended_at is None
        )
        own = order_of(self._context.run)
        return [order for order in orders if order is not None and order != own]

    def _fail_idle(self, phase: str) -> None:
        """Fail an attempt that a worker resumed: it may have frozen before it recorded an agent."""
        with self._handle.reading() as session:
            has_tasks = phase == task_phase(session) and len(session.tasks) > 0
        state = session.phases[phase]
        if state.status is Status.IN_PROGRESS and state.report is None and not has_tasks:
            error = "interrupted: the worker that had the attempt is gone"
            self._handle.execute(Fail(token=session.token(phase), error=error))

    def watch(self) -> None:
        """Stop the job if its attempt was ended elsewhere, or is over its budget. Called several times a second."""
        claim = self.job.claim
        if claim is None or self.job.is_stopping():
            return
        session = self._handle.state
        if not claim.is_live(session):
            self.job.stop("another process ended the attempt")
        elif raised := budget_escalation(session, self.job.phase, self._handle.now()):
            try:
                # Escalate first, or the loop would begin the stopped attempt again.
                self._handle.escalate(raised[0].kind, self.job.phase, raised[0].detail)
            except Refused:
                return
            self.job.stop(raised[0].detail)


def ended_with(assignment: Assignment, error: DetentError) -> Ended:
    """The end of a job that an error ended."""
    return Ended(id=assignment.id, error=error.message)
