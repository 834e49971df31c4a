"""What can have happened. Events are facts: past tense, immutable, and never reinterpreted once written."""

from datetime import datetime
from typing import Any

import msgspec

from detent.core.actor import Actor
from detent.core.checkpoint.checkpoint import CheckpointKind, Taken, Tree
from detent.core.gate.evidence import Receipt
from detent.core.session.phase_state import PhaseState, Report, Tokens, ToolUse
from detent.core.workflow.graph import Workflow


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about the code base before the session, and when."""

    text: str
    at: datetime


class Supervised(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A person looks at finished phases before the next one begins."""

    #: Keys, or the two digits they start with; none means all.
    phases: tuple[str, ...] = ()
    max_redos: int = 3


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits that nobody stops at silently: near one is said, over one is a person's decision."""

    minutes: float | None = None
    phase_minutes: float | None = None
    tokens: int | None = None
    phase_tokens: int | None = None
    cost: float | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the session is held, pinned when it starts."""

    gates: bool = True
    supervised: Supervised | None = None
    budget: Budget | None = None


class SessionStarted(_Event, frozen=True, kw_only=True, tag="session_started"):
    session: str
    task: str
    workflow: Workflow
    #: Number in the ids of this project (5 in REQ-0005); none where the workflow has no prefix.
    number: int | None = None
    folder: str
    branch: str | None = None
    discovery: Discovery | None = None
    #: Version of the project's state document before this session, so that it never counts down.
    base: int = 0
    options: Options = Options()


class ImportedPhase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a phase stood in the document that a session was made from."""

    status: str
    started: datetime | None = None
    completed: datetime | None = None
    gate_passed: datetime | None = None
    attempt: int = 0
    summary: str | None = None
    artifacts: tuple[str, ...] = ()


class PhasesImported(_Event, frozen=True, kw_only=True, tag="phases_imported"):
    """Follows `SessionStarted` when the session was made from an existing state document."""

    source: str
    started_at: datetime | None = None
    phases: dict[str, ImportedPhase]
    #: Top-level and workflow keys of the document that Detent has no meaning for; given back on export.
    carried: dict[str, dict[str, Any]] = {}


class PhaseBegun(_Event, frozen=True, kw_only=True, tag="phase_begun"):
    phase: str
    attempt: int
    agent: str = ""
    protected: str | None = None


class PhaseRedone(_Event, frozen=True, kw_only=True, tag="phase_redone"):
    """A further attempt of a phase that was begun before."""

    phase: str
    attempt: int
    agent: str = ""
    reason: str = ""
    protected: str | None = None


class PhaseFinished(_Event, frozen=True, kw_only=True, tag="phase_finished"):
    phase: str
    attempt: int
    summary: str
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    tokens: Tokens = Tokens()
    tools: tuple[ToolUse, ...] = ()
    tools_dropped: int = 0


class PhaseFailed(_Event, frozen=True, kw_only=True, tag="phase_failed"):
    phase: str
    attempt: int
    error: str
    artifacts: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    tools: tuple[ToolUse, ...] = ()
    tools_dropped: int = 0


class PhaseSkipped(_Event, frozen=True, kw_only=True, tag="phase_skipped"):
    phase: str
    reason: str


class PhaseReset(_Event, frozen=True, kw_only=True, tag="phase_reset"):
    """The phase has to be done again because something it builds on is done again."""

    phase: str
    reason: str


class GateChecked(_Event, frozen=True, kw_only=True, tag="gate_checked"):
    """A run was made, seen or reported for a gate."""

    phase: str
    gate: str
    receipt: Receipt


class QuestionAnswered(_Event, frozen=True, kw_only=True, tag="question_answered"):
    """A person answered; `choice` is set when it said how to go on."""

    phase: str
    gate: str
    choice: str | None = None


class VoteCast(_Event, frozen=True, kw_only=True, tag="vote_cast"):
    phase: str
    gate: str
    approver: str
    approve: bool
    reason: str = ""


class GateApproved(_Event, frozen=True, kw_only=True, tag="gate_approved"):
    """A person opened the gate by hand and said why."""

    phase: str
    gate: str
    reason: str


class AgentLaunched(_Event, frozen=True, kw_only=True, tag="agent_launched"):
    phase: str
    agent: str
    agent_id: str


class AgentEnded(_Event, frozen=True, kw_only=True, tag="agent_ended"):
    phase: str
    agent_id: str
    succeeded: bool
    report: Report | None = None


class QuestionAsked(_Event, frozen=True, kw_only=True, tag="question_asked"):
    """An agent wants to know something from a person before it goes on."""

    id: str
    phase: str
    text: str
    choices: tuple[str, ...] = ()


class QuestionReplied(_Event, frozen=True, kw_only=True, tag="question_replied"):
    id: str
    phase: str
    answer: str


class EscalationRaised(_Event, frozen=True, kw_only=True, tag="escalation_raised"):
    """Work is held up in a way that a person must resolve."""

    kind: str
    phase: str
    gate: str | None = None
    detail: str


class EscalationsResolved(_Event, frozen=True, kw_only=True, tag="escalations_resolved"):
    """A person decided: `retry` starts the counting anew, `skip` and `cancel` come with their own events."""

    action: str
    reason: str = ""
    #: Only what was asked about this phase; all of it if none is named.
    phase: str | None = None


class PhaseReviewed(_Event, frozen=True, kw_only=True, tag="phase_reviewed"):
    """A person looked at a finished phase: continue, review (still looking) or redo."""

    phase: str
    decision: str
    note: str = ""


class SessionCompleted(_Event, frozen=True, kw_only=True, tag="session_completed"):
    merged_commit: str | None = None
    forced: bool = False


class SessionCancelled(_Event, frozen=True, kw_only=True, tag="session_cancelled"):
    reason: str


class DocumentAdopted(_Event, frozen=True, kw_only=True, tag="document_adopted"):
    """A document edited by hand was valid; the events beside this one say what it meant."""

    document: str
    digest: str


class TailDropped(_Event, frozen=True, kw_only=True, tag="tail_dropped"):
    """A write that never finished was found behind the last commit and cut off."""

    bytes: int


class CheckpointTaken(_Event, frozen=True, kw_only=True, tag="checkpoint_taken"):
    """The session as it stands behind the events before this one can be returned to, with the files of `tree`."""

    id: str
    name: str
    phase: str
    kind: CheckpointKind
    attempt: int
    taken: Taken
    tree: Tree
    #: The checkpoint that it follows: the last one before it, or the one that was rolled back to.
    parent: str | None = None
    note: str = ""


class RolledBack(_Event, frozen=True, kw_only=True, tag="rolled_back"):
    """The session went back to a checkpoint. What stood before is in the checkpoint taken in the same commit."""

    id: str
    to: str
    name: str
    #: Phases that stand otherwise from here on.
    phases: dict[str, PhaseState] = {}
    #: The checkpoint of what was left behind.
    safety: str
    #: The last checkpoint before that one.
    source: str | None = None
    #: Digest of the list of files that were replaced or removed; none if no file was.
    archive: str | None = None
    files: int = 0
    #: Tasks that stand elsewhere from here on.
    tasks: dict[str, str] = {}
    #: Only these were restored; none means all that the checkpoint has.
    paths: tuple[str, ...] = ()
    #: No file was restored, on purpose.
    phase_only: bool = False
    #: The rollback that this one undoes.
    undoes: str | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who works on a task, and under which number: a later claim always has a higher one."""

    owner: str
    fence: int
    since: datetime
    host: str = ""
    #: The process that holds it; none if it may end before the work does, as a command in a shell.
    pid: int | None = None
    lease_s: float = 3600.0


class TaskWritten(_Event, frozen=True, kw_only=True, tag="task_written"):
    """A task was added, or its document was changed."""

    task: str
    document: dict[str, Any]
    reason: str = ""


class TaskRemoved(_Event, frozen=True, kw_only=True, tag="task_removed"):
    task: str


class TaskMoved(_Event, frozen=True, kw_only=True, tag="task_moved"):
    """Something happened to a task: `action` is a row of the table in `core/task/lifecycle.py`."""

    task: str
    action: str
    status: str
    reason: str = ""
    #: The file of the summary, for a task that is done.
    summary: str | None = None
    claim: Claim | None = None


class ComplexitySet(_Event, frozen=True, kw_only=True, tag="complexity_set"):
    """A person said that the work is more than its number of tasks tells."""

    level: str


class SessionPaused(_Event, frozen=True, kw_only=True, tag="session_paused"):
    reason: str = ""


class SessionResumed(_Event, frozen=True, kw_only=True, tag="session_resumed"):
    pass


class SessionReopened(_Event, frozen=True, kw_only=True, tag="session_reopened"):
    """A session that had ended goes on."""

    reason: str = ""


class SessionArchived(_Event, frozen=True, kw_only=True, tag="session_archived"):
    """A session that has ended is put out of sight. Nothing is moved or removed."""


TaskEvent = TaskWritten | TaskRemoved | TaskMoved
PhaseEvent = PhaseBegun | PhaseRedone | PhaseFinished | PhaseFailed | PhaseSkipped | PhaseReset
GateEvent = GateChecked | QuestionAnswered | VoteCast | GateApproved
Event = (
    SessionStarted
    | PhasesImported
    | PhaseEvent
    | GateEvent
    | AgentLaunched
    | AgentEnded
    | QuestionAsked
    | QuestionReplied
    | EscalationRaised
    | EscalationsResolved
    | PhaseReviewed
    | SessionCompleted
    | SessionCancelled
    | DocumentAdopted
    | TaskEvent
    | ComplexitySet
    | SessionPaused
    | SessionResumed
    | SessionReopened
    | SessionArchived
    | CheckpointTaken
    | RolledBack
    | TailDropped
)


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The unit of the journal: every event of one command, all or nothing."""

    version: int
    at: datetime
    actor: Actor
    events: tuple[Event, ...]
    #: Hash of the session after this commit. A replay that gives another hash is an error.
    state: str

    @property
    def by(self) -> str:
        """The author's name."""
        return self.actor.name
