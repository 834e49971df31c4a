"""What a run tells whoever looks on. Not the truth, which is the journal: what is lost here was only shown."""

from datetime import datetime
from enum import StrEnum

import msgspec

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import AgentEvent


class Need(StrEnum):
    """What a person is needed for."""

    APPROVAL = "approval"
    ANSWER = "answer"
    REVIEW = "review"
    DECISION = "decision"
    #: Work that a person does by hand.
    WORK = "work"


class End(StrEnum):
    """How a run ended. Only the first means that the session is over."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    #: Nothing can go on before a person has done something.
    WAITING = "waiting"
    #: Somebody stopped it.
    PAUSED = "paused"
    #: Another runner took the session over.
    LOST = "lost"
    #: Something went wrong that has nothing to do with the work, such as a journal that was damaged.
    ERROR = "error"


class _Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    at: datetime


class RunStarted(_Told, frozen=True, kw_only=True, tag="run_started"):
    run: str
    session: str
    parallel: int = 1
    #: What was taken over from a run that died, in words.
    taken_over: tuple[str, ...] = ()


class TurnStarted(_Told, frozen=True, kw_only=True, tag="turn_started"):
    """An agent sets to work on a phase, or on one task of it."""

    phase: str
    attempt: int
    turn: int
    #: The agent's name in the settings, and the role that it has in the phase.
    agent: str
    role: str = ""
    task: str | None = None


class AgentDid(_Told, frozen=True, kw_only=True, tag="agent_did"):
    phase: str
    task: str | None = None
    did: AgentEvent


class StepRan(_Told, frozen=True, kw_only=True, tag="step_ran"):
    """A step of a task's flow, before the agent works on the task."""

    phase: str
    task: str
    step: str
    said: str


class Retrying(_Told, frozen=True, kw_only=True, tag="retrying"):
    """The turn failed for a passing reason and is tried again after a pause."""

    phase: str
    task: str | None = None
    reason: str
    pause_s: float
    again: int
    of: int


class GateStarted(_Told, frozen=True, kw_only=True, tag="gate_started"):
    phase: str
    gate: str
    command: str = ""


class GateJudged(_Told, frozen=True, kw_only=True, tag="gate_judged"):
    phase: str
    gate: str
    verdict: Verdict
    reason: str


class PhaseEnded(_Told, frozen=True, kw_only=True, tag="phase_ended"):
    phase: str
    attempt: int
    #: completed, failed or skipped
    status: str
    said: str
    warnings: tuple[str, ...] = ()


class TaskEnded(_Told, frozen=True, kw_only=True, tag="task_ended"):
    phase: str
    task: str
    status: str
    said: str = ""


class PersonNeeded(_Told, frozen=True, kw_only=True, tag="person_needed"):
    need: Need
    phase: str
    text: str
    #: The command that gives what is needed.
    way_out: str
    #: The question or gate that it is about.
    about: str = ""
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The same as long as it is about the same thing; what is said about it may change."""
        return self.need, self.phase, self.about or self.text


class RunEnded(_Told, frozen=True, kw_only=True, tag="run_ended"):
    end: End
    said: str = ""


RunEvent = (
    RunStarted
    | TurnStarted
    | AgentDid
    | StepRan
    | Retrying
    | GateStarted
    | GateJudged
    | PhaseEnded
    | TaskEnded
    | PersonNeeded
    | RunEnded
)
