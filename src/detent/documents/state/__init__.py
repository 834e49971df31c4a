"""The state document: written from a session, read into one, checked, and kept small. The public functions on it.

Names of the modules `reading` and `seed` are loaded on first use: a change of a session needs none of them.
"""

from typing import TYPE_CHECKING

from detent.core.session.escalation import DEDUP_S, MAX_ESCALATIONS
from detent.core.workflow.phase_key import normalize_phase_key
from detent.documents.state.rules import Violation, check_write, mirror_violations, next_version
from detent.documents.state.snapshots import collect_phase_snapshots, history_entry, workflow_metrics
from detent.documents.state.writing import prune_workflow_history, running, write

if TYPE_CHECKING:
    from detent.documents.state.reading import imported, read
    from detent.documents.state.seed import (
        add_escalation,
        apply_sizing,
        clear_transient,
        pending_escalations,
        prune_completed_phases,
        prune_history,
        prune_skill_usage_log,
        repair_completion,
        reset_phases,
        stamped,
        with_escalation,
    )

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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from detent.documents.state import reading, seed  # noqa: PLC0415

    return getattr(reading if name in ("imported", "read") else seed, name)
