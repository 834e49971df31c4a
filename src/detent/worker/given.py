"""The inputs of a session's workflow, its run loop and its jobs; they travel as JSON."""

import msgspec

from detent.worker.board import Assignment

#: The names of the workflow and of its activities.
NAME, LOOP, JOB = "detent-session", "detent-loop", "detent-job"


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a session's workflow."""

    project: str
    session: str
    #: The address of the scheduler.
    on: str
    heartbeat_s: float = 10.0
    #: Whether the loop waits for a person instead of ending.
    wait: bool = True


class LoopTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One try of the loop."""

    given: Given
    #: The workflow, as the ids of runs name it.
    flow: str
    #: The id of the workflow.
    workflow: str
    term: int
    #: The jobs of earlier loops that workers still do.
    open: tuple[Assignment, ...] = ()


class JobTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a job."""

    given: Given
    assignment: Assignment
    tries: int
