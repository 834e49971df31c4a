"""Functions on state documents that the seeds' interface asks for and Detent itself does not call.

They are part of `detent.documents.state`, a public path below the engine, so they cannot live in `compat/`. Each
returns a new document, or the same object if nothing changes, and leaves its argument alone.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from detent.core.session.escalation import add_distinct
from detent.documents.state.rules import next_version
from detent.documents.state.shape import Document, mapping, mapping_at, sequence
from detent.documents.state.snapshots import collect_phase_snapshots, workflow_metrics
from detent.documents.state.stamp import format_stamp, parse_stamp
from detent.documents.state.writing import keep_last, prune_workflow_history, shortened

#: Fields of a phase record that only matter while the phase is in progress.
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
#: A history entry is repaired only within this time after its end.
REPAIR_WINDOW = timedelta(minutes=2)
INTENSITIES = ("light", "standard", "epic")
SIZED_AFTER = "02-impact-analysis"
MIN_PHASES = 3
RECORD_DEFAULTS: dict[str, Any] = {
    "file_count": 0,
    "module_count": 0,
    "risk_score": "unknown",
    "coupling": "unknown",
    "coverage_gaps": 0,
    "recommended_by": "framework",
    "overridden": False,
    "overridden_to": None,
    "forced_by_flag": False,
    "reason": None,
    "user_prompted": None,
    "fallback_source": None,
    "fallback_attempted": None,
}


def stamped(doc: Document, disk: object) -> Document:
    """The document with the version after the one on disk, whatever version it states."""
    return {**doc, "state_version": next_version(disk)}


# Escalations


def pending_escalations(doc: object) -> list[Document]:
    return sequence(mapping(doc).get("pending_escalations"))


def with_escalation(doc: Document, entry: Document) -> Document:
    """The document with the entry pending; the same object if the entry repeats a recent one."""
    pending = pending_escalations(doc)
    extended = add_escalation(pending, entry)
    return doc if extended is pending else {**doc, "pending_escalations": extended}


def add_escalation(pending: list[Document], entry: Document) -> list[Document]:
    """The list with the entry at its end; the same object if the entry repeats a recent one."""
    extended = add_distinct(pending, entry, kind=_kind, at=lambda each: parse_stamp(mapping(each).get("timestamp")))
    return pending if extended is pending else list(extended)


def _kind(entry: object) -> tuple[object, ...]:
    return tuple(mapping(entry).get(field) for field in ("hook", "phase", "type"))


# Pruning


def prune_skill_usage_log(doc: Document, keep: int = 50) -> Document:
    return keep_last(doc, "skill_usage_log", keep)


def prune_completed_phases(doc: Document, now: datetime, protected: Collection[str] = ()) -> Document:
    phases = doc.get("phases")
    if not isinstance(phases, dict):
        return dict(doc)
    pruned = {
        key: record if key in protected else _without_working_fields(record, now) for key, record in phases.items()
    }
    return {**doc, "phases": pruned}


def prune_history(doc: Document, keep: int = 100, length: int = 200) -> Document:
    return keep_last(doc, "history", keep, lambda entry: shortened(entry, "action", length))


def reset_phases(doc: Document, phases: Iterable[str]) -> Document:
    """A new pending record for each of these phases, and for no others."""
    fields = ("started", "completed", "gate_passed")
    return {**doc, "phases": {key: {"status": "pending", **dict.fromkeys(fields), "artifacts": []} for key in phases}}


def clear_transient(doc: Document) -> Document:
    """The document without the fields that only matter while a workflow runs."""
    return {
        **doc,
        "current_phase": None,
        "active_agent": None,
        "phases": {},
        "blockers": [],
        "pending_escalations": [],
        "pending_delegation": None,
    }


def _without_working_fields(record: object, now: datetime) -> object:
    if not isinstance(record, dict) or not (record.get("status") == "completed" or record.get("gate_passed")):
        return record
    lasting = {field: value for field, value in record.items() if field not in WORKING_FIELDS}
    return lasting | {"_pruned_at": format_stamp(now)}


# Repair


def repair_completion(doc: Document, now: datetime) -> tuple[Document, bool]:
    """The document with the missing snapshots and metrics of its last history entry, and whether it was repaired.

    Without phase records nothing is repaired: an empty list would describe a workflow without phases.
    """
    entries = sequence(doc.get("workflow_history"))
    entry = mapping(entries[-1]) if entries else {}
    is_complete = isinstance(entry.get("phase_snapshots"), list) and bool(mapping(entry.get("metrics")))
    if doc.get("active_workflow") or not entry or is_complete or not _just_ended(entry, now):
        return doc, False
    workflow = {**entry, "phases": sequence(entry.get("phases")) or list(mapping(doc.get("phases")))}
    recorded = [snapshot for snapshot in sequence(entry.get("phase_snapshots")) if isinstance(snapshot, dict)]
    snapshots = recorded or collect_phase_snapshots({**doc, "active_workflow": workflow})["phase_snapshots"]
    if not snapshots:
        return doc, False
    repaired = {**entry, "phase_snapshots": snapshots, "metrics": workflow_metrics(snapshots, workflow)}
    pruned = prune_history(prune_skill_usage_log({**doc, "workflow_history": [*entries[:-1], repaired]}))
    return stamped(clear_transient(prune_workflow_history(pruned)), doc), True


def _just_ended(entry: Document, now: datetime) -> bool:
    ended = entry.get("completed_at") or entry.get("cancelled_at")
    if not ended:
        return True
    ended_at = parse_stamp(ended)
    return ended_at is not None and now - ended_at <= REPAIR_WINDOW


# Sizing


def apply_sizing(
    doc: Document,
    intensity: str,
    metrics: Document,
    now: datetime,
    *,
    drop: Collection[str] = ("03-architecture", "04-design"),
) -> Document:
    """The document with the sizing decision. Light work loses the dropped phases, unless the rest is no sound workflow.

    In that case the phases stay, and the record has the reason.
    """
    if not isinstance(doc.get("active_workflow"), dict):
        return dict(doc)
    record = _record(intensity if intensity in INTENSITIES else "standard", metrics, now)
    if record["intensity"] != "light":
        return _recorded(doc, record)
    shorter = _without_phases(doc, drop)
    if _has_begun(doc, drop) or not _is_sound(shorter["active_workflow"]):
        return _recorded(doc, {**record, "fallback_reason": "invariant_check_failed"})
    return _recorded(shorter, {**record, "effective_intensity": "light"})


def _record(intensity: str, metrics: Document, now: datetime) -> Document:
    measured = {field: metrics[field] for field in RECORD_DEFAULTS if metrics.get(field) is not None}
    return {
        "intensity": intensity,
        "effective_intensity": "standard",
        **RECORD_DEFAULTS,
        **measured,
        "decided_at": format_stamp(now),
        "epic_deferred": intensity == "epic",
    }


def _recorded(doc: Document, record: Document) -> Document:
    return {**doc, "active_workflow": {**doc["active_workflow"], "sizing": record}}


def _without_phases(doc: Document, drop: Collection[str]) -> Document:
    workflow = doc["active_workflow"]
    phases = [key for key in sequence(workflow.get("phases")) if isinstance(key, str) and key not in drop]
    status = _without(mapping(workflow.get("phase_status")), drop)
    index = _index_of_next(phases, status)
    shorter = {**workflow, "phases": phases, "phase_status": status, "current_phase_index": index}
    return {**doc, "active_workflow": shorter, "phases": _without(mapping(doc.get("phases")), drop)}


def _without(entries: Document, drop: Collection[str]) -> Document:
    return {key: value for key, value in entries.items() if key not in drop}


def _index_of_next(phases: list[str], status: Document) -> int:
    if SIZED_AFTER in phases:
        return phases.index(SIZED_AFTER) + 1
    return max((at + 1 for at, key in enumerate(phases) if status.get(key) == "completed"), default=0)


def _has_begun(doc: Document, drop: Collection[str]) -> bool:
    workflow_status = mapping_at(doc, "active_workflow", "phase_status")
    return any(
        status not in (None, "pending")
        for key in drop
        for status in (workflow_status.get(key), mapping_at(doc, "phases", key).get("status"))
    )


def _is_sound(workflow: Document) -> bool:
    phases, status, index = workflow["phases"], workflow["phase_status"], workflow["current_phase_index"]
    return (
        len(phases) >= MIN_PHASES
        and index < len(phases)
        and all(key in phases for key in status)
        and status.get(phases[index]) == "pending"
    )
