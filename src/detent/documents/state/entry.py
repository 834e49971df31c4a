"""The line that a finished session leaves in the history."""

from detent.core.session.session import Session, SessionStatus
from detent.documents.state.shape import Document
from detent.documents.state.snapshots import collect_phase_snapshots
from detent.documents.state.writing import running, stamp


def history_entry(session: Session) -> Document:
    """Snapshots, metrics, id and outcome of a session that was completed or cancelled."""
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
        "merged_commit": session.merged_commit,
        "phases": list(session.active_order),
        **collect_phase_snapshots(running(session)),
    }
