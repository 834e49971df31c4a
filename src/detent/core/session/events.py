"""Events and commits: the facts of the journal. Written once, never changed, never reinterpreted."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from detent.core.actor import Actor, ActorKind, Assurance
from detent.core.checkpoint.checkpoint import CheckpointKind, Taken, Tree
from detent.core.gate.evidence import Receipt, Toolchain
from detent.core.run.choices import RunChoices
from detent.core.session.phase_state import PhaseState, Report, Tokens, ToolUse, run_agent
from detent.core.testrun.baseline import KnownTests
from detent.core.workflow.graph import Workflow


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Notes about the code base from before the session."""

    text: str
    at: datetime


class Supervised(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A person reviews finished phases before later ones begin."""

    #: Phase keys or their first two digits; empty for all.
    phases: tuple[str, ...] = ()
    #: Redos of a phase that a reviewer may ask for.
    max_redos: int = 3


_ABOVE_0 = msgspec.Meta(gt=0)


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits of time, tokens and cost. Near a limit is a warning, over it an escalation."""

    #: Time of the session.
    minutes: Annotated[float, _ABOVE_0] | None = None
    #: Time of one phase.
    phase_minutes: Annotated[float, _ABOVE_0] | None = None
    #: Tokens of the session.
    tokens: Annotated[int, _ABOVE_0] | None = None
    #: Tokens of one phase.
    phase_tokens: Annotated[int, _ABOVE_0] | None = None
    #: Cost of the session, in the currency that the client reports.
    cost: Annotated[float, _ABOVE_0] | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of the session, pinned when it starts."""

    gates: bool = True
    supervised: Supervised | None = None
    budget: Budget | None = None
    #: Digest of detent.toml as the session last saw it; empty without the file.
    settings: str = ""
    #: The options of its run.
    run: RunChoices = RunChoices()
    #: The weakest assurance of a decision; a gate may ask for another one of its votes.
    assurance: Assurance = Assurance.ATTENDED


class SessionStarted(_Event, frozen=True, kw_only=True, tag="session_started"):
    session: str
    task: str
    workflow: Workflow
    #: The number in its id (5 in REQ-0005); None if the workflow has no prefix.
    number: int | None = None
    folder: str
    branch: str | None = None
    discovery: Discovery | None = None
    #: The version of the project's state document before this session.
    base: int = 0
    options: Options = Options()
    #: The programs that checks use; None if the start recorded none.
    toolchain: Toolchain | None = None
    #: Digest of the manifest of the protected files; None if no gate protects any.
    protected: str | None = None
    #: Seconds between the start and the time in the id of its workflow document: another workflow has the id before.
    id_later_s: int = 0


class ImportedPhase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a phase in an imported state document."""

    status: str
    started: datetime | None = None
    completed: datetime | None = None
    gate_passed: datetime | None = None
    attempt: int = 0
    summary: str | None = None
    artifacts: tuple[str, ...] = ()


class PhasesImported(_Event, frozen=True, kw_only=True, tag="phases_imported"):
    """Follows `SessionStarted` if the session was imported from a state document."""

    source: str
    started_at: datetime | None = None
    phases: dict[str, ImportedPhase]
    #: Keys of the document that Detent does not use, kept for export.
    carried: dict[str, dict[str, Any]] = {}


class PhaseBegun(_Event, frozen=True, kw_only=True, tag="phase_begun"):
    phase: str
    attempt: int
    agent: str = ""


class PhaseRedone(_Event, frozen=True, kw_only=True, tag="phase_redone"):
    """A further attempt of a phase that was begun before."""

    phase: str
    attempt: int
    agent: str = ""
    reason: str = ""


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
    #: Digest of the protected files from now on, if the phase may rewrite tests and did.
    protected: str | None = None


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
    """The phase is pending again because a phase that it needs is redone."""

    phase: str
    reason: str


class GateChecked(_Event, frozen=True, kw_only=True, tag="gate_checked"):
    """A run for a gate was executed, observed or reported."""

    phase: str
    gate: str
    receipt: Receipt


class LossAccepted(_Event, frozen=True, kw_only=True, tag="loss_accepted"):
    """A person accepted that tests of the baseline are gone, or do not pass."""

    phase: str
    gate: str
    names: tuple[str, ...]
    reason: str


class GateCommandSet(_Event, frozen=True, kw_only=True, tag="gate_command_set"):
    """A person set the command of a gate, in these phases. What ran before no longer counts there."""

    gate: str
    phases: tuple[str, ...]
    command: str
    reason: str


class BaselineRecorded(_Event, frozen=True, kw_only=True, tag="baseline_recorded"):
    """A whole run of a gate's command showed which tests there are."""

    #: Empty for gates without a known command.
    command: str
    tests: KnownTests


class BaselineReplaced(_Event, frozen=True, kw_only=True, tag="baseline_replaced"):
    """A person decided that another run is the baseline from now on."""

    command: str
    tests: KnownTests
    reason: str


class QuestionAnswered(_Event, frozen=True, kw_only=True, tag="question_answered"):
    """A person answered a question; `choice` is set if the answer opens the gate."""

    phase: str
    gate: str
    choice: str | None = None


class VoteCast(_Event, frozen=True, kw_only=True, tag="vote_cast"):
    phase: str
    gate: str
    #: The identity that voted.
    approver: str
    #: The approver or role in whose place it voted; empty for its own.
    stands_for: str = ""
    approve: bool
    reason: str = ""


class GateApproved(_Event, frozen=True, kw_only=True, tag="gate_approved"):
    """A person opened the gate by hand."""

    phase: str
    gate: str
    reason: str


class AgentLaunched(_Event, frozen=True, kw_only=True, tag="agent_launched"):
    phase: str
    agent: str
    agent_id: str
    #: Whether it works in the sandbox of a run.
    sandboxed: bool = False


class AgentEnded(_Event, frozen=True, kw_only=True, tag="agent_ended"):
    phase: str
    agent_id: str
    succeeded: bool
    report: Report | None = None

    @property
    def worked_by(self) -> str:
        """The name of the agent; empty if it is unknown."""
        worker = self.report.worker if self.report is not None else None
        return worker.agent if worker is not None else run_agent(self.agent_id)


class QuestionAsked(_Event, frozen=True, kw_only=True, tag="question_asked"):
    """An agent asked a person a question."""

    id: str
    phase: str
    text: str
    choices: tuple[str, ...] = ()


class QuestionReplied(_Event, frozen=True, kw_only=True, tag="question_replied"):
    id: str
    phase: str
    answer: str


class EscalationRaised(_Event, frozen=True, kw_only=True, tag="escalation_raised"):
    """A person has to decide how the work continues."""

    kind: str
    phase: str
    gate: str | None = None
    detail: str


class EscalationsResolved(_Event, frozen=True, kw_only=True, tag="escalations_resolved"):
    """A person decided: `retry` resets the counters; `skip` and `cancel` have events of their own."""

    action: str
    reason: str = ""
    #: Only the escalations of this phase; None for all.
    phase: str | None = None


class PhaseReviewed(_Event, frozen=True, kw_only=True, tag="phase_reviewed"):
    """A person reviewed a finished phase: continue, review (not decided yet) or redo."""

    phase: str
    decision: str
    note: str = ""


class SessionCompleted(_Event, frozen=True, kw_only=True, tag="session_completed"):
    merged_commit: str | None = None
    forced: bool = False


class SessionCancelled(_Event, frozen=True, kw_only=True, tag="session_cancelled"):
    reason: str


class DocumentAdopted(_Event, frozen=True, kw_only=True, tag="document_adopted"):
    """An edit of a document was adopted. The other events of the commit are its content."""

    document: str
    digest: str


class TailDropped(_Event, frozen=True, kw_only=True, tag="tail_dropped"):
    """An unfinished write after the last commit was cut off."""

    bytes: int


class TailSetAside(_Event, frozen=True, kw_only=True, tag="tail_set_aside"):
    """The journal was mended: lines that did not verify, or contradicted its second copy, were taken out of it."""

    #: The condition of the journal: missing, shorter, different, damaged or unreadable.
    reason: str
    #: Commits that came back from the second copy.
    restored: int = 0
    bytes: int = 0
    digest: str = ""
    #: The file beside the journal that keeps the lines.
    kept: str = ""


class SettingsChanged(_Event, frozen=True, kw_only=True, tag="settings_changed"):
    """detent.toml is not the one that the session saw last."""

    digest: str
    #: The phases in progress at that time, each with its agent.
    working: dict[str, str] = {}


class RunOptionsSet(_Event, frozen=True, kw_only=True, tag="run_options_set"):
    """A run was given other options than the run before it."""

    run: RunChoices


class CheckpointTaken(_Event, frozen=True, kw_only=True, tag="checkpoint_taken"):
    """A checkpoint of the session after the events before this one, with the files of `tree`."""

    id: str
    name: str
    phase: str
    kind: CheckpointKind
    attempt: int
    taken: Taken
    tree: Tree
    #: The checkpoint before it, or the one that was rolled back to.
    parent: str | None = None
    note: str = ""


class RolledBack(_Event, frozen=True, kw_only=True, tag="rolled_back"):
    """The session went back to a checkpoint. The state before is in the safety checkpoint of the same commit."""

    id: str
    to: str
    name: str
    #: The states of the phases that changed.
    phases: dict[str, PhaseState] = {}
    #: The checkpoint of the state before the rollback.
    safety: str
    #: The last checkpoint before the safety checkpoint.
    source: str | None = None
    #: Digest of the list of files that were replaced or removed; None if there are none.
    archive: str | None = None
    files: int = 0
    #: The statuses of the tasks that changed.
    tasks: dict[str, str] = {}
    #: The restored paths; empty for all.
    paths: tuple[str, ...] = ()
    #: No file was restored, on purpose.
    phase_only: bool = False
    #: The rollback that this one undoes.
    undoes: str | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claim of a worker on a task. A later claim has a higher fence."""

    owner: str
    fence: int
    since: datetime
    host: str = ""
    #: The process of the holder; None if the claim outlives its process, as with a command in a shell.
    pid: int | None = None
    lease_s: float = 3600.0


class TaskWritten(_Event, frozen=True, kw_only=True, tag="task_written"):
    """A task was added, or its document changed."""

    task: str
    document: dict[str, Any]
    reason: str = ""


class TaskRemoved(_Event, frozen=True, kw_only=True, tag="task_removed"):
    task: str


class TaskMoved(_Event, frozen=True, kw_only=True, tag="task_moved"):
    """A task changed its status: `action` is a row of the table in `core/task/lifecycle.py`."""

    task: str
    action: str
    status: str
    reason: str = ""
    #: The file of the summary of a task that is done.
    summary: str | None = None
    #: How each acceptance criterion of a task that is done was met, in their order.
    met: tuple[str, ...] = ()
    claim: Claim | None = None


class ComplexitySet(_Event, frozen=True, kw_only=True, tag="complexity_set"):
    """A person raised the complexity above the one that the number of tasks gives."""

    level: str


class SessionPaused(_Event, frozen=True, kw_only=True, tag="session_paused"):
    reason: str = ""


class SessionResumed(_Event, frozen=True, kw_only=True, tag="session_resumed"):
    pass


class SessionReopened(_Event, frozen=True, kw_only=True, tag="session_reopened"):
    """A session that had ended is active again."""

    reason: str = ""


class SessionArchived(_Event, frozen=True, kw_only=True, tag="session_archived"):
    """A session that has ended is hidden. Nothing is moved or removed."""


TaskEvent = TaskWritten | TaskRemoved | TaskMoved
PhaseEvent = PhaseBegun | PhaseRedone | PhaseFinished | PhaseFailed | PhaseSkipped | PhaseReset
GateEvent = GateChecked | QuestionAnswered | VoteCast | GateApproved
BaselineEvent = LossAccepted | GateCommandSet | BaselineRecorded | BaselineReplaced
DelegationEvent = AgentLaunched | AgentEnded
QuestionEvent = QuestionAsked | QuestionReplied
EscalationEvent = EscalationRaised | EscalationsResolved
CheckpointEvent = CheckpointTaken | RolledBack
#: What happened to the journal and to the settings from outside.
RecordEvent = TailDropped | TailSetAside | SettingsChanged
SessionEvent = (
    SessionStarted
    | SessionCompleted
    | SessionCancelled
    | SessionPaused
    | SessionResumed
    | SessionReopened
    | SessionArchived
    | RunOptionsSet
)
Event = (
    SessionEvent
    | PhasesImported
    | PhaseEvent
    | GateEvent
    | BaselineEvent
    | DelegationEvent
    | QuestionEvent
    | EscalationEvent
    | PhaseReviewed
    | DocumentAdopted
    | TaskEvent
    | ComplexitySet
    | CheckpointEvent
    | RecordEvent
)


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The unit of the journal: all events of one command."""

    version: int
    at: datetime
    actor: Actor
    events: tuple[Event, ...]
    #: The fingerprint of the session after this commit. A replay with another fingerprint is an error.
    state: str

    @property
    def by(self) -> str:
        """The author, as everything shows it. What a run records of an agent is by that agent."""
        if self.actor.kind is ActorKind.RUNNER:
            worked = (event.worked_by for event in self.events if isinstance(event, AgentEnded))
            return ", ".join(dict.fromkeys(name for name in worked if name)) or self.actor.shown
        return self.actor.shown

    @property
    def author(self) -> str:
        """The identity that decided; without a decision, the name of the author."""
        return self.actor.identity
