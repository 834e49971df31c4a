"""A session as JSON: the data of `status`, in full."""

from datetime import datetime
from typing import Any

from detent.core.session.open_decision import ANYONE, View
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.render.next_commands import next_commands, progress


def session_record(session: Session, view: View = ANYONE) -> dict[str, Any]:
    done, total = progress(session)
    return {
        "session": session.id,
        "task": session.task,
        "workflow": session.workflow.name,
        "work_id": session.work_id,
        "status": session.status,
        "active": view.active and not session.has_ended,
        "version": session.version,
        "branch": session.branch,
        "artifact_folder": session.folder,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "progress": {"completed": done, "total": total, "skipped": len(session.with_status(Status.SKIPPED))},
        "in_progress": session.in_progress,
        "failed": session.with_status(Status.FAILED),
        "ready": session.ready,
        "awaiting_review": session.awaiting_review,
        "escalations": session.escalations,
        "questions": session.questions,
        "phases": [_phase(session, key) for key in session.workflow.order],
        "next": next_commands(session, view),
    }


def _phase(session: Session, key: str) -> dict[str, Any]:
    state, phase = session.phases[key], session.workflow.by_key[key]
    live = state.status is Status.IN_PROGRESS
    return {
        "phase": key,
        "title": phase.title,
        "status": state.status,
        "agent": state.agent,
        "attempt": state.attempt,
        "token": str(session.token(key)) if live else None,
        "needs": phase.needs,
        "started_at": state.started,
        "begun_at": state.begun,
        "completed_at": state.completed,
        "spent_s": _spent_s(state.started, state.completed),
        "summary": state.summary,
        "error": state.error,
        "skip_reason": state.skip_reason,
        "artifacts": state.artifacts,
        "deliverables": state.deliverables,
        "tokens": {"input": state.tokens.input, "output": state.tokens.output},
    }


def _spent_s(started: datetime | None, completed: datetime | None) -> float | None:
    return (completed - started).total_seconds() if started and completed else None
