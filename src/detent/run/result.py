"""How the work on an attempt, or on a task, ended."""

from enum import StrEnum
from typing import NamedTuple

from detent.core.run.agent_event import Failure


class JobOutcome(StrEnum):
    FINISHED = "finished"
    FAILED = "failed"
    #: Only a person can open what is closed.
    HELD = "held"
    #: A person has been asked to decide.
    ESCALATED = "escalated"
    #: The phase is begun, and the rest is its tasks'.
    BEGUN = "begun"
    STOPPED = "stopped"
    #: Somebody else ended it.
    ELSEWHERE = "elsewhere"


class JobResult(NamedTuple):
    outcome: JobOutcome
    failure: Failure | None = None
    reason: str = ""
    #: Of the session that was judged, for an attempt that is held.
    version: int = 0
