"""Types of the documents that Detent writes as plain JSON, for their schemas.

A test writes documents of sessions with every field filled, and compares their keys with these types at every depth.
"""

from typing import Annotated, Any, Literal

import msgspec

from detent.core.task.document import MAX_TITLE
from detent.core.task.row import TaskStatus, TaskType

At = Annotated[str, msgspec.Meta(description="Time in UTC, ISO 8601", examples=["2026-03-01T09:00:00.000Z"])]
PhaseStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]


class SessionPhase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    key: str
    title: str
    status: PhaseStatus
    agent: str
    attempt: int
    needs: list[str]
    summary: str | None
    artifacts: list[str]


class Progress(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    completed_phases: list[str]
    current_tasks: list[str]


class SessionDocument(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`workflow-session.json`"""

    session_id: str
    project: str
    type: Literal["simple", "medium", "complex"]
    current_phase: str | None
    status: Literal["active", "paused", "completed", "cancelled"]
    progress: Progress
    workflow: str
    version: int
    created_at: At
    updated_at: At | None
    paused_at: At | None
    completed_at: At | None
    completion_type: Literal["manual", "forced"] | None
    archived: bool
    phases: list[SessionPhase]


class GitBranch(msgspec.Struct, kw_only=True):
    name: str


class JournalPosition(msgspec.Struct, kw_only=True):
    """The journal position that the document shows. `hint` is for the store that wrote it."""

    version: int
    sum: str
    hint: int


class ActiveWorkflow(msgspec.Struct, kw_only=True):
    """The session as the state document shows it. Other tools may add keys."""

    type: str
    session_id: str
    description: str
    started_at: At
    phases: list[str]
    current_phase: str | None
    current_phase_index: int
    phase_status: dict[str, PhaseStatus]
    gate_mode: Literal["strict", "off"]
    agents: dict[str, str]
    artifact_prefix: str | None
    artifact_folder: str
    counter_used: int | None
    git_branch: GitBranch | None
    activation: Literal["explicit", "delegation"]
    #: How the budget stood when a phase last ended; only with a budget.
    budget_status: Literal["on_track", "approaching", "exceeded"] | None = None
    journal: JournalPosition | None = None
    completed_at: At | None = None
    cancelled_at: At | None = None
    cancellation_reason: str | None = None


class Timing(msgspec.Struct, kw_only=True):
    started_at: At
    retries: int
    completed_at: At | None = None
    wall_clock_minutes: float | None = None


class TokenCount(msgspec.Struct, kw_only=True):
    input: int
    output: int


class GateEntry(msgspec.Struct, kw_only=True):
    """A gate with the verdict that the journal supports. If only paths decide, there is no verdict."""

    name: str
    kind: str
    paths: list[str] = []
    verdict: Literal["PASS", "FAIL", "PENDING", "STALE", "ERROR"] | None = None
    reason: str | None = None


class Delegation(msgspec.Struct, kw_only=True):
    agent: str
    agent_id: str


class PhaseRecord(msgspec.Struct, kw_only=True):
    status: PhaseStatus
    started: At | None
    completed: At | None
    gate_passed: At | None
    artifacts: list[str]
    summary: str | None
    timing: Timing | None = None
    deliverables: list[str] = []
    context_for_next: str | None = None
    tokens: TokenCount | None = None
    error: str | None = None
    review: Literal["pending", "reviewing", "done"] | None = None
    gates: list[GateEntry] = []
    #: Records of the kinds of gates that keep one, each of a shape of its own.
    iteration_requirements: dict[str, dict[str, Any]] = {}
    constitutional_validation: dict[str, Any] | None = None
    delegations: list[Delegation] = []


class HistoryNote(msgspec.Struct, kw_only=True):
    timestamp: At
    agent: str
    action: str


class TestIterations(msgspec.Struct, kw_only=True):
    count: int
    result: Literal["passed", "escalated", "unknown"]
    escalated: bool


class Snapshot(msgspec.Struct, kw_only=True):
    key: str
    status: str
    started: At | None
    completed: At | None
    gate_passed: Any
    duration_minutes: float | None
    summary: str | None
    artifacts: list[str] = []
    test_iterations: TestIterations | None = None


class Metrics(msgspec.Struct, kw_only=True):
    total_phases: int
    phases_completed: int
    total_duration_minutes: float | None
    test_iterations_total: int
    gates_passed_first_try: int
    gates_required_iteration: int


class HistoryEntry(msgspec.Struct, kw_only=True):
    """One line of `history.jsonl`: a session that has ended"""

    type: str
    id: str | None
    session_id: str
    description: str
    started_at: At
    status: Literal["completed", "cancelled"]
    artifact_prefix: str | None
    artifact_folder: str
    git_branch: GitBranch | None
    merged_commit: str | None
    phases: list[str]
    phase_snapshots: list[Snapshot]
    metrics: Metrics
    completed_at: At | None = None
    cancelled_at: At | None = None
    reason: str | None = None


class PendingEscalation(msgspec.Struct, kw_only=True):
    """Other tools may add entries of other shapes."""

    type: str
    hook: str
    phase: str
    detail: str
    timestamp: At


class SkillUsage(msgspec.Struct, kw_only=True):
    """An agent that was launched for a phase."""

    timestamp: At
    agent: str
    agent_phase: str
    status: Literal["running", "executed", "failed"]


class StateDocument(msgspec.Struct, kw_only=True):
    """`state.json`: the active session, for tools that read and edit one file. Other tools may add keys"""

    state_version: int
    current_phase: str | None
    active_agent: str | None
    active_workflow: ActiveWorkflow | None
    phases: dict[str, PhaseRecord]
    phase_artifacts: dict[str, list[str]]
    pending_escalations: list[PendingEscalation | Any]
    skill_usage_log: list[SkillUsage | Any] = []
    history: list[HistoryNote]
    workflow_history: list[HistoryEntry]


class TaskMeta(msgspec.Struct, kw_only=True):
    type: TaskType = TaskType.FEATURE
    agent: Annotated[str, msgspec.Meta(min_length=1)] = "code-developer"


class Inherited(msgspec.Struct, kw_only=True, rename={"source": "from"}):
    source: str
    context: list[str] = []


class TaskContext(msgspec.Struct, kw_only=True):
    requirements: list[str] = []
    #: Paths inside the project that the task is about.
    focus_paths: list[str] = []
    acceptance: list[str] = []
    parent: str | None = None
    depends_on: list[str] = []
    inherited: Inherited | None = None
    shared_context: dict[str, Any] | None = None


class FlowStep(msgspec.Struct, kw_only=True):
    step: str
    action: str
    command: str
    output_to: str | None = None
    on_error: str | None = None


class Approach(msgspec.Struct, kw_only=True):
    task_description: str = ""
    modification_points: list[str] = []
    logic_flow: list[str] = []


class FlowControl(msgspec.Struct, kw_only=True):
    pre_analysis: list[FlowStep] = []
    implementation_approach: Approach | str | None = None
    target_files: list[str] = []


class Execution(msgspec.Struct, kw_only=True):
    """The bookkeeping of Detent."""

    attempts: Annotated[int, msgspec.Meta(ge=0)] = 0


class TaskDocument(msgspec.Struct, kw_only=True):
    """A file below `.task`. Other keys are kept as they are."""

    id: Annotated[str, msgspec.Meta(pattern=r"^IMPL-[0-9]+(\.[0-9]+)?$")]
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TITLE)]
    status: TaskStatus
    meta: TaskMeta
    context: TaskContext
    flow_control: FlowControl
    version: Annotated[int, msgspec.Meta(ge=1)] = 1
    execution: Execution | None = None
