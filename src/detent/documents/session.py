"""`workflow-session.json`: the session in one file, for people and programs that look into its directory."""

from typing import Any

from detent.core.session import Session, SessionStatus
from detent.core.status import Status
from detent.documents.state.writing import current_phase, stamp

NAME = "workflow-session.json"
_SIMPLE_BELOW, _COMPLEX_ABOVE = 5, 15


def write(session: Session, *, active: bool) -> dict[str, Any]:
    """`active` tells whether the project's marker names this session; without it an open session is paused."""
    status = session.status.value
    if session.status is SessionStatus.ACTIVE and not active:
        status = "paused"
    return {
        "session_id": session.id,
        "project": session.task,
        "type": complexity(len(session.active_order)),
        "current_phase": current_phase(session),
        "status": status,
        "progress": {"completed_phases": list(session.with_status(Status.COMPLETED)), "current_tasks": []},
        "workflow": session.workflow.name,
        "version": session.version,
        "created_at": stamp(session.started_at),
        "updated_at": stamp(session.notes[-1].timestamp) if session.notes else None,
        "completed_at": stamp(session.ended_at),
        "phases": [_phase(session, key) for key in session.workflow.order],
    }


def complexity(count: int) -> str:
    if count < _SIMPLE_BELOW:
        return "simple"
    return "complex" if count > _COMPLEX_ABOVE else "medium"


def _phase(session: Session, key: str) -> dict[str, Any]:
    state = session.phases[key]
    return {
        "key": key,
        "title": session.workflow.by_key[key].title,
        "status": state.status.value,
        "agent": state.agent,
        "attempt": state.attempt,
        "needs": list(session.workflow.by_key[key].needs),
        "summary": state.summary,
        "artifacts": list(state.artifacts),
    }
