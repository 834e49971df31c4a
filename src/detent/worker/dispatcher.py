"""The dispatcher of a distributed run: its own machine does a job if it can, and the board gives the others away.

A session whose phases follow each other stays on the machine of its loop: nothing is asked of the scheduler between
two phases, and the files are there. Parallel work goes to other machines.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

from detent.core.session.token import parse_token
from detent.errors import DetentError
from detent.run.job import Job, JobClaim, JobResult
from detent.worker.board import Assignment, Ended

if TYPE_CHECKING:
    from detent.run.context import RunContext


class JobError(DetentError):
    """A job of another machine ended with an error."""


class Link(Protocol):
    """The way to the board. Every method may raise `StoreFailed`: the message may then have arrived or not."""

    def attach(self, deliver: Callable[[Ended], None]) -> list[Assignment]:
        """The open jobs of earlier loops. `deliver` gets the end of each job, perhaps twice."""
        ...

    def submit(self, job: Assignment) -> None: ...

    def stop(self, job: str, why: str) -> None: ...

    def close(self) -> None: ...


class Here(Protocol):
    """The machine of the loop. Called in the thread of the loop only."""

    def start(self, job: Assignment) -> "Future[Ended] | None":
        """Do the job here; None if this machine is busy, or lacks a label.

        The future raises the error of a job that another try can end: then the loop itself is tried again.
        """
        ...

    def stop(self, job: str, why: str) -> None:
        """Ask a job that was started here to end."""
        ...

    def close(self) -> None:
        """The loop ended; wait for its jobs."""
        ...


class RemoteDispatcher:
    """A `Dispatcher` whose jobs are done by workers of any machine."""

    def __init__(
        self,
        context: "RunContext",
        link: Link,
        labels: Callable[[str], tuple[str, ...]],
        here: Here | None = None,
        *,
        term: int = 1,
    ) -> None:
        """`labels` are those that a worker must have for a phase. Without `here` all jobs go to the board.

        `term` is that of the loop: the machine of an earlier one may still work.
        """
        self._context, self._link, self._labels, self._here = context, link, labels, here
        self._takes_over = term > 1 or context.took_over
        #: The jobs that this machine does.
        self._own: set[str] = set()
        #: The phases that jobs of this loop were begun for.
        self._begun: set[str] = set()
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
            self._begun.add(job.phase)
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
            takes_over=self._takes_over and job.phase not in self._begun,
        )
        self._begun.add(job.phase)
        future = self._keep(assignment.id, job)
        own = self._here.start(assignment) if self._here is not None else None
        if own is None:
            self._link.submit(assignment)
        else:
            self._own.add(assignment.id)
            own.add_done_callback(lambda done: self._deliver_own(assignment.id, done))
        return future

    def stop(self, job: Job, why: str) -> None:
        if not job.is_stopping():
            job.stop(why)
            name = self._ids[job]
            if self._here is not None and name in self._own:
                self._here.stop(name, why)
            else:
                self._link.stop(name, why)

    def tend(self) -> None:
        """Each worker tends its own jobs."""

    def finished(self, phase: str) -> None:
        """A worker keeps the tree of a session for the next phase."""

    def close(self) -> None:
        """Jobs of other machines outlive the loop: the next one adopts them."""
        self._link.close()
        if self._here is not None:
            self._here.close()

    def _keep(self, name: str, job: Job) -> "Future[JobResult]":
        future: Future[JobResult] = Future()
        self._open[name], self._ids[job] = (job, future), name
        return future

    def _deliver_own(self, name: str, done: "Future[Ended]") -> None:
        error = done.exception()
        if error is None:
            self._deliver(done.result())
            return
        job, future = self._open.pop(name)
        job.has_ended = True
        future.set_exception(error)

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
