"""The state document: what may be written to it, what it leaves behind, and how it is kept small."""

from detent.core.workflow.phase_key import normalize_phase_key
from detent.documents.state.completion import repair_completion
from detent.documents.state.entry import history_entry
from detent.documents.state.escalations import (
    DEDUP_S,
    MAX_ESCALATIONS,
    add_escalation,
    pending_escalations,
    with_escalation,
)
from detent.documents.state.prune import (
    clear_transient,
    prune_completed_phases,
    prune_history,
    prune_skill_usage_log,
    prune_workflow_history,
    reset_phases,
)
from detent.documents.state.reading import imported, read
from detent.documents.state.rules import Violation, check_write, mirror_violations
from detent.documents.state.sizing import apply_sizing
from detent.documents.state.snapshots import collect_phase_snapshots, workflow_metrics
from detent.documents.state.version import next_version, stamped
from detent.documents.state.writing import running, write

__all__ = [
    "DEDUP_S",
    "MAX_ESCALATIONS",
    "Violation",
    "add_escalation",
    "apply_sizing",
    "check_write",
    "clear_transient",
    "collect_phase_snapshots",
    "history_entry",
    "imported",
    "mirror_violations",
    "next_version",
    "normalize_phase_key",
    "pending_escalations",
    "prune_completed_phases",
    "prune_history",
    "prune_skill_usage_log",
    "prune_workflow_history",
    "read",
    "repair_completion",
    "reset_phases",
    "running",
    "stamped",
    "with_escalation",
    "workflow_metrics",
    "write",
]
