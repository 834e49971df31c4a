"""Events of a run, for display. The journal is the truth; a lost event only was not shown."""

from datetime import datetime
from enum import StrEnum

import msgspec

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import AgentEvent


class Need(StrEnum):
    """The kind of help that a run needs from a person."""

    APPROVAL = "approval"
    ANSWER = "answer"
    REVIEW = "review"
    DECISION = "decision"
    #: Work that a person does by hand.
    WORK = "work"


class End(StrEnum):
    """The end of a run. Only COMPLETED and CANCELLED end the session."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    #: Every phase waits for a person.
    WAITING = "waiting"
    #: The run was stopped.
    PAUSED = "paused"
    #: Another run took over the session.
    LOST = "lost"
    #: An error outside the work, such as a damaged journal.
    ERROR = "error"


class _RunEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    at: datetime


class RunStarted(_RunEvent, frozen=True, kw_only=True, tag="run_started"):
    run: str
    session: str
    parallel: int = 1
    #: Descriptions of the work that was recovered from a dead run.
    taken_over: tuple[str, ...] = ()


class TurnStarted(_RunEvent, frozen=True, kw_only=True, tag="turn_started"):
    """An agent starts a turn on a phase, or on one task of it."""

    phase: str
    attempt: int
    turn: int
    #: The name of the agent in the settings, and its role in the phase.
    agent: str
    role: str = ""
    task: str | None = None


class AgentDid(_RunEvent, frozen=True, kw_only=True, tag="agent_did"):
    phase: str
    task: str | None = None
    did: AgentEvent


class StepRan(_RunEvent, frozen=True, kw_only=True, tag="step_ran"):
    """A step of a task's flow ran, before the agent works on the task."""

    phase: str
    task: str
    step: str
    said: str


class Retrying(_RunEvent, frozen=True, kw_only=True, tag="retrying"):
    """The turn failed for a transient reason and is retried after a pause."""

    phase: str
    task: str | None = None
    reason: str
    pause_s: float
    again: int
    of: int


class GateStarted(_RunEvent, frozen=True, kw_only=True, tag="gate_started"):
    phase: str
    gate: str
    command: str = ""


class GateJudged(_RunEvent, frozen=True, kw_only=True, tag="gate_judged"):
    phase: str
    gate: str
    verdict: Verdict
    reason: str


class PhaseEnded(_RunEvent, frozen=True, kw_only=True, tag="phase_ended"):
    phase: str
    attempt: int
    #: completed, failed or skipped
    status: str
    said: str
    warnings: tuple[str, ...] = ()


class TaskEnded(_RunEvent, frozen=True, kw_only=True, tag="task_ended"):
    phase: str
    task: str
    status: str
    said: str = ""


class PersonNeeded(_RunEvent, frozen=True, kw_only=True, tag="person_needed"):
    need: Need
    phase: str
    text: str
    #: The command with which a person helps.
    way_out: str
    #: The question or gate.
    about: str = ""
    #: The phase as people read it.
    where: str = ""
    choices: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The text, with its phase before it."""
        return f"{self.where or self.phase}: {self.text}"

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the need. Its text may change."""
        return self.need, self.phase, self.about or self.text


class RunEnded(_RunEvent, frozen=True, kw_only=True, tag="run_ended"):
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
