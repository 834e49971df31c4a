"""Keeping a state document small: each function returns a smaller copy and leaves its argument alone."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime

from detent.documents.state.shape import Document
from detent.documents.state.stamp import cut, format_stamp

WORKING_FIELDS = frozenset(
    {
        "iteration_requirements",
        "constitutional_validation",
        "gate_validation",
        "testing_environment",
        "verification_summary",
        "atdd_validation",
    }
)


def prune_skill_usage_log(doc: Document, keep: int = 50) -> Document:
    return _keep_last(doc, "skill_usage_log", keep)


def prune_completed_phases(doc: Document, now: datetime, protected: Collection[str] = ()) -> Document:
    phases = doc.get("phases")
    if not isinstance(phases, dict):
        return dict(doc)
    pruned = {
        key: record if key in protected else _without_working_fields(record, now) for key, record in phases.items()
    }
    return {**doc, "phases": pruned}


def prune_history(doc: Document, keep: int = 100, length: int = 200) -> Document:
    return _keep_last(doc, "history", keep, lambda entry: _shortened(entry, "action", length))


def prune_workflow_history(doc: Document, keep: int = 50, length: int = 200) -> Document:
    def smaller(entry: Document) -> Document:
        return _with_branch_name_only(_shortened(entry, "description", length))

    return _keep_last(doc, "workflow_history", keep, smaller)


def reset_phases(doc: Document, phases: Iterable[str]) -> Document:
    """A fresh pending record for each of these phases, and for no others."""
    return {**doc, "phases": {key: _pending_record() for key in phases}}


def clear_transient(doc: Document) -> Document:
    """Without everything that only means something while a workflow runs."""
    return {
        **doc,
        "current_phase": None,
        "active_agent": None,
        "phases": {},
        "blockers": [],
        "pending_escalations": [],
        "pending_delegation": None,
    }


def _pending_record() -> Document:
    return {"status": "pending", "started": None, "completed": None, "gate_passed": None, "artifacts": []}


def _keep_last(doc: Document, field: str, keep: int, smaller: Callable[[Document], Document] | None = None) -> Document:
    entries = doc.get(field)
    if not isinstance(entries, list):
        return dict(doc)
    kept = entries[max(0, len(entries) - keep) :]
    if smaller:
        kept = [smaller(entry) if isinstance(entry, dict) else entry for entry in kept]
    return {**doc, field: kept}


def _without_working_fields(record: object, now: datetime) -> object:
    if not isinstance(record, dict) or not (record.get("status") == "completed" or record.get("gate_passed")):
        return record
    kept = {field: value for field, value in record.items() if field not in WORKING_FIELDS}
    return kept | {"_pruned_at": format_stamp(now)}


def _shortened(entry: Document, field: str, length: int) -> Document:
    text = entry.get(field)
    if not isinstance(text, str):
        return entry
    short = cut(text, length)
    return entry if short == text else {**entry, field: short + "..."}


def _with_branch_name_only(entry: Document) -> Document:
    branch = entry.get("git_branch")
    if not isinstance(branch, dict):
        return entry
    return {**entry, "git_branch": {field: value for field, value in branch.items() if field == "name"}}
