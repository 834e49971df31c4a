"""Somebody at work on an attempt of a phase, or on a task of it."""

import threading
from typing import TYPE_CHECKING, NamedTuple

from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.session.token import Token

if TYPE_CHECKING:
    from detent.run.context import RunContext


class JobClaim(NamedTuple):
    """An attempt of a phase, or a task under a claim."""

    token: Token
    task: str | None = None
    fence: int = 0

    def is_live(self, session: Session) -> bool:
        """Whether it still goes on, as far as anybody knows."""
        if session.status is not SessionStatus.ACTIVE:
            return False
        phase = self.token.phase
        if session.phases[phase].status is not Status.IN_PROGRESS:
            return False
        return self.is_held(session) if self.task is not None else session.token(phase) == self.token

    def is_held(self, session: Session) -> bool:
        """Whether the task is still in the hands that took it."""
        held = session.claims.get(self.task or "")
        return held is not None and held.fence == self.fence


class Job:
    """May be told to stop, from any thread, with a reason."""

    def __init__(self, run_context: "RunContext", phase: str, *, version: int) -> None:
        self.run_context, self.phase = run_context, phase
        #: Of the session in which it was found that there is something to do.
        self.version = version
        #: What is worked on, once that is known.
        self.claim: JobClaim | None = None
        #: Whether an agent was given a turn.
        self.had_turn = False
        #: Whether a check runs for one of its gates.
        self.is_at_gate = False
        self.why_stopped = ""
        self._stop = threading.Event()

    @property
    def task(self) -> str | None:
        return self.claim.task if self.claim is not None else None

    def stop(self, why: str) -> None:
        self.why_stopped = self.why_stopped or why
        self._stop.set()

    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def wait(self, pause_s: float) -> None:
        self._stop.wait(pause_s)
