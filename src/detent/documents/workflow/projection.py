"""The workflow document of a session: the same shape, computed from the journal instead of kept in a file."""

from typing import Any

from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.documents.workflow.shape import status_of, workflow_id

_STATUS = {
    Status.PENDING: "pending",
    Status.IN_PROGRESS: "active",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
}


def from_session(session: Session) -> dict[str, Any]:
    """Phases that were skipped are left out. A cancelled session is a workflow that failed."""
    phases = [_phase(session, index, key) for index, key in enumerate(session.active_order)]
    return {
        "id": workflow_id(session.started_at),
        "task": session.task,
        "status": _status(session, phases),
        "current_phase": _current(session, phases),
        "phases": phases,
    }


def _phase(session: Session, index: int, key: str) -> dict[str, Any]:
    state = session.phases[key]
    return {
        "id": f"phase_{index}",
        "title": session.workflow.by_key[key].title or key,
        "agent": state.agent,
        "status": _STATUS[state.status],
        "deliverables": list(state.deliverables),
        "context_for_next": state.context,
    }


def _status(session: Session, phases: list[dict[str, Any]]) -> str:
    match session.status:
        case SessionStatus.COMPLETED:
            return "completed"
        case SessionStatus.CANCELLED:
            return "failed"
    return status_of(phases) if phases else "active"


def _current(session: Session, phases: list[dict[str, Any]]) -> str | None:
    """The first phase under way, else the first that failed; none between two phases, where nothing is executing."""
    if session.status is not SessionStatus.ACTIVE:
        return None
    for wanted in ("active", "failed"):
        for phase in phases:
            if phase["status"] == wanted:
                return str(phase["id"])
    return None
