"""The jobs that a worker does for a run loop of its own: one at a time, at a workplace that it keeps for the loop."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from detent.errors import DetentError
from detent.worker.board import Assignment, Ended, job_run
from detent.worker.host import PASSING, Hosted, ended_with
from detent.worker.workplace import Teller, Workplace, watch

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle


class OwnJobs:
    """See `Here` of `dispatcher.py`."""

    def __init__(
        self,
        handle: "SessionHandle",
        opened: Callable[[], "AbstractContextManager[Project]"],
        teller: Teller,
        lent_slot: Callable[[Assignment], "AbstractContextManager[object] | None"],
    ) -> None:
        """`handle` is that of the loop. `opened` opens the project. `lent_slot` is None if no slot is free."""
        self._handle, self._open_project, self._teller, self._lent_slot = handle, opened, teller, lent_slot
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="own-job")
        self._workplace: Workplace | None = None
        self._kept = ExitStack()
        #: The jobs that have not ended, and why a job is to stop before it has begun.
        self._jobs: dict[str, Hosted | None] = {}
        self._why: dict[str, str] = {}
        #: No further job is begun here: the loop goes to another worker.
        self.is_leaving = False

    @property
    def is_busy(self) -> bool:
        return bool(self._jobs)

    def start(self, job: Assignment) -> "Future[Ended] | None":
        if self.is_leaving or any(self._works(hosted) for hosted in list(self._jobs.values())):
            return None
        slot = self._lent_slot(job)
        if slot is None:
            return None
        self._jobs[job.id] = None
        return self._thread.submit(self._do, job, slot)

    def stop(self, job: str, why: str) -> None:
        self._why[job] = why
        hosted = self._jobs.get(job)
        if hosted is not None:
            hosted.job.stop(why)

    def watch(self) -> None:
        """Called several times a second, in any thread."""
        for hosted in list(self._jobs.values()):
            if hosted is not None:
                watch(hosted)

    def stop_all(self, why: str) -> None:
        for job in list(self._jobs):
            self.stop(job, why)

    def close(self) -> None:
        self._thread.submit(self._kept.close)
        self._thread.shutdown()

    def _works(self, hosted: Hosted | None) -> bool:
        """Whether the job still works on its attempt. A job whose attempt is over in the journal ends at once."""
        claim = hosted.job.claim if hosted is not None else None
        return claim is None or claim.is_live(self._handle.state)

    def _do(self, job: Assignment, slot: "AbstractContextManager[object]") -> Ended:
        try:
            with slot:
                workplace = self._workplace or self._make_workplace()
                self._jobs[job.id] = hosted = workplace.host(job, job_run(job.id, 1))
                if why := self._why.get(job.id):
                    hosted.job.stop(why)
                return workplace.do(hosted)
        except PASSING:
            raise
        except DetentError as error:
            return ended_with(job, error)
        finally:
            del self._jobs[job.id]

    def _make_workplace(self) -> Workplace:
        outer = self._kept.enter_context(self._open_project())
        self._workplace = self._kept.enter_context(Workplace(outer, self._handle.id, self._teller))
        return self._workplace
