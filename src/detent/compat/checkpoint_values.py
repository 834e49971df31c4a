"""The values of the checkpoint interface: what `create` is given, and what all methods return."""

from datetime import datetime
from typing import Any

import msgspec

from detent.core.checkpoint.checkpoint import CheckpointKind
from detent.core.session.phase_state import ToolUse

CheckpointType = CheckpointKind
ToolInvocation = ToolUse


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    pass


class OrchestratorState(_Record, frozen=True, kw_only=True):
    """The state of the session."""

    run_id: str
    current_phase: str | None = None
    completed_phases: tuple[str, ...] = ()
    intake_summary: dict[str, Any] = {}
    phase_status: dict[str, str] = {}
    #: Totals, where a long session lists only the phases around the checkpoint.
    all_phases: int | None = None
    all_completed: int | None = None


class TokenUsage(_Record, frozen=True, kw_only=True):
    input: int = 0
    output: int = 0


class AgentState(_Record, frozen=True, kw_only=True):
    """The work of an agent in a phase; its key is `agent@phase`."""

    #: pending, running, complete or failed.
    status: str
    token_usage: TokenUsage = TokenUsage()
    tool_invocations: tuple[ToolInvocation, ...] = ()
    summary: str = ""
    cost: float = 0.0
    tool_invocations_dropped: int = 0
    delegations: tuple[dict[str, Any], ...] = ()


class ArtifactInfo(_Record, frozen=True, kw_only=True):
    path: str
    #: SHA-256 of the content.
    hash: str
    size_bytes: int


class GateResult(_Record, frozen=True, kw_only=True):
    """The verdict on a gate of the phase, and its evidence."""

    gate: str
    #: PASS, FAIL, ERROR or PENDING.
    verdict: str
    kind: str = ""
    iterations: int = 0
    command: str | None = None
    exit_code: int | None = None
    coverage: float | None = None
    inputs: str | None = None
    error: str | None = None
    approved_by: str | None = None
    approval_reason: str | None = None
    votes: dict[str, dict[str, Any]] = {}


ComplianceResult = GateResult


class GovernanceResults(_Record, frozen=True, kw_only=True):
    quality_gates: tuple[GateResult, ...] = ()
    compliance_checks: tuple[ComplianceResult, ...] = ()
    passed: bool


class TreeInfo(_Record, frozen=True, kw_only=True):
    """The files of the checkpoint: digest of their manifest, number and size."""

    manifest: str
    files: int
    size_bytes: int
    left_out: int


class Checkpoint(_Record, frozen=True, kw_only=True):
    id: str
    phase: str
    type: CheckpointType
    #: The attempt of the phase; a rollback does not reset it.
    version: int
    created_at: datetime
    duration_ms: int
    orchestrator_state: OrchestratorState
    agent_states: dict[str, AgentState]
    #: Declared files by path.
    artifacts: dict[str, ArtifactInfo]
    governance_results: GovernanceResults
    parent_checkpoint_id: str | None
    metadata: dict[str, Any]
    tree: TreeInfo
    #: What `create` was given and the checkpoint does not hold, a sentence each. Not part of the file.
    not_stored: tuple[str, ...] = ()


class CheckpointSummary(_Record, frozen=True, kw_only=True):
    """A checkpoint as an entry of the index."""

    id: str
    name: str
    run_id: str
    phase: str
    type: CheckpointType
    version: int
    outcome: str
    created_at: datetime
    parent_checkpoint_id: str | None
    files: int
    size_bytes: int
    left_out: int
    note: str
    file: str
