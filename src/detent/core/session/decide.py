"""Decides every command: returns the events that it causes, or refuses it.

One module a noun decides the commands about phases, gates, tasks and checkpoints. The commands about the whole session
are decided here.
"""

from typing import assert_never

from detent.core.gate.evidence import NOTHING_KNOWN, Facts
from detent.core.limits import MAX_REASON, check_optional
from detent.core.session.budget import budget_escalation
from detent.core.session.commands import (
    Archive,
    CheckpointCommand,
    Command,
    Fail,
    Finish,
    Pause,
    PhaseCommand,
    RecordRepair,
    RecordSettings,
    Reopen,
    Resume,
    SessionCommand,
    SetRunOptions,
    TaskCommand,
)
from detent.core.session.decide_checkpoint import checkpoints, decide_checkpoint
from detent.core.session.decide_gate import decide_gate
from detent.core.session.decide_phase import decide_import, decide_phase, decide_start
from detent.core.session.events import (
    EscalationRaised,
    Event,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    RunOptionsSet,
    SessionArchived,
    SessionCompleted,
    SessionPaused,
    SessionReopened,
    SessionResumed,
    SettingsChanged,
    TaskMoved,
)
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.lifecycle import Action
from detent.core.task.row import TaskStatus
from detent.errors import Refused

__all__ = ["decide", "decide_import", "decide_start"]

#: Unions as constants: a union in a call would be built anew for every command.
_ENDING, _ENDED = Finish | Fail, PhaseFinished | PhaseFailed


def decide(session: Session, command: Command, facts: Facts = NOTHING_KNOWN) -> tuple[Event, ...]:
    """The events that `command` causes in `session`. Raises `Refused` or `GateClosed` if it is not allowed."""
    if isinstance(command, PhaseCommand):
        _check_active(session)
        events = decide_phase(session, command, facts)
        if session.options.budget is not None:
            events = (*events, *_over_budget(session, command, events, facts))
    elif isinstance(command, CheckpointCommand):
        # Allowed after the end of the session, too: a rollback can return to every earlier position.
        return decide_checkpoint(session, command, facts)
    elif isinstance(command, SessionCommand):
        events = _decide_session(session, command)
    elif isinstance(command, TaskCommand):
        from detent.core.session.decide_task import decide_task  # noqa: PLC0415 - many sessions have no tasks

        _check_active(session)
        events = decide_task(session, command, facts)
    else:
        _check_active(session)
        events = decide_gate(session, command, facts)
    return events if facts.tree is None else (*events, *checkpoints(session, events, facts))


def _check_active(session: Session) -> None:
    if session.has_ended:
        ended = f"{session.ended_at:%Y-%m-%d %H:%M}" if session.ended_at else "an unknown time"
        raise Refused(
            f"session {session.id} was {session.status} at {ended}; nothing more can happen in it",
            way_out='detent start WORKFLOW "TASK", or detent reopen',
        )


def _over_budget(
    session: Session, command: Command, events: tuple[Event, ...], facts: Facts
) -> tuple[EscalationRaised, ...]:
    """The escalation of an exceeded budget. The tokens of an attempt are known when it ends."""
    if not isinstance(command, _ENDING) or any(isinstance(event, SessionCompleted) for event in events):
        return ()
    end = next(event for event in events if isinstance(event, _ENDED))
    return budget_escalation(session, end.phase, facts.now, end.tokens)


def _decide_session(session: Session, command: SessionCommand) -> tuple[Event, ...]:
    has_ended = session.has_ended
    if has_ended and isinstance(command, Pause | Resume):
        raise Refused(f"{session.id} was {session.status}", way_out="detent reopen")
    match command:
        case Pause():
            released = tuple(
                TaskMoved(task=task, action=Action.RELEASE, status=TaskStatus.PENDING, reason="the session was paused")
                for task in session.tasks.with_status(TaskStatus.ACTIVE)
            )
            return (*released, SessionPaused(reason=check_optional("a reason", command.reason, MAX_REASON)))
        case Resume():
            return (SessionResumed(),)
        case Reopen():
            return _reopen(session, command)
        case Archive():
            if not has_ended:
                raise Refused(f"{session.id} has not ended", way_out="detent complete or detent cancel comes first")
            if session.archived:
                raise Refused(f"{session.id} is archived already")
            return (SessionArchived(),)
        case RecordRepair():
            return (command.done,)
        case RecordSettings():
            if session.options.settings == command.digest:
                raise Refused(f"{session.id} has recorded this detent.toml already")
            working = {phase: session.phases[phase].agent for phase in session.in_progress}
            return (SettingsChanged(digest=command.digest, working=working),)
        case SetRunOptions():
            chosen = session.options.run.updated(command.given)
            if chosen == session.options.run:
                raise Refused(f"the run of {session.id} has these options already")
            return (RunOptionsSet(run=chosen),)
        case _:
            assert_never(command)


def _reopen(session: Session, command: Reopen) -> tuple[Event, ...]:
    """Reopen a session that has ended, with a new attempt of its last phase if all phases are finished."""
    if not session.has_ended:
        raise Refused(f"{session.id} has not ended", way_out="detent resume")
    reason = check_optional("a reason", command.reason, MAX_REASON)
    reopened = SessionReopened(reason=reason)
    completed = session.with_status(Status.COMPLETED)
    if not completed or session.unfinished:
        return (reopened,)
    last = completed[-1]
    state = session.phases[last]
    redone = PhaseRedone(phase=last, attempt=state.attempt + 1, agent=state.agent, reason=reason or "reopened")
    return reopened, redone
