"""The session: the value that its events lead to, and the facts that follow from it."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from detent.core.gate import Gate
from detent.core.gate.evidence import Program, Toolchain
from detent.core.gate.registry import decode_gate
from detent.core.lazy import lazy
from detent.core.session.events import Claim, Discovery, Options
from detent.core.session.phase_state import PhaseState, Tokens
from detent.core.session.phases import Phases
from detent.core.session.status import Status
from detent.core.session.token import Token
from detent.core.task.complexity import Complexity
from detent.core.task.plan import Plan
from detent.core.task.row import Row
from detent.core.testrun.baseline import Baseline
from detent.core.workflow.graph import Workflow

NO_TASKS = Plan()
#: The phases of a workflow that tasks move.
TASK_PHASES = ("PLAN", "IMPLEMENT", "REVIEW")
#: The ways to decide an escalation.
RESOLUTIONS = ("retry", "skip", "cancel")


class SessionStatus(StrEnum):
    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Escalation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem that a person has to decide."""

    kind: str
    phase: str
    gate: str | None = None
    detail: str
    at: datetime


def resolve_commands(phase: str) -> tuple[str, ...]:
    """The commands that decide the escalations of a phase, without the program."""
    return tuple(f"resolve {action} {phase}" for action in RESOLUTIONS)


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question of an agent that waits for a person's answer."""

    id: str
    phase: str
    text: str
    choices: tuple[str, ...] = ()
    at: datetime


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the session's history: who did what, when."""

    timestamp: datetime
    agent: str
    action: str


class LastRollback(msgspec.Struct, frozen=True, kw_only=True):
    """The last rollback, as far as undoing it needs to know."""

    id: str
    safety: str
    paths: tuple[str, ...] = ()
    phase_only: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    id: str
    task: str
    workflow: Workflow
    number: int | None
    folder: str
    branch: str | None
    discovery: Discovery | None
    started_at: datetime
    #: Time of the last commit.
    updated_at: datetime
    base: int = 0
    version: int = 0
    status: SessionStatus = SessionStatus.ACTIVE
    ended_at: datetime | None = None
    cancel_reason: str | None = None
    merged_commit: str | None = None
    forced: bool = False
    phases: Phases
    notes: tuple[Note, ...] = ()
    options: Options = Options()
    toolchain: Toolchain | None = None
    #: The first word of a gate's command to the program that it meant at the start, or at the first run.
    programs: dict[str, Program] = {}
    #: Digest of the manifest of the protected files at the start.
    protected: str | None = None
    #: Seconds between the start and the time in the id of the workflow document.
    id_later_s: int = 0
    escalations: tuple[Escalation, ...] = ()
    #: Document to the digest of the edit that the last commit adopted: after a crash the file may still have that text.
    adopted: dict[str, str] = {}
    carried: dict[str, dict[str, Any]] = {}
    #: The last checkpoint and the last rollback.
    checkpoint: str | None = None
    rollback: LastRollback | None = None
    tasks: Plan = NO_TASKS
    #: The sum of the hashes of all tasks, so that a change of one does not hash the others.
    tasks_sum: str = ""
    #: Ids of removed tasks. An id is never used again.
    retired: tuple[str, ...] = ()
    #: Task to its claim.
    claims: dict[str, Claim] = {}
    #: Number of tasks that were added by agents and runs, not by a person.
    added_tasks: int = 0
    complexity: Complexity = Complexity.SIMPLE
    paused_at: datetime | None = None
    archived: bool = False
    questions: tuple[Question, ...] = ()
    #: The tests as they were when the session began.
    baseline: Baseline = Baseline()

    @lazy
    def active_order(self) -> tuple[str, ...]:
        """All phases but the skipped ones, in graph order."""
        if not self.phases.with_status(Status.SKIPPED):
            return self.workflow.order
        return tuple(k for k in self.workflow.order if self.phases[k].status is not Status.SKIPPED)

    @property
    def state_version(self) -> int:
        """The version in the project's state document."""
        return self.base + self.version

    @property
    def work_id(self) -> str | None:
        """The id in the project's history, such as REQ-0005."""
        if self.workflow.prefix is None or self.number is None:
            return None
        return f"{self.workflow.prefix}-{self.number:04d}"

    @property
    def shows_tasks(self) -> bool:
        """Whether it has views of the tasks: with the first task, or from the start if the workflow is about them."""
        return len(self.tasks) > 0 or self.workflow.order == TASK_PHASES

    @property
    def gates_apply(self) -> bool:
        return self.options.gates

    def gates(self, phase: str) -> tuple[Gate, ...]:
        """The gates that the phase has to pass."""
        return self.workflow.by_key[phase].gates if self.options.gates else ()

    @property
    def all_tokens(self) -> Tokens:
        return sum((state.all_tokens for state in self.phases.values()), Tokens())

    def is_supervised(self, phase: str) -> bool:
        """Whether a person reviews the phase before later phases begin."""
        chosen = self.options.supervised
        return chosen is not None and (not chosen.phases or any(phase.startswith(key) for key in chosen.phases))

    @lazy
    def awaiting_review(self) -> tuple[str, ...]:
        if self.options.supervised is None:
            return ()
        return tuple(k for k in self.workflow.order if self.phases[k].review in ("pending", "reviewing"))

    def with_status(self, *statuses: Status) -> tuple[str, ...]:
        """The keys of the phases with one of these statuses, in graph order."""
        return self.phases.with_status(*statuses)

    @property
    def now_protected(self) -> str | None:
        """Digest of the protected files: those of the start, or of the phase that rewrote tests last."""
        key = self.tests_rewritten_by
        return self.protected if key is None else self.phases[key].protected

    @property
    def tests_rewritten_by(self) -> str | None:
        """The phase that rewrote tests last; None if they are those of the start."""
        rewritten = [
            (state.completed, phase.key)
            for phase in self.workflow.phases
            if phase.rewrites_tests and (state := self.phases[phase.key]).protected is not None and state.completed
        ]
        return max(rewritten)[1] if rewritten else None

    @property
    def has_ended(self) -> bool:
        return self.status is not SessionStatus.ACTIVE

    @property
    def in_progress(self) -> tuple[str, ...]:
        """The phases in progress, in graph order."""
        return self.phases.with_status(Status.IN_PROGRESS)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The phases that are neither completed nor skipped."""
        return self.with_status(Status.PENDING, Status.IN_PROGRESS, Status.FAILED)

    @property
    def declared(self) -> tuple[str, ...]:
        """The artifacts of all phases, each once."""
        return self.phases.artifacts

    def is_settled(self, phase: str) -> bool:
        """Whether no phase waits for it: it is completed, or skipped with nothing open before it."""
        return self.phases[phase].status is Status.COMPLETED or phase in self._passed_over

    @lazy
    def _passed_over(self) -> frozenset[str]:
        settled: set[str] = set()
        for key in self.with_status(Status.SKIPPED):
            needs = self.workflow.by_key[key].needs
            if all(need in settled or self.phases[need].status is Status.COMPLETED for need in needs):
                settled.add(key)
        return frozenset(settled)

    def open_needs(self, phase: str) -> tuple[str, ...]:
        """The phases that this one waits for; in place of a skipped phase, those that it waits for."""
        seen: dict[str, None] = {}
        waiting = deque(self.workflow.by_key[phase].needs)
        while waiting:
            need = waiting.popleft()
            if need in seen or self.is_settled(need):
                continue
            seen[need] = None
            if self.phases[need].status is Status.SKIPPED:
                waiting += self.workflow.by_key[need].needs
        return tuple([need for need in seen if self.phases[need].status is not Status.SKIPPED]) if seen else ()

    @lazy
    def ready(self) -> tuple[str, ...]:
        """The phases that can begin now."""
        return tuple(self.each_ready())

    def each_ready(self) -> Iterator[str]:
        by_key, is_settled = self.workflow.by_key, self.is_settled
        for chunk, entries in zip(self.phases.chunks, self.workflow.entries, strict=True):
            pending = chunk.by_status.get(Status.PENDING)
            if pending is None:
                continue
            # If all are pending, only phases that need none of the chunk can be ready.
            near = entries if len(pending) == len(chunk.keys) else pending
            yield from (key for key in near if all(map(is_settled, by_key[key].needs)))

    def token(self, phase: str) -> Token:
        """The token of the last attempt of the phase."""
        state = self.phases[phase]
        return Token(phase, state.attempt, state.fence)


def encode_session(session: Session) -> bytes:
    """The session as JSON, for the snapshot file."""
    return _encode(session)


def decode_session(data: bytes | msgspec.Raw) -> Session:
    # Without a decoder of its own: most commands read no snapshot, and making one takes as long as reading a journal.
    return msgspec.json.decode(data, type=Session, dec_hook=_unplain)


def _plain(value: object) -> object:
    if isinstance(value, Plan):
        return list(value)
    if isinstance(value, Phases):
        return dict(value.items())
    raise NotImplementedError(f"{type(value).__name__} is not stored")


def _unplain(kind: type, value: object) -> object:
    if kind is Phases:
        return Phases(msgspec.convert(value, dict[str, PhaseState]))
    return Plan(msgspec.convert(value, list[Row])) if kind is Plan else decode_gate(kind, value)


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
