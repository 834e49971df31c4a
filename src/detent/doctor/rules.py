"""Checks the events of a record against the rules under which Detent makes them. Replaying a journal asks none of them.

An event is looked at with the session right before it, as when it was decided.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from detent.core.checkpoint.rollback import effects
from detent.core.gate.kind import Opener
from detent.core.session import events
from detent.core.session.events import Event, GateEvent, PhaseEvent
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus
from detent.errors import Refused


class Past(NamedTuple):
    """A checkpoint: its phase, and the session at it."""

    phase: str
    session: Session


_BEGUN = (Status.IN_PROGRESS, Status.COMPLETED, Status.FAILED)


def broken_rules(session: Session, event: Event, version: int, pasts: Mapping[str, Past]) -> Iterator[str]:
    """The rules that the event breaks, a sentence each; none for an event that Detent can have made.

    `pasts` are the checkpoints before it, by id.
    """
    if isinstance(event, PhaseEvent | GateEvent) and session.has_ended:
        yield f"{event.phase} went on after the session was {session.status}"
    if isinstance(event, PhaseEvent):
        yield from _of_phase(session, event)
    elif isinstance(event, GateEvent):
        yield from _of_gate(session, event)
    elif isinstance(event, events.BaselineRecorded) and event.command in session.baseline.tests:
        yield f"the baseline of `{event.command}` was recorded again, and only a person replaces one"
    elif isinstance(event, events.SessionCompleted) and not event.forced:
        yield from _of_completion(session)
    elif isinstance(event, events.RolledBack):
        yield from _of_rollback(session, event, version, pasts)
    elif isinstance(event, events.SessionStarted | events.PhasesImported) and version > 1:
        yield "a session starts once"


def _of_phase(session: Session, event: PhaseEvent) -> Iterator[str]:
    state = session.phases[event.phase]
    match event:
        case events.PhaseBegun() | events.PhaseRedone():
            if session.open_needs(event.phase):
                yield f"{event.phase} was begun before {', '.join(session.open_needs(event.phase))}"
            if event.attempt != state.attempt + 1:
                yield f"{event.phase} was begun as attempt {event.attempt} after attempt {state.attempt}"
            if isinstance(event, events.PhaseBegun) and (session.awaiting_review or session.escalations):
                yield f"{event.phase} was begun while a person had to decide"
            if isinstance(event, events.PhaseRedone):
                yield from _of_redo(session, event.phase)
        case events.PhaseFinished() | events.PhaseFailed():
            if event.attempt != state.attempt:
                yield f"attempt {event.attempt} of {event.phase} ended, and attempt {state.attempt} was in progress"
        case events.PhaseSkipped() | events.PhaseReset():
            pass


def _of_redo(session: Session, phase: str) -> Iterator[str]:
    later = [key for key in session.workflow.descendants(phase) if session.phases[key].status in _BEGUN]
    if later:
        yield f"{phase} was begun again, and {', '.join(later)} built on it"


def _of_gate(session: Session, event: GateEvent) -> Iterator[str]:
    status = session.phases[event.phase].status
    if status is not Status.IN_PROGRESS:
        yield f"gate {event.gate} of {event.phase} got evidence while the phase was {status}"
    gate = session.workflow.by_key[event.phase].gate(event.gate)
    if gate is None:
        yield f"{event.phase} has no gate {event.gate}"
        return
    match event:
        case events.GateChecked():
            if gate.opened_by is not Opener.RUN:
                yield f"gate {event.gate} of {event.phase} has a receipt, and no run opens it"
            elif (problem := gate.contradiction(event.receipt)) is not None:
                yield f"the receipt of gate {event.gate} of {event.phase} is of no run: {problem}"
        case events.VoteCast():
            if gate.opened_by is not Opener.VOTE:
                yield f"gate {event.gate} of {event.phase} has a vote, and no vote opens it"
                return
            try:
                gate.check_voter(event.phase, event.approver, event.stands_for)
            except Refused as error:
                yield error.message
        case events.QuestionAnswered():
            if gate.opened_by is not Opener.ANSWER:
                yield f"gate {event.gate} of {event.phase} has an answer, and no answer opens it"
        case events.GateApproved():
            pass


def _of_completion(session: Session) -> Iterator[str]:
    counts = session.tasks.counts if len(session.tasks) else {}
    if session.unfinished:
        yield f"the session was completed without {', '.join(session.unfinished)}"
    if session.awaiting_review:
        yield f"the session was completed before the review of {', '.join(session.awaiting_review)}"
    if sum(counts.values()) > counts.get(TaskStatus.COMPLETED, 0):
        yield "the session was completed with open tasks"


def _of_rollback(session: Session, event: events.RolledBack, version: int, pasts: Mapping[str, Past]) -> Iterator[str]:
    """A rollback carries the phases that it restores: they must be those of the checkpoint."""
    past = pasts.get(event.to)
    if past is None:
        yield f"it rolled back to {event.name}, and the journal has no such checkpoint before it"
        return
    is_undo = event.undoes is not None
    expected = effects(session, past.session, past.phase, version, only_paths=bool(event.paths), is_undo=is_undo)
    if expected != (event.phases, event.tasks):
        yield f"the rollback to {event.name} brought back other phases or tasks than its checkpoint has"
