"""Whether a command is allowed, and what it makes happen: the one entrance to the rules."""

from detent.core.gate.evidence import NOTHING_KNOWN, Facts
from detent.core.session.budget import budget_escalation
from detent.core.session.commands import (
    Archive,
    Begin,
    Cancel,
    Command,
    Complete,
    Fail,
    Finish,
    MoveTask,
    Pause,
    Redo,
    RemoveTask,
    Reopen,
    Resume,
    Rollback,
    SetComplexity,
    Skip,
    SplitTask,
    TakeCheckpoint,
    WriteTasks,
)
from detent.core.session.decide_checkpoint import checkpoints, decide_checkpoint
from detent.core.session.decide_gate import decide_gate
from detent.core.session.decide_phase import decide_import, decide_phase, decide_start
from detent.core.session.events import EscalationRaised, Event, PhaseFailed, PhaseFinished, SessionCompleted
from detent.core.session.session import Session, SessionStatus
from detent.errors import Refused

__all__ = ["decide", "decide_import", "decide_start"]

# Tuples: a union in the call would be built anew for every command.
_CHECKPOINT = (TakeCheckpoint, Rollback)
_SESSION = (Pause, Resume, Reopen, Archive)
_PHASE = (Begin, Finish, Fail, Redo, Skip, Complete, Cancel)
_TASK = (WriteTasks, SplitTask, RemoveTask, MoveTask, SetComplexity)
_ENDING, _ENDED = (Finish, Fail), (PhaseFinished, PhaseFailed)


def decide(session: Session, command: Command, facts: Facts = NOTHING_KNOWN) -> tuple[Event, ...]:
    """The events that `command` causes in `session`; `Refused` or `GateClosed`, and then nothing has happened."""
    if isinstance(command, _CHECKPOINT):
        # Also of a session that ended: every position that it has held can be returned to.
        return decide_checkpoint(session, command, facts)
    if isinstance(command, _SESSION):
        from detent.core.session.decide_session import decide_session  # noqa: PLC0415 - most commands are about phases

        events = decide_session(session, command)
        return (*events, *checkpoints(session, events, facts))
    if session.status is not SessionStatus.ACTIVE:
        ended = f"{session.ended_at:%Y-%m-%d %H:%M}" if session.ended_at else "an unknown time"
        raise Refused(
            f"session {session.id} was {session.status} at {ended}; nothing more can happen in it",
            way_out='detent start WORKFLOW "TASK", or detent reopen',
        )
    if isinstance(command, _PHASE):
        events = decide_phase(session, command, facts)
        events = (*events, *_over_budget(session, command, events, facts))
    elif isinstance(command, _TASK):
        from detent.core.session.decide_task import decide_task  # noqa: PLC0415 - many sessions have no tasks
        from detent.core.session.task_phases import with_phases  # noqa: PLC0415

        events = with_phases(session, decide_task(session, command, facts), facts)
    else:
        events = decide_gate(session, command, facts)
    return (*events, *checkpoints(session, events, facts))


def _over_budget(
    session: Session, command: Command, events: tuple[Event, ...], facts: Facts
) -> tuple[EscalationRaised, ...]:
    """The end of an attempt is where its tokens become known; of a session that is over nobody has to decide."""
    if not isinstance(command, _ENDING) or any(isinstance(event, SessionCompleted) for event in events):
        return ()
    end = next(event for event in events if isinstance(event, _ENDED))
    return budget_escalation(session, end.phase, facts.now, end.tokens)
