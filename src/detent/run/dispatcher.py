"""The dispatcher port: gives the jobs of a run to workers and returns their results.

The run loop decides what is runnable (`run/policy.py`), wherever the work is done. `LocalDispatcher` uses threads of
this process, `worker/dispatcher.py` workers of other machines. `tests/support/dispatcher_contract.py` holds both to the
same contract.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from detent.engine.agents import environment as variables
from detent.process.marked import end_marked
from detent.run.job import Job, JobResult
from detent.run.phase_run import PhaseRun
from detent.run.task_run import TaskRun
from detent.run.workspaces import Workspaces

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.run.context import RunContext


class Dispatcher(Protocol):
    """Called in the thread of the run loop only."""

    def end_left_behind(self) -> int:
        """End the processes that earlier runs of the session left on this machine. Returns their number."""
        ...

    def adopt(self) -> "list[tuple[Job, Future[JobResult]]]":
        """The jobs of an earlier loop that workers still do; recovery leaves them alone."""
        ...

    def start(self, job: Job) -> "Future[JobResult]":
        """Give the job to a worker. The future ends exactly once: with the result, or with the error of the job.

        When it ends, `job.claim` and `job.had_turn` are those of the work that was done.
        """
        ...

    def stop(self, job: Job, why: str) -> None:
        """Ask the worker to end the job. Its future ends with `STOPPED`, or with the result if that came first."""
        ...

    def tend(self) -> None:
        """Called several times a second: does what stopping jobs need to end."""
        ...

    def finished(self, phase: str) -> None:
        """The phase is finished; its workspace is no longer needed."""
        ...

    def close(self) -> None:
        """The loop ended. Jobs that cannot outlive it are stopped and waited for."""
        ...


#: Makes the dispatcher of one run.
MakeDispatcher = Callable[["Project", "RunContext"], Dispatcher]


class LocalDispatcher:
    """Each job on a thread of this process."""

    def __init__(self, project: "Project", context: "RunContext") -> None:
        self._context, self._state = context, project.store.location("")
        self._workspaces = Workspaces(project, context.session)
        self._pool = ThreadPoolExecutor(max_workers=context.options.parallel)
        self._jobs: list[Job] = []

    def end_left_behind(self) -> int:
        return end_marked(f"{variables.SESSION}={self._context.session}", f"{variables.STATE}={self._state}")

    def adopt(self) -> "list[tuple[Job, Future[JobResult]]]":
        """Threads end with their process."""
        return []

    def start(self, job: Job) -> "Future[JobResult]":
        self._jobs = [other for other in self._jobs if not other.has_ended]
        self._jobs.append(job)
        return self._pool.submit(self._do, job)

    def stop(self, job: Job, why: str) -> None:
        job.stop(why)

    def tend(self) -> None:
        """End the checks of gates whose job is stopping; they do not watch for it themselves."""
        for job in self._jobs:
            if job.is_stopping() and job.is_at_gate and job.claim is not None:
                end_marked(f"{variables.RUN}={self._context.run}", f"{variables.GATE}={job.claim.token}")

    def finished(self, phase: str) -> None:
        self._workspaces.done(phase)

    def close(self) -> None:
        for job in self._jobs:
            job.stop("the run ended")
        self.tend()
        self._pool.shutdown()
        self._workspaces.close()
        # End processes that a gate, a step or an agent has left behind.
        end_marked(f"{variables.RUN}={self._context.run}")

    def _do(self, job: Job) -> JobResult:
        try:
            return do_job(self._workspaces.project(job.phase), job)
        finally:
            job.has_ended = True


def do_job(project: "Project", job: Job) -> JobResult:
    """Do the job in this thread: an attempt of its phase, or the next task of it."""
    if job.does_task:
        return TaskRun(project, job, pid=os.getpid()).run()
    return PhaseRun(project, job).run()
