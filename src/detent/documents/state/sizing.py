"""Sizing a running workflow: small work may leave out phases that it has not begun."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from detent.documents.state.shape import Document, mapping, mapping_at, sequence
from detent.documents.state.stamp import format_stamp

INTENSITIES = ("light", "standard", "epic")
SIZED_AFTER = "02-impact-analysis"
FEWEST_PHASES = 3

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


def apply_sizing(
    doc: Document,
    intensity: str,
    metrics: Document,
    now: datetime,
    *,
    drop: Collection[str] = ("03-architecture", "04-design"),
) -> Document:
    """The document with the decision recorded; light work also loses the dropped phases, everywhere at once.

    Where leaving them out would not give a sound workflow, it stays whole and the record says why.
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
    given = {field: metrics[field] for field in RECORD_DEFAULTS if metrics.get(field) is not None}
    return {
        "intensity": intensity,
        "effective_intensity": "standard",
        **RECORD_DEFAULTS,
        **given,
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
        len(phases) >= FEWEST_PHASES
        and index < len(phases)
        and all(key in phases for key in status)
        and status.get(phases[index]) == "pending"
    )
