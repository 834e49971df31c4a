"""The dispatcher of a distributed run: gives jobs to the board of the session, and learns their ends from it."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

from detent.core.session.token import parse_token
from detent.errors import Conflict, DetentError
from detent.run.job import Job, JobClaim, JobResult
from detent.worker.board import Assignment, Ended

if TYPE_CHECKING:
    from detent.run.context import RunContext


def superseded(session: str) -> Conflict:
    return Conflict(f"a later run loop has {session}", way_out="detent watch")


class JobError(DetentError):
    """A job of another machine ended with an error."""


class Link(Protocol):
    """The way to the board. Every method may raise `StoreFailed`: the message may then have arrived or not."""

    def attach(self, deliver: Callable[[Ended], None]) -> list[Assignment]:
        """Become the loop of the session. Returns the open jobs; `deliver` gets the end of each job, perhaps twice.

        `Conflict` if a later loop has the session.
        """
        ...

    def submit(self, job: Assignment) -> None: ...

    def stop(self, job: str, why: str) -> None: ...

    def close(self) -> None: ...


class RemoteDispatcher:
    """A `Dispatcher` whose jobs are done by workers of any machine."""

    def __init__(self, context: "RunContext", link: Link, labels: Callable[[str], tuple[str, ...]]) -> None:
        """`labels` are those that a worker must have for a phase."""
        self._context, self._link, self._labels = context, link, labels
        self._open: dict[str, tuple[Job, Future[JobResult]]] = {}
        self._ids: dict[Job, str] = {}
        self._count = 0

    def end_left_behind(self) -> int:
        """Each worker ends the processes of its own jobs."""
        return 0

    def adopt(self) -> list[tuple[Job, "Future[JobResult]"]]:
        for assignment in self._link.attach(self._deliver):
            job = Job(self._context, assignment.phase, version=assignment.version, does_task=assignment.does_task)
            self._keep(assignment.id, job)
        return list(self._open.values())

    def start(self, job: Job) -> "Future[JobResult]":
        self._count += 1
        assignment = Assignment(
            id=f"{self._context.run}-{self._count}",
            phase=job.phase,
            version=job.version,
            does_task=job.does_task,
            labels=self._labels(job.phase),
            failures=self._context.failures if job.does_task else {},
        )
        future = self._keep(assignment.id, job)
        self._link.submit(assignment)
        return future

    def stop(self, job: Job, why: str) -> None:
        if not job.is_stopping():
            job.stop(why)
            self._link.stop(self._ids[job], why)

    def tend(self) -> None:
        """Each worker tends its own jobs."""

    def finished(self, phase: str) -> None:
        """A worker keeps the tree of a session for the next phase."""

    def close(self) -> None:
        """Jobs outlive the loop: the next one adopts them."""
        self._link.close()

    def _keep(self, name: str, job: Job) -> "Future[JobResult]":
        future: Future[JobResult] = Future()
        self._open[name], self._ids[job] = (job, future), name
        return future

    def _deliver(self, ended: Ended) -> None:
        job, future = self._open.pop(ended.id, (None, None))
        if job is None or future is None:
            return
        job.has_ended, job.had_turn = True, ended.had_turn
        job.claim = JobClaim(parse_token(ended.token), ended.task, ended.fence) if ended.token else None
        self._context.count_turns(ended.turns)
        if ended.error:
            future.set_exception(JobError(ended.error))
        else:
            future.set_result(JobResult(ended.outcome, ended.failure, ended.reason, ended.version))
