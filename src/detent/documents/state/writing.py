"""The state document of a session: every redundant field is computed here from the same state, so they agree."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.documents.state.gates import gate_records
from detent.documents.state.prune import prune_workflow_history
from detent.documents.state.shape import Document, sequence
from detent.documents.state.stamp import format_stamp


def write(
    session: Session,
    *,
    workflow_history: Iterable[Document] = (),
    journal: Document | None = None,
    idle: bool = False,
) -> Document:
    """The document as it stands on disk; a session that ended or was put aside leaves no active workflow behind.

    `journal` is the position that the document was made from, so that a change behind Detent's back shows.
    """
    doc = running(session) if session.status is SessionStatus.ACTIVE and not idle else _ended(session)
    if journal is not None and doc["active_workflow"] is not None:
        doc["active_workflow"]["journal"] = journal
    return prune_workflow_history({**doc, "workflow_history": list(workflow_history)})


def running(session: Session) -> Document:
    """The document with the session as its active workflow, ended or not: what snapshots are taken of."""
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
        "history": _history(session),
    }


def current_phase(session: Session) -> str | None:
    """The first phase in progress; between two phases the one begun last, because finishing activates nothing.

    There is none while nothing was begun that is still to be done: a pending phase is never the current one.
    """
    live = session.with_status(Status.IN_PROGRESS)
    if live:
        return live[0]
    # Imported phases share one fence; of those the last one counts.
    ended = (Status.COMPLETED, Status.FAILED)
    return next((key for key in session.phases.latest() if session.phases[key].status in ended), None)


def phase_index(session: Session) -> int:
    """How many phases are completed: for a linear workflow the index of the current or next one."""
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
        **ended[session.status],
    }


def _escalations(session: Session) -> list[Document]:
    own = [
        {
            "type": one.kind,
            "hook": one.gate or "detent",
            "phase": one.phase,
            "detail": one.detail,
            "timestamp": stamp(one.at),
        }
        for one in session.escalations
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
    return record | gate_records(session, key) if session.gates_apply else record


def _timing(state: PhaseState) -> Document:
    timing: dict[str, Any] = {"started_at": stamp(state.started), "retries": state.retries}
    if state.started and state.completed:
        timing["completed_at"] = stamp(state.completed)
        timing["wall_clock_minutes"] = round((state.completed - state.started).total_seconds() / 60, 1)
    return timing


def _history(session: Session) -> list[Document]:
    return [{"timestamp": stamp(note.timestamp), "agent": note.agent, "action": note.action} for note in session.notes]
