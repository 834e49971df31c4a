"""`workflow-session.json`: the session in one file, for readers of its directory."""

from typing import Any

from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus
from detent.documents.state.writing import current_phase, stamp


def write(session: Session, *, active: bool) -> dict[str, Any]:
    """The document. `active`: the project's marker names this session; otherwise an open session is paused."""
    status = session.status.value
    if not session.has_ended and not active:
        status = "paused"
    return {
        "session_id": session.id,
        "project": session.task,
        "type": str(session.complexity),
        "current_phase": current_phase(session),
        "status": status,
        "progress": {
            "completed_phases": list(session.with_status(Status.COMPLETED)),
            "current_tasks": list(session.tasks.with_status(TaskStatus.ACTIVE)),
        },
        "workflow": session.workflow.name,
        "version": session.version,
        "created_at": stamp(session.started_at),
        "updated_at": stamp(session.updated_at),
        "paused_at": stamp(session.paused_at),
        "completed_at": stamp(session.ended_at),
        "completion_type": _completion(session),
        "archived": session.archived,
        "phases": [_phase(session, key) for key in session.workflow.order],
    }


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


def _completion(session: Session) -> str | None:
    if session.status is not SessionStatus.COMPLETED:
        return None
    return "forced" if session.forced else "manual"
