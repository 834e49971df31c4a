"""Describes events in one short line each."""

from collections.abc import Iterable
from typing import assert_never

from detent.core.actor import spoken_as
from detent.core.checkpoint.checkpoint import Taken
from detent.core.counted import counted, listed
from detent.core.gate.evidence import Receipt
from detent.core.session import events
from detent.core.session.events import CheckpointTaken, Event
from detent.core.session.phase_name import Named
from detent.core.session.phase_state import run_agent

#: Maximum number of lines about one commit. An import may write thousands of tasks.
MAX_LINES = 20


def event_lines(commit_events: Iterable[Event], named: Named = str) -> list[str]:
    """The lines about one commit. A checkpoint that belongs to the begin or end of a phase has no line.

    `named` names the phases.
    """
    lines = [
        describe(event, named)
        for event in commit_events
        if not isinstance(event, CheckpointTaken) or event.taken is Taken.NOTE
    ]
    return lines if len(lines) <= MAX_LINES else [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more"]


def describe(event: Event, named: Named = str) -> str:
    match event:
        case events.SessionStarted():
            return f"started {event.workflow.name}"
        case events.PhasesImported():
            return f"imported from {event.source}"
        case events.PhaseBegun():
            return f"began {named(event.phase)}"
        case events.PhaseRedone():
            return f"began {named(event.phase)} again, attempt {event.attempt}"
        case events.PhaseFinished():
            return f"finished {named(event.phase)}: {event.summary}"
        case events.PhaseFailed():
            return f"failed {named(event.phase)}: {event.error.partition(chr(10))[0][:120]}"
        case events.PhaseSkipped():
            return f"skipped {named(event.phase)}: {event.reason}"
        case events.PhaseReset():
            return f"reset {named(event.phase)}: {event.reason}"
        case events.GateChecked():
            return f"{event.gate} at {named(event.phase)}: {_receipt_text(event.receipt)}"
        case events.LossAccepted():
            return f"accepted the loss of {listed(event.names)}: {event.reason}"
        case events.GateCommandSet():
            return f"set the command of {event.gate} to {event.command}: {event.reason}"
        case events.BaselineRecorded():
            return f"recorded {counted(event.tests.count, 'test')} as the baseline of {_ran(event)}"
        case events.BaselineReplaced():
            return f"made {counted(event.tests.count, 'test')} the baseline of {_ran(event)}: {event.reason}"
        case events.QuestionAnswered():
            return f"answered at {named(event.phase)}" + (f": {event.choice}" if event.choice else "")
        case events.VoteCast():
            who = spoken_as(event.approver, event.stands_for)
            return f"{who} {'approved' if event.approve else 'rejected'} {event.gate} at {named(event.phase)}"
        case events.GateApproved():
            return f"opened {event.gate} at {named(event.phase)} by hand: {event.reason}"
        case events.AgentLaunched():
            return f"launched {_launched(event)} for {named(event.phase)}"
        case events.AgentEnded():
            worker = event.report.worker if event.report is not None else None
            who = worker.describe() if worker is not None else event.worked_by or "an agent"
            return f"{who} {'finished' if event.succeeded else 'failed'} its turn at {named(event.phase)}"
        case events.QuestionAsked():
            return f"{named(event.phase)} asks: {event.text.partition(chr(10))[0][:120]}"
        case events.QuestionReplied():
            return f"replied to {named(event.phase)}: {event.answer.partition(chr(10))[0][:120]}"
        case events.EscalationRaised():
            return f"needs a person at {named(event.phase)}: {event.detail}"
        case events.EscalationsResolved():
            return f"resolved: {event.action}" + (f" ({event.reason})" if event.reason else "")
        case events.PhaseReviewed():
            return f"reviewed {named(event.phase)}: {event.decision}" + (f" ({event.note})" if event.note else "")
        case events.SessionCompleted():
            return "completed the session" + (" (forced)" if event.forced else "")
        case events.SessionCancelled():
            return f"cancelled the session: {event.reason}"
        case events.DocumentAdopted():
            return f"adopted an edit of {event.document}"
        case events.TaskWritten():
            return f"wrote {event.task}: {event.document.get('title')}" + (f" ({event.reason})" if event.reason else "")
        case events.TaskRemoved():
            return f"removed {event.task}"
        case events.TaskMoved():
            return f"{event.action} {event.task}" + (f": {event.reason}" if event.reason else "")
        case events.ComplexitySet():
            return f"called the work {event.level}"
        case events.SessionPaused():
            return "paused the session" + (f": {event.reason}" if event.reason else "")
        case events.SessionResumed():
            return "resumed the session"
        case events.SessionReopened():
            return "reopened the session" + (f": {event.reason}" if event.reason else "")
        case events.SessionArchived():
            return "archived the session"
        case events.CheckpointTaken():
            return f"took checkpoint {event.name}" + (f": {event.note}" if event.note else "")
        case events.RolledBack():
            files = f", {event.files} files" if event.files else ""
            return f"{'undid the rollback, back' if event.undoes else 'rolled back'} to {event.name}{files}"
        case events.TailDropped():
            return f"dropped an unfinished write of {event.bytes} bytes"
        case events.TailSetAside():
            parts = [f"commits back from its second copy: {event.restored}"] if event.restored else []
            parts += [f"bytes set aside in {event.kept}: {event.bytes}"] if event.bytes else []
            return f"mended the journal, which was {event.reason}; {', '.join(parts)}"
        case events.RunOptionsSet():
            return f"set the options of the run: {event.run}"
        case events.SettingsChanged():
            working = ", ".join(f"{agent or 'no agent'} at {named(phase)}" for phase, agent in event.working.items())
            return f"noticed that detent.toml was {'changed' if event.digest else 'removed'}" + (
                f"; at work: {working}" if working else ""
            )
        case _:
            assert_never(event)


def _ran(event: events.BaselineRecorded | events.BaselineReplaced) -> str:
    return event.command or "the tests"


def _launched(event: events.AgentLaunched) -> str:
    """The agent of a run, with the role that it plays: `reviewer as architect`."""
    name = run_agent(event.agent_id)
    return f"{name} as {event.agent}" if name and name != event.agent else event.agent


def _receipt_text(receipt: Receipt) -> str:
    lost = f", but it lost {receipt.lost_count} of the tests of the baseline" if receipt.lost_count else ""
    aside = f", which decides nothing: {receipt.aside}" if receipt.aside else ""
    return f"{receipt.result}{lost}{aside}"
