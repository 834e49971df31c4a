"""Whether a session may be paused, resumed, reopened or archived, and what that makes happen."""

from typing import assert_never

from detent.core.limits import MAX_REASON, check_optional
from detent.core.session.commands import Archive, Pause, Reopen, Resume, SessionCommand
from detent.core.session.events import (
    Event,
    PhaseRedone,
    SessionArchived,
    SessionPaused,
    SessionReopened,
    SessionResumed,
    TaskMoved,
)
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.task.lifecycle import Action
from detent.core.task.row import TaskStatus
from detent.errors import Refused


def decide_session(session: Session, command: SessionCommand) -> tuple[Event, ...]:
    ended = session.status is not SessionStatus.ACTIVE
    match command:
        case Pause():
            _refuse_if(ended, session, "detent reopen")
            released = tuple(
                TaskMoved(task=task, action=Action.RELEASE, status=TaskStatus.PENDING, reason="the session was paused")
                for task in session.tasks.with_status(TaskStatus.ACTIVE)
            )
            return (*released, SessionPaused(reason=check_optional("a reason", command.reason, MAX_REASON)))
        case Resume():
            _refuse_if(ended, session, "detent reopen")
            return (SessionResumed(),)
        case Reopen():
            return _reopen(session, command)
        case Archive():
            if not ended:
                raise Refused(f"{session.id} has not ended", way_out="detent complete or detent cancel comes first")
            if session.archived:
                raise Refused(f"{session.id} is archived already")
            return (SessionArchived(),)
        case _:
            assert_never(command)


def _reopen(session: Session, command: Reopen) -> tuple[Event, ...]:
    """The work goes on with its last phase, which looks at what was done."""
    if session.status is SessionStatus.ACTIVE:
        raise Refused(f"{session.id} has not ended", way_out="detent resume")
    reason = check_optional("a reason", command.reason, MAX_REASON)
    opened: tuple[Event, ...] = (SessionReopened(reason=reason),)
    done = session.with_status(Status.COMPLETED)
    if not done or session.unfinished:
        return opened
    last = done[-1]
    state = session.phases[last]
    return (*opened, PhaseRedone(phase=last, attempt=state.attempt + 1, agent=state.agent, reason=reason or "reopened"))


def _refuse_if(ended: bool, session: Session, way_out: str) -> None:  # noqa: FBT001 - reads as a sentence
    if ended:
        raise Refused(f"{session.id} was {session.status}", way_out=way_out)
