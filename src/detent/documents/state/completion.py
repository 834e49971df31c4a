"""Repairing the history entry of a workflow that was closed without its snapshots or metrics."""

from datetime import datetime, timedelta

from detent.documents.state.prune import (
    clear_transient,
    prune_history,
    prune_skill_usage_log,
    prune_workflow_history,
)
from detent.documents.state.shape import Document, mapping, sequence
from detent.documents.state.snapshots import collect_phase_snapshots, workflow_metrics
from detent.documents.state.stamp import parse_stamp
from detent.documents.state.version import stamped

REPAIR_WINDOW = timedelta(minutes=2)


def repair_completion(doc: Document, now: datetime) -> tuple[Document, bool]:
    """The document with its last history entry made whole and tidied up, and whether anything was repaired.

    Nothing is repaired when the phase records are gone: an empty list would claim a workflow without phases.
    """
    entries = sequence(doc.get("workflow_history"))
    entry = mapping(entries[-1]) if entries else {}
    if doc.get("active_workflow") or not entry or _is_whole(entry) or not _just_ended(entry, now):
        return doc, False
    workflow = {**entry, "phases": sequence(entry.get("phases")) or list(mapping(doc.get("phases")))}
    snapshots = _snapshots(entry, {**doc, "active_workflow": workflow})
    if not snapshots:
        return doc, False
    whole = {**entry, "phase_snapshots": snapshots, "metrics": workflow_metrics(snapshots, workflow)}
    tidied = _tidied({**doc, "workflow_history": [*entries[:-1], whole]})
    return stamped(tidied, doc), True


def _is_whole(entry: Document) -> bool:
    return isinstance(entry.get("phase_snapshots"), list) and bool(mapping(entry.get("metrics")))


def _just_ended(entry: Document, now: datetime) -> bool:
    ended = entry.get("completed_at") or entry.get("cancelled_at")
    if not ended:
        return True
    ended_at = parse_stamp(ended)
    return ended_at is not None and now - ended_at <= REPAIR_WINDOW


def _snapshots(entry: Document, doc: Document) -> list[Document]:
    kept = [snapshot for snapshot in sequence(entry.get("phase_snapshots")) if isinstance(snapshot, dict)]
    return kept or collect_phase_snapshots(doc)["phase_snapshots"]


def _tidied(doc: Document) -> Document:
    return clear_transient(prune_workflow_history(prune_history(prune_skill_usage_log(doc))))
