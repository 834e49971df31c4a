"""Commands. `decide` answers each with events or a refusal."""

from datetime import datetime
from typing import Any

import msgspec

from detent.core.checkpoint.checkpoint import Tree
from detent.core.gate.evidence import Receipt, Toolchain
from detent.core.run.choices import RunChoices
from detent.core.session.events import CheckpointTaken, Claim, Discovery, Options, PhasesImported, TailSetAside
from detent.core.session.phase_state import Report, Tokens, ToolUse, Worker
from detent.core.session.session import Session
from detent.core.session.token import Token
from detent.core.task.lifecycle import Action
from detent.core.task.split import ChildDraft
from detent.core.testrun.baseline import KnownTests
from detent.core.workflow.graph import Workflow


class _Command(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Start(_Command, frozen=True, kw_only=True):
    """Open a session and begin its first phase."""

    session: str
    task: str
    workflow: Workflow
    number: int | None = None
    folder: str
    branch: str | None = None
    discovery: Discovery | None = None
    size: str | None = None
    base: int = 0
    options: Options = Options()
    toolchain: Toolchain | None = None
    #: Digest of the manifest of the protected files.
    protected: str | None = None
    id_later_s: int = 0
    #: The files of the project, if checkpoints are taken.
    tree: Tree | None = None
    now: datetime | None = None


class Import(_Command, frozen=True, kw_only=True):
    """Open a session with the phases of an existing state document."""

    start: Start
    imported: PhasesImported


class Begin(_Command, frozen=True, kw_only=True):
    """Begin a phase; without a name, the first one that is ready."""

    phase: str | None = None
    agent: str | None = None
    #: The id of the agent that is launched in the same commit, and whether it works in a sandbox.
    launch: str | None = None
    sandboxed: bool = False


class Finish(_Command, frozen=True, kw_only=True):
    """Complete the attempt of the token; without a token, the attempt of `phase` that is in progress."""

    token: Token | None = None
    phase: str | None = None
    #: Without one, what the agents of the attempt reported counts.
    summary: str | None
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    tokens: Tokens = Tokens()
    tools: tuple[ToolUse, ...] = ()
    merged_commit: str | None = None
    #: The agent that ends with the attempt, and what it was.
    agent_id: str | None = None
    worker: Worker | None = None


class Fail(_Command, frozen=True, kw_only=True):
    token: Token | None = None
    phase: str | None = None
    error: str
    artifacts: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    tools: tuple[ToolUse, ...] = ()
    agent_id: str | None = None
    worker: Worker | None = None


class Redo(_Command, frozen=True, kw_only=True):
    """Begin a further attempt. `cascade` resets the phases after it that were begun."""

    phase: str
    #: Only if this attempt is the last one, and failed; None for any state of the phase.
    failed: int | None = None
    agent: str | None = None
    reason: str = ""
    cascade: bool = False
    launch: str | None = None
    sandboxed: bool = False


class Skip(_Command, frozen=True, kw_only=True):
    """Skip the named phases, and those that `size` leaves out."""

    phases: tuple[str, ...] = ()
    size: str | None = None
    reason: str


class Complete(_Command, frozen=True, kw_only=True):
    force: bool = False
    merged_commit: str | None = None


class Cancel(_Command, frozen=True, kw_only=True):
    reason: str


class CheckGate(_Command, frozen=True, kw_only=True):
    """Record a run for a gate of a phase in progress."""

    phase: str
    gate: str
    receipt: Receipt


class AcceptLoss(_Command, frozen=True, kw_only=True):
    """A person accepts that tests of the baseline are gone, or do not pass."""

    phase: str
    gate: str
    names: tuple[str, ...]
    reason: str


class SetGateCommand(_Command, frozen=True, kw_only=True):
    """A person sets the command of a gate: in one phase, or in all that have the gate and are not completed."""

    gate: str
    command: str
    reason: str
    phase: str | None = None


class RecordBaseline(_Command, frozen=True, kw_only=True):
    """Record the tests of a command. Replacing recorded ones is a person's decision and needs a reason."""

    command: str
    tests: KnownTests
    reason: str = ""


class Answer(_Command, frozen=True, kw_only=True):
    """Record that a person answered a question; `choice` decides how the work continues."""

    phase: str
    gate: str | None = None
    choice: str | None = None


class Approve(_Command, frozen=True, kw_only=True):
    """A person's vote; at a gate without votes, an override."""

    phase: str
    gate: str | None = None
    #: Who votes: the account of the operating system.
    identity: str
    #: The approver or role in whose place it votes; empty for its own.
    stands_for: str = ""
    reason: str
    approve: bool = True


class Override(_Command, frozen=True, kw_only=True):
    """Open a gate of any kind by hand."""

    phase: str
    gate: str
    reason: str


class RecordAgentStarted(_Command, frozen=True, kw_only=True):
    """An agent was started for a phase in progress."""

    phase: str
    agent: str
    agent_id: str
    sandboxed: bool = False


class RecordAgentEnded(_Command, frozen=True, kw_only=True):
    """Record that the agent ended."""

    agent_id: str
    succeeded: bool
    report: Report | None = None
    #: The phase of the agent, for callers that know it: a phase only keeps its last agents.
    phase: str | None = None


class Ask(_Command, frozen=True, kw_only=True):
    """An agent of a phase in progress asks a person a question."""

    id: str
    phase: str
    text: str
    choices: tuple[str, ...] = ()


class Reply(_Command, frozen=True, kw_only=True):
    """A person answers a question; without a name, the only open one."""

    id: str | None = None
    answer: str


class Escalate(_Command, frozen=True, kw_only=True):
    kind: str
    phase: str
    detail: str
    gate: str | None = None


class Resolve(_Command, frozen=True, kw_only=True):
    """A person resolves the escalations of a phase, or all of them: retry, skip or cancel."""

    action: str
    reason: str = ""
    phase: str | None = None


class Review(_Command, frozen=True, kw_only=True):
    """A person's review of a finished phase: continue, review or redo."""

    phase: str | None = None
    decision: str
    note: str = ""


class TakeCheckpoint(_Command, frozen=True, kw_only=True):
    """Take a checkpoint of the present. `phase` selects one of several phases in progress."""

    note: str = ""
    phase: str | None = None


class Rollback(_Command, frozen=True, kw_only=True):
    """Go back to a checkpoint. The files are restored before; the caller puts them back if this is refused."""

    to: CheckpointTaken
    #: The session after the checkpoint's commit.
    past: Session
    #: The version of the session that the rollback was planned for.
    version: int
    #: The files before and after the restore.
    before: Tree
    after: Tree
    archive: str | None = None
    files: int = 0
    paths: tuple[str, ...] = ()
    phase_only: bool = False
    #: The rollback to undo: restores the state of all phases, not only of those that the checkpoint's phase needs.
    undoes: str | None = None


class WriteTasks(_Command, frozen=True, kw_only=True):
    """Add tasks, or change the documents of existing tasks. All or none."""

    documents: tuple[dict[str, Any], ...]
    reason: str = ""
    #: True: all ids must be new. False: all must exist. None: either.
    new: bool | None = None
    #: Parts make their container: one that is nowhere is added, and a pending task becomes one.
    gathers: bool = False


class SplitTask(_Command, frozen=True, kw_only=True):
    """Split a task into parts."""

    document: dict[str, Any]
    parts: tuple[ChildDraft, ...]


class RemoveTask(_Command, frozen=True, kw_only=True):
    task: str


class MoveTask(_Command, frozen=True, kw_only=True):
    """Move a task: start, done, fail, block, unblock, resume, retry, release, reopen."""

    task: str
    action: Action
    reason: str = ""
    summary: str | None = None
    #: How each acceptance criterion was met, for done.
    met: tuple[str, ...] = ()
    #: The new claim, for start and resume. `decide` sets its fence.
    claim: Claim | None = None
    #: The fence of the caller's claim; None skips the check.
    fence: int | None = None


class RepairTask(_Command, frozen=True, kw_only=True):
    """Restore the invariants between a task and its parts, and drop dependencies on tasks that do not exist."""

    task: str
    #: The task's document, where dependencies are dropped.
    document: dict[str, Any] | None = None
    reason: str = ""


class SetComplexity(_Command, frozen=True, kw_only=True):
    level: str


class Pause(_Command, frozen=True, kw_only=True):
    reason: str = ""


class Resume(_Command, frozen=True, kw_only=True):
    pass


class Reopen(_Command, frozen=True, kw_only=True):
    reason: str = ""


class Archive(_Command, frozen=True, kw_only=True):
    pass


class RecordRepair(_Command, frozen=True, kw_only=True):
    """Record that the journal was mended."""

    done: TailSetAside


class RecordSettings(_Command, frozen=True, kw_only=True):
    """Record that detent.toml is another one than the session saw last."""

    digest: str


class SetRunOptions(_Command, frozen=True, kw_only=True):
    """Keep the options that a run was given, in place of earlier ones."""

    given: RunChoices


PhaseCommand = Begin | Finish | Fail | Redo | Skip | Complete | Cancel
GateCommand = (
    CheckGate
    | AcceptLoss
    | SetGateCommand
    | RecordBaseline
    | Answer
    | Approve
    | Override
    | RecordAgentStarted
    | RecordAgentEnded
    | Ask
    | Reply
    | Escalate
    | Resolve
    | Review
)
CheckpointCommand = TakeCheckpoint | Rollback
TaskCommand = WriteTasks | SplitTask | RemoveTask | MoveTask | RepairTask | SetComplexity
SessionCommand = Pause | Resume | Reopen | Archive | RecordRepair | RecordSettings | SetRunOptions
Command = PhaseCommand | GateCommand | CheckpointCommand | TaskCommand | SessionCommand
