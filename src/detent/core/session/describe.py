"""Events in one short line each, for people."""

from collections.abc import Iterable
from typing import assert_never

from detent.core.checkpoint.checkpoint import Taken
from detent.core.session.events import (
    AgentEnded,
    AgentLaunched,
    CheckpointTaken,
    ComplexitySet,
    DocumentAdopted,
    EscalationRaised,
    EscalationsResolved,
    Event,
    GateApproved,
    GateChecked,
    PhaseBegun,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseReviewed,
    PhasesImported,
    PhaseSkipped,
    QuestionAnswered,
    QuestionAsked,
    QuestionReplied,
    RolledBack,
    SessionArchived,
    SessionCancelled,
    SessionCompleted,
    SessionPaused,
    SessionReopened,
    SessionResumed,
    SessionStarted,
    TailDropped,
    TaskMoved,
    TaskRemoved,
    TaskWritten,
    VoteCast,
)

#: Lines about one commit; an import may write thousands of tasks.
MOST_TOLD = 20


def told(events: Iterable[Event]) -> list[str]:
    """What is worth a line. Checkpoints are part of beginning and ending a phase; those asked for are worth a word."""
    lines = [describe(one) for one in events if not isinstance(one, CheckpointTaken) or one.taken is Taken.NOTE]
    return lines if len(lines) <= MOST_TOLD else [*lines[:MOST_TOLD], f"and {len(lines) - MOST_TOLD} more"]


def describe(event: Event) -> str:
    match event:
        case SessionStarted():
            return f"started {event.workflow.name}"
        case PhasesImported():
            return f"imported from {event.source}"
        case PhaseBegun():
            return f"began {event.phase}"
        case PhaseRedone():
            return f"began {event.phase} again, attempt {event.attempt}"
        case PhaseFinished():
            return f"finished {event.phase}: {event.summary}"
        case PhaseFailed():
            return f"failed {event.phase}: {event.error.partition(chr(10))[0][:120]}"
        case PhaseSkipped():
            return f"skipped {event.phase}: {event.reason}"
        case PhaseReset():
            return f"reset {event.phase}: {event.reason}"
        case GateChecked():
            return f"{event.gate} of {event.phase}: {event.receipt.result}"
        case QuestionAnswered():
            return f"answered at {event.phase}" + (f": {event.choice}" if event.choice else "")
        case VoteCast():
            return f"{event.approver} {'approved' if event.approve else 'rejected'} {event.gate} of {event.phase}"
        case GateApproved():
            return f"opened {event.gate} of {event.phase} by hand: {event.reason}"
        case AgentLaunched():
            return f"launched {event.agent} for {event.phase}"
        case AgentEnded():
            return f"an agent of {event.phase} {'finished' if event.succeeded else 'failed'}"
        case QuestionAsked():
            return f"{event.phase} asks: {event.text.partition(chr(10))[0][:120]}"
        case QuestionReplied():
            return f"replied to {event.phase}: {event.answer.partition(chr(10))[0][:120]}"
        case EscalationRaised():
            return f"needs a person at {event.phase}: {event.detail}"
        case EscalationsResolved():
            return f"resolved: {event.action}" + (f" ({event.reason})" if event.reason else "")
        case PhaseReviewed():
            return f"reviewed {event.phase}: {event.decision}" + (f" ({event.note})" if event.note else "")
        case SessionCompleted():
            return "completed the session" + (" (forced)" if event.forced else "")
        case SessionCancelled():
            return f"cancelled the session: {event.reason}"
        case DocumentAdopted():
            return f"adopted an edit of {event.document}"
        case TaskWritten():
            return f"wrote {event.task}: {event.document.get('title')}" + (f" ({event.reason})" if event.reason else "")
        case TaskRemoved():
            return f"removed {event.task}"
        case TaskMoved():
            return f"{event.action} {event.task}" + (f": {event.reason}" if event.reason else "")
        case ComplexitySet():
            return f"called the work {event.level}"
        case SessionPaused():
            return "paused the session" + (f": {event.reason}" if event.reason else "")
        case SessionResumed():
            return "resumed the session"
        case SessionReopened():
            return "reopened the session" + (f": {event.reason}" if event.reason else "")
        case SessionArchived():
            return "archived the session"
        case CheckpointTaken():
            return f"took checkpoint {event.name}" + (f": {event.note}" if event.note else "")
        case RolledBack():
            files = f", {event.files} files" if event.files else ""
            return f"{'undid the rollback, back' if event.undoes else 'rolled back'} to {event.name}{files}"
        case TailDropped():
            return f"dropped an unfinished write of {event.bytes} bytes"
        case _:
            assert_never(event)
