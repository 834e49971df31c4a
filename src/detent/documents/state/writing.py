"""Writes the state document of a session. Redundant fields are computed from the same state, so they agree.

Each gate has the verdict that the journal supports. If only paths decide, the paths are listed instead of a verdict,
and the reader looks them up.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.gate.judge import judge_recorded
from detent.core.gate.kind import required_paths
from detent.core.session.budget import BudgetStatus, budget_status, spent
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.documents.state.shape import Document, sequence
from detent.documents.state.stamp import cut, format_stamp

#: Entries of `skill_usage_log`.
SKILL_USAGE = 50


def write(
    session: Session, *, workflow_history: Iterable[Document] = (), journal: Document | None = None, idle: bool = False
) -> Document:
    """The document as it is on disk. A session that has ended or is `idle` has no active workflow in it.

    `journal` is the journal position of the document, for detecting changes that Detent did not make.
    """
    doc = running(session) if not session.has_ended and not idle else _ended(session)
    if journal is not None and doc["active_workflow"] is not None:
        doc["active_workflow"]["journal"] = journal
    return prune_workflow_history({**doc, "workflow_history": list(workflow_history)})


def running(session: Session) -> Document:
    """The document with the session as its active workflow, ended or not."""
    current = current_phase(session)
    return {
        **session.carried.get("document", {}),
        "state_version": session.state_version,
        "current_phase": current,
        "active_agent": (current and session.phases[current].agent) or None,
        "active_workflow": _active_workflow(session, current),
        "phases": {key: _phase(session, key) for key in session.active_order},
        "phase_artifacts": {
            key: list(session.phases[key].artifacts) for key in session.active_order if session.phases[key].artifacts
        },
        "pending_escalations": _escalations(session),
        "skill_usage_log": _skill_usage(session),
        "history": _history(session),
    }


def current_phase(session: Session) -> str | None:
    """The first phase in progress; between two phases, the completed or failed one that was begun last.

    None before the first phase: a pending phase is never the current one.
    """
    live = session.in_progress
    if live:
        return live[0]
    ended = (Status.COMPLETED, Status.FAILED)
    return next((key for key in session.phases.latest() if session.phases[key].status in ended), None)


def phase_index(session: Session) -> int:
    """The number of completed phases: in a linear workflow, the index of the current or next one."""
    return len(session.with_status(Status.COMPLETED))


def stamp(at: datetime | None) -> str | None:
    return format_stamp(at) if at else None


def _ended(session: Session) -> Document:
    return {
        **session.carried.get("document", {}),
        "state_version": session.state_version,
        "current_phase": None,
        "active_agent": None,
        "active_workflow": None,
        "phases": {},
        "phase_artifacts": {},
        "pending_escalations": [],
        "history": _history(session),
    }


def _active_workflow(session: Session, current: str | None) -> Document:
    ended = {
        SessionStatus.ACTIVE: {},
        SessionStatus.COMPLETED: {"completed_at": stamp(session.ended_at)},
        SessionStatus.CANCELLED: {
            "cancelled_at": stamp(session.ended_at),
            "cancellation_reason": session.cancel_reason,
        },
    }
    return {
        **session.carried.get("active_workflow", {}),
        "type": session.workflow.name,
        "session_id": session.id,
        "description": session.task,
        "started_at": stamp(session.started_at),
        "phases": list(session.active_order),
        "current_phase": current,
        "current_phase_index": phase_index(session),
        "phase_status": {key: str(session.phases[key].status) for key in session.active_order},
        "gate_mode": "strict" if session.gates_apply else "off",
        "agents": {key: session.phases[key].agent for key in session.active_order},
        "artifact_prefix": session.workflow.prefix,
        "artifact_folder": session.folder,
        "counter_used": session.number,
        "git_branch": {"name": session.branch} if session.branch else None,
        "activation": session.workflow.activation,
        **({"budget_status": str(status)} if (status := _budget_status(session)) else {}),
        **ended[session.status],
    }


def _budget_status(session: Session) -> BudgetStatus | None:
    """The budget as it stood when a phase last ended; None without a budget."""
    if session.options.budget is None:
        return None
    ended = [(state.completed, key) for key, state in session.phases.items() if state.completed is not None]
    if not ended:
        return BudgetStatus.ON_TRACK
    at, key = max(ended)
    statuses = {budget_status(used, limit) for _, used, limit in spent(session, key, at)}
    return max(statuses, key=list(BudgetStatus).index)


def _skill_usage(session: Session) -> list[Document]:
    """An entry for each agent that was launched for a phase, oldest first; the last ones only."""
    launched = sorted(
        ((entry, key) for key in session.active_order for entry in session.phases[key].delegations),
        key=lambda each: each[0].launched_at,
    )
    own = [
        {
            "timestamp": stamp(entry.launched_at),
            "agent": entry.agent,
            "agent_phase": key,
            "status": "executed" if entry.succeeded else "running" if entry.succeeded is None else "failed",
        }
        for entry, key in launched
    ]
    return [*sequence(session.carried.get("document", {}).get("skill_usage_log")), *own][-SKILL_USAGE:]


def _escalations(session: Session) -> list[Document]:
    own = [
        {
            "type": entry.kind,
            "hook": entry.gate or "detent",
            "phase": entry.phase,
            "detail": entry.detail,
            "timestamp": stamp(entry.at),
        }
        for entry in session.escalations
    ]
    return [*sequence(session.carried.get("document", {}).get("pending_escalations")), *own]


def _phase(session: Session, key: str) -> Document:
    state = session.phases[key]
    record: dict[str, Any] = {
        "status": str(state.status),
        "started": stamp(state.started),
        "completed": stamp(state.completed),
        "gate_passed": stamp(state.gate_passed),
        "artifacts": list(state.artifacts),
        "summary": state.summary,
    }
    if state.started is not None:
        record["timing"] = _timing(state)
    if state.deliverables:
        record["deliverables"] = list(state.deliverables)
    if state.context:
        record["context_for_next"] = state.context
    if state.tokens.input or state.tokens.output:
        record["tokens"] = {"input": state.tokens.input, "output": state.tokens.output}
    if state.error is not None:
        record["error"] = state.error
    if state.review is not None:
        record["review"] = state.review
    return record | _gate_records(session, key) if session.gates_apply else record


def _timing(state: PhaseState) -> Document:
    timing: dict[str, Any] = {"started_at": stamp(state.started), "retries": state.retries}
    if state.started and state.completed:
        timing["completed_at"] = stamp(state.completed)
        timing["wall_clock_minutes"] = round((state.completed - state.started).total_seconds() / 60, 1)
    return timing


def _history(session: Session) -> list[Document]:
    return [{"timestamp": stamp(note.timestamp), "agent": note.agent, "action": note.action} for note in session.notes]


# Gates


def _gate_records(session: Session, phase: str) -> Document:
    """`gates`, `iteration_requirements` and the records of kinds that have one; empty without gates."""
    gates, state = session.workflow.by_key[phase].gates, session.phases[phase]
    if not gates:
        return {}
    records: Document = {"gates": [], "iteration_requirements": {}}
    for gate in gates:
        judgement = judge_recorded(session, phase, gate)
        records["gates"].append(_listed(session, phase, gate, judgement))
        is_open = judgement.verdict is Verdict.PASS
        record = gate.state_record(state.at_gate(gate_name(gate)), is_open=is_open)
        if record is not None:
            _add(records, *record)
    return records | _delegations(state)


def _listed(session: Session, phase: str, gate: Gate, judgement: Judgement) -> Document:
    entry: Document = {"name": judgement.gate, "kind": judgement.kind}
    if gate.paths:
        entry["paths"] = list(gate.paths)
        if judgement.verdict is not Verdict.PASS:
            judgement = judge_recorded(session, phase, gate, exists=frozenset(required_paths(gate, session.folder)))
            if judgement.verdict is Verdict.PASS:
                return entry
    return {**entry, "verdict": str(judgement.verdict), "reason": judgement.reason}


def _add(records: Document, keys: tuple[str, ...], record: Document) -> None:
    """Put the record under its keys. Of several gates of a kind, the first closed one is shown."""
    *parents, name = keys
    for key in parents:
        records = records.setdefault(key, {})
    if name not in records or (records[name]["completed"] and not record["completed"]):
        records[name] = record


def _delegations(state: PhaseState) -> Document:
    if not state.delegations:
        return {}
    return {"delegations": [{"agent": entry.agent, "agent_id": entry.agent_id} for entry in state.delegations]}


# Size


def prune_workflow_history(doc: Document, keep: int = 50, length: int = 200) -> Document:
    def smaller(entry: Document) -> Document:
        return _with_branch_name_only(shortened(entry, "description", length))

    return keep_last(doc, "workflow_history", keep, smaller)


def keep_last(doc: Document, field: str, keep: int, smaller: Callable[[Document], Document] | None = None) -> Document:
    """The document with the last `keep` entries of a list, each made `smaller`."""
    entries = doc.get(field)
    if not isinstance(entries, list):
        return dict(doc)
    last = entries[max(0, len(entries) - keep) :]
    if smaller:
        last = [smaller(entry) if isinstance(entry, dict) else entry for entry in last]
    return {**doc, field: last}


def shortened(entry: Document, field: str, length: int) -> Document:
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
