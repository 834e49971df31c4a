"""How the work on an attempt, or on a task, ended."""

from enum import StrEnum
from typing import NamedTuple

from detent.core.agent_event import Failure


class Came(StrEnum):
    """How the work on an attempt ended."""

    FINISHED = "finished"
    FAILED = "failed"
    #: Only a person can open what is closed.
    HELD = "held"
    #: A person has been asked to decide.
    ESCALATED = "escalated"
    #: The phase is begun, and the rest is its tasks'.
    BEGUN = "begun"
    STOPPED = "stopped"
    #: Somebody else ended the attempt.
    ELSEWHERE = "elsewhere"


class Ended(NamedTuple):
    came: Came
    failure: Failure | None = None
    reason: str = ""
