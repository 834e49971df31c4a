"""A job: one worker on an attempt of a phase, or on a task of it; its claim, and its result."""

import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from detent.core.run.agent_event import Failure
from detent.core.run.run_event import RunEvent
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.session.token import Token
from detent.errors import Conflict, DetentError

if TYPE_CHECKING:
    from detent.run.context import RunContext

Result = TypeVar("Result")
#: Tries of a commit that other jobs overtake with their files.
MAX_SETTLES = 20


class FilesConflict(DetentError):
    """Parallel jobs in trees of their own changed the same file."""


class JobFiles(Protocol):
    """The files of a job that works in a tree of its own, beside other jobs of the session."""

    def settle(self) -> Callable[[], None]:
        """Take the files of jobs that finished since. Returns a check for the commit: `Conflict` if one more did.

        Raises `FilesConflict` if the job changed one of them too.
        """
        ...


class JobOutcome(StrEnum):
    FINISHED = "finished"
    FAILED = "failed"
    #: Only a person can open the closed gates.
    HELD = "held"
    #: The job escalated to a person.
    ESCALATED = "escalated"
    #: The phase has begun; further jobs do its tasks.
    BEGUN = "begun"
    STOPPED = "stopped"
    #: Another process ended the attempt or took the task.
    ELSEWHERE = "elsewhere"


class JobResult(NamedTuple):
    outcome: JobOutcome
    failure: Failure | None = None
    reason: str = ""
    #: Version of the session that was judged, for an attempt that is held.
    version: int = 0


class JobClaim(NamedTuple):
    """An attempt of a phase, or a task under a claim."""

    token: Token
    task: str | None = None
    fence: int = 0

    def is_live(self, session: Session) -> bool:
        """Whether the attempt or task is still in progress under this claim."""
        if session.status is not SessionStatus.ACTIVE:
            return False
        phase = self.token.phase
        if session.phases[phase].status is not Status.IN_PROGRESS:
            return False
        return self.is_held(session) if self.task is not None else session.token(phase) == self.token

    def is_held(self, session: Session) -> bool:
        """Whether this claim still holds the task."""
        held = session.claims.get(self.task or "")
        return held is not None and held.fence == self.fence


class Job:
    """A unit of work of one worker. Any thread may stop it, with a reason."""

    def __init__(self, context: "RunContext", phase: str, *, version: int, does_task: bool = False) -> None:
        self.context, self.phase = context, phase
        #: Version of the session in which the phase was runnable.
        self.version = version
        #: Whether it does the next task of the phase, not the phase itself.
        self.does_task = does_task
        #: Set once the job has begun an attempt or taken a task.
        self.claim: JobClaim | None = None
        #: Whether an agent was given a turn.
        self.had_turn = False
        #: Whether a check of one of its gates is running.
        self.is_at_gate = False
        #: Whether the job may go on with an attempt in progress; another worker may have begun it.
        self.may_resume: Callable[[Session], bool] = lambda session: True  # noqa: ARG005
        #: Set for a job that works in a tree of its own.
        self.files: JobFiles | None = None
        self.why_stopped = ""
        self.has_ended = False
        self._stop = threading.Event()

    @property
    def task(self) -> str | None:
        return self.claim.task if self.claim is not None else None

    @property
    def token(self) -> Token:
        assert self.claim is not None
        return self.claim.token

    def settled(self, commit: Callable[[Callable[[], None] | None], Result]) -> Result:
        """Commit with the files of the jobs that finished since; `commit` gets a check that it makes under the lock."""
        if self.files is None:
            return commit(None)
        for _ in range(MAX_SETTLES - 1):
            check = self.files.settle()
            with suppress(Conflict):
                return commit(check)
        return commit(self.files.settle())

    def stop(self, why: str) -> None:
        self.why_stopped = self.why_stopped or why
        self._stop.set()

    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def tell(self, event: Callable[..., RunEvent], **fields: Any) -> None:
        """Report an event of the job's phase."""
        self.context.tell(event(at=self.context.clock(), phase=self.phase, **fields))

    def wait(self, pause_s: float) -> None:
        """Wait, or return at once when the job is stopped."""
        self._stop.wait(pause_s)
