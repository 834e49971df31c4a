"""The history entry of a session: its outcome, a snapshot of each phase, and metrics."""

from datetime import datetime, timedelta

import msgspec

from detent.core.session.session import Session, SessionStatus
from detent.core.workflow.phase_key import normalize_phase_key
from detent.core.workflow.roles import PHASE_AGENTS
from detent.documents.state.shape import Document, mapping, mapping_at, number, sequence
from detent.documents.state.stamp import cut, minutes_between, parse_stamp
from detent.documents.state.writing import running, stamp

SUMMARY_UNITS = 150
SHORTEST_SUMMARY = 20
#: The budget of the snapshots and metrics of one history entry: 2 KiB for eight phases.
USUAL_PHASES = 8
BYTES_A_PHASE = 256
#: Digits of a hash of git, whole and short.
HASH_DIGITS = (40, 64)
SHORT_HASH = 7
#: An agent often reports shortly after its phase was completed.
HISTORY_GRACE = timedelta(seconds=60)


def history_entry(session: Session) -> Document:
    """The history entry of a session that was completed or cancelled."""
    ended = stamp(session.ended_at)
    cancelled = session.status is SessionStatus.CANCELLED
    outcome = {"cancelled_at": ended, "reason": session.cancel_reason} if cancelled else {"completed_at": ended}
    return {
        "type": session.workflow.name,
        "id": session.work_id,
        "session_id": session.id,
        "description": session.task,
        "started_at": stamp(session.started_at),
        **outcome,
        "status": str(session.status),
        "artifact_prefix": session.workflow.prefix,
        "artifact_folder": session.folder,
        "git_branch": {"name": session.branch} if session.branch else None,
        "merged_commit": _short(session.merged_commit),
        "phases": list(session.active_order),
        **_within_budget(collect_phase_snapshots(running(session))),
    }


def _short(commit: str | None) -> str | None:
    """A commit's hash as git shortens it; any other name of it as it is."""
    is_hash = commit is not None and len(commit) in HASH_DIGITS and set(commit) <= set("0123456789abcdef")
    return commit[:SHORT_HASH] if commit is not None and is_hash else commit


def _within_budget(collected: Document) -> Document:
    """The snapshots and metrics, with summaries shortened, and then artifacts left out, until they are small enough.

    The journal keeps all of them.
    """
    snapshots = [dict(each) for each in collected["phase_snapshots"]]
    fitting = {**collected, "phase_snapshots": snapshots}
    budget = BYTES_A_PHASE * max(len(snapshots), USUAL_PHASES)
    for units in range(SUMMARY_UNITS, SHORTEST_SUMMARY - 1, -10):
        if _size(fitting) <= budget:
            return fitting
        for each, whole in zip(snapshots, collected["phase_snapshots"], strict=True):
            each["summary"] = cut(whole["summary"], units) if whole["summary"] else None
    while _size(fitting) > budget and any("artifacts" in each for each in snapshots):
        longest = max(snapshots, key=lambda each: _size(each.get("artifacts", [])))
        *kept, _ = longest.pop("artifacts")
        longest |= {"artifacts": kept} if kept else {}
    return fitting


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))


def collect_phase_snapshots(doc: object) -> Document:
    """Snapshots in workflow order, and their metrics; both are empty without a workflow or phase records."""
    workflow, phases = mapping(doc).get("active_workflow"), mapping(doc).get("phases")
    if not isinstance(workflow, dict) or not isinstance(phases, dict):
        return {"phase_snapshots": [], "metrics": workflow_metrics([], {})}
    history = [entry for entry in sequence(mapping(doc).get("history")) if isinstance(entry, dict)]
    keys = [key for key in sequence(workflow.get("phases")) if isinstance(key, str)]
    records = [(key, phases.get(key, phases.get(normalize_phase_key(key)))) for key in keys]
    snapshots = [_snapshot(key, record, history) for key, record in records if isinstance(record, dict)]
    return {"phase_snapshots": snapshots, "metrics": workflow_metrics(snapshots, workflow)}


def workflow_metrics(snapshots: list[Document], workflow: Document) -> Document:
    loops = [number(mapping_at(each, "test_iterations").get("count")) or 0 for each in snapshots]
    passed = [loop for each, loop in zip(snapshots, loops, strict=True) if each.get("gate_passed")]
    ended_at = workflow.get("completed_at") or workflow.get("cancelled_at")
    return {
        "total_phases": len(sequence(workflow.get("phases"))),
        "phases_completed": sum(each.get("status") == "completed" for each in snapshots),
        "total_duration_minutes": minutes_between(workflow.get("started_at"), ended_at),
        "test_iterations_total": sum(loops),
        "gates_passed_first_try": sum(loop <= 1 for loop in passed),
        "gates_required_iteration": sum(loop > 1 for loop in passed),
    }


def _snapshot(key: str, record: Document, history: list[Document]) -> Document:
    snapshot: Document = {
        "key": key,
        "status": record.get("status") or "pending",
        "started": record.get("started") or None,
        "completed": record.get("completed") or None,
        "gate_passed": record.get("gate_passed") or None,
        "duration_minutes": minutes_between(record.get("started"), record.get("completed")),
        "summary": _summary(key, record, history),
    }
    optional = {"artifacts": list(sequence(record.get("artifacts"))), "test_iterations": _test_iterations(record)}
    return snapshot | {name: value for name, value in optional.items() if value}


def _summary(key: str, record: Document, history: list[Document]) -> str | None:
    own = record.get("summary")
    if own and isinstance(own, str):
        return cut(own, SUMMARY_UNITS)
    agent = PHASE_AGENTS.get(normalize_phase_key(key))
    if agent is None:
        return None
    window = _window(record)
    for entry in reversed(history):
        if entry.get("agent") == agent and (window is None or _falls_in(window, entry.get("timestamp"))):
            action = entry.get("action")
            return cut(action, SUMMARY_UNITS) if action and isinstance(action, str) else None
    return None


def _window(record: Document) -> tuple[datetime, datetime] | None:
    start = parse_stamp(record.get("started"))
    end = parse_stamp(record.get("completed") or record.get("gate_passed"))
    return (start, end) if start and end else None


def _falls_in(window: tuple[datetime, datetime], timestamp: object) -> bool:
    at, (start, end) = parse_stamp(timestamp), window
    return at is not None and start <= at and at - end <= HISTORY_GRACE


def _test_iterations(record: Document) -> Document | None:
    loop = mapping_at(record, "iteration_requirements", "test_iteration")
    iteration = loop.get("current_iteration")
    count = number(loop.get("current") if iteration is None else iteration) or 0
    if not (count or loop.get("completed") or loop.get("escalated")):
        return None
    escalated = loop.get("escalated") is True
    result = "passed" if loop.get("completed") is True else "escalated" if escalated else "unknown"
    return {"count": count, "result": result, "escalated": escalated}
