"""The part of people in a session: what they were asked, what they decided, what was changed by hand."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from detent.core.actor import spoken_as
from detent.core.counted import counted
from detent.core.session.describe import describe
from detent.core.session.events import (
    BaselineRecorded,
    BaselineReplaced,
    CheckpointEvent,
    Commit,
    ComplexitySet,
    DelegationEvent,
    DocumentAdopted,
    EscalationEvent,
    EscalationRaised,
    EscalationsResolved,
    GateApproved,
    GateChecked,
    GateCommandSet,
    LossAccepted,
    PhaseEvent,
    PhaseReviewed,
    PhasesImported,
    QuestionAnswered,
    QuestionAsked,
    QuestionEvent,
    QuestionReplied,
    RecordEvent,
    RunOptionsSet,
    SessionArchived,
    SessionCancelled,
    SessionCompleted,
    SessionPaused,
    SessionReopened,
    SessionResumed,
    SessionStarted,
    TaskEvent,
    VoteCast,
)
from detent.core.session.phase_name import Named
from detent.core.task.title import escaped
from detent.render.markdown.blocks import clock

_Questions = QuestionEvent | QuestionAnswered
_Decisions = (EscalationEvent | SessionCancelled | SessionCompleted | GateApproved | VoteCast | PhaseReviewed) | (
    LossAccepted | GateCommandSet | BaselineReplaced
)
#: Events that other parts of the report show in their result, or that only the log shows.
_Others = (
    (PhaseEvent | PhasesImported | GateChecked | DelegationEvent | TaskEvent | ComplexitySet | CheckpointEvent)
    | (SessionStarted | SessionPaused | SessionResumed | SessionReopened | SessionArchived)
    | (DocumentAdopted | RecordEvent | BaselineRecorded | RunOptionsSet)
)


def question_lines(commits: Sequence[Commit], named: Named) -> Iterator[str]:
    asked: dict[str, tuple[str, str]] = {}
    answered: dict[str, str] = {}
    for commit in commits:
        for event in commit.events:
            if isinstance(event, _Decisions | _Others):
                continue
            match event:
                case QuestionAsked():
                    asked[event.id] = (event.phase, event.text)
                case QuestionReplied():
                    answered[event.id] = f"{escaped(event.answer)} ({escaped(commit.by)}, {clock(commit.at)})"
                case QuestionAnswered():
                    if event.choice:
                        yield f"- {escaped(named(event.phase))}, {escaped(event.gate)}: {escaped(event.choice)}"
                case _:
                    assert_never(event)
    for key, (phase, text) in asked.items():
        yield f"- {escaped(named(phase))} asked: {escaped(text)}"
        yield f"  - {answered.get(key, 'not answered')}"


def decision_lines(commits: Sequence[Commit], named: Named) -> Iterator[str]:
    """Escalations with their decisions, reviews, votes, and gates that were opened by hand."""
    raised: list[str] = []
    for commit in commits:
        who = f"{escaped(commit.by)}, {clock(commit.at)}"
        if commit.actor.proof is not None:
            who = f"{who}, {escaped(commit.actor.proof.describe())}"
        for event in commit.events:
            if isinstance(event, _Questions | _Others):
                continue
            match event:
                case EscalationRaised():
                    raised.append(f"{escaped(named(event.phase))}: {escaped(event.detail)} ({escaped(event.kind)})")
                case EscalationsResolved():
                    why = f": {escaped(event.reason)}" if event.reason else ""
                    yield from _resolved(raised, f"{escaped(event.action)} ({who}){why}")
                    raised = []
                case SessionCancelled() | SessionCompleted():
                    yield from _resolved(raised, f"the session ended ({who})")
                    raised = []
                case LossAccepted():
                    names = escaped(", ".join(event.names))
                    yield f"- the loss of {names} was accepted ({who}): {escaped(event.reason)}"
                case GateCommandSet():
                    yield f"- the command of {escaped(event.gate)} became {escaped(event.command)} ({who}): " + (
                        escaped(event.reason)
                    )
                case BaselineReplaced():
                    replaced = f"{counted(event.tests.count, 'test')} became the baseline"
                    yield f"- {replaced} ({who}): {escaped(event.reason)}"
                case GateApproved():
                    opened = f"{escaped(event.gate)} at {escaped(named(event.phase))} was opened by hand"
                    yield f"- {opened} ({who}): {escaped(event.reason)}"
                case VoteCast():
                    vote = "approved" if event.approve else "rejected"
                    why = f": {escaped(event.reason)}" if event.reason else ""
                    voter = escaped(spoken_as(event.approver, event.stands_for))
                    yield f"- {voter} {vote} {escaped(event.gate)} at {escaped(named(event.phase))} ({who}){why}"
                case PhaseReviewed():
                    why = f": {escaped(event.note)}" if event.note else ""
                    yield f"- {escaped(named(event.phase))} was reviewed: {escaped(event.decision)} ({who}){why}"
                case _:
                    assert_never(event)
    yield from _resolved(raised, "still open")


def record_lines(commits: Sequence[Commit], named: Named) -> Iterator[str]:
    """Changes of the journal and the settings that came from outside."""
    for commit in commits:
        for event in commit.events:
            if isinstance(event, RecordEvent):
                yield f"- {escaped(describe(event, named))} ({escaped(commit.by)}, {clock(commit.at)})"


def _resolved(raised: Iterable[str], how: str) -> Iterator[str]:
    for escalation in raised:
        yield f"- {escalation}"
        yield f"  - {how}"
