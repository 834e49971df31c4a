"""How events change a session.

`evolve` states facts: it never refuses what `decide` allowed, and a journal that it cannot follow is corrupt.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from operator import attrgetter
from typing import Any, assert_never

import msgspec

from detent.core.checkpoint.checkpoint import CheckpointKind, Taken
from detent.core.gate.evidence import Delegated, GateState
from detent.core.gate.state import gate_after
from detent.core.limits import MAX_TOOLS
from detent.core.session.budget import BUDGET_EXCEEDED
from detent.core.session.describe import told
from detent.core.session.escalation import add_distinct
from detent.core.session.events import (
    AgentEnded,
    AgentLaunched,
    CheckpointTaken,
    Commit,
    ComplexitySet,
    DocumentAdopted,
    EscalationRaised,
    EscalationsResolved,
    Event,
    GateApproved,
    GateChecked,
    ImportedPhase,
    PhaseBegun,
    PhaseEvent,
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
from detent.core.session.evolve_task import task_applied, with_statuses
from detent.core.session.phase_state import PhaseState, Report
from detent.core.session.phases import Phases
from detent.core.session.session import Escalation, LastRollback, Note, Question, Session, SessionStatus
from detent.core.session.status import Status
from detent.core.session.transition import TRANSITIONS
from detent.core.task.complexity import Complexity, raised
from detent.core.task.plan import Plan
from detent.errors import Corrupt

#: Entries of the session's own history that are kept in the state; the journal keeps all.
MAX_NOTES = 100
#: Launched agents that a phase remembers.
MAX_DELEGATIONS = 50


def evolve(session: Session | None, commit: Commit) -> Session:
    """The session after `commit`. Only a journal that was damaged or written by other rules can fail here."""
    for event in commit.events:
        session = apply(session, event, at=commit.at, version=commit.version, by=commit.by)
    if session is None or commit.version != session.version + 1:
        raise Corrupt(f"commit {commit.version} does not follow {session.version if session else 'a start'}")
    note = Note(timestamp=commit.at, agent=commit.by, action="; ".join(told(commit.events)))
    return msgspec.structs.replace(
        session,
        version=commit.version,
        updated_at=commit.at,
        notes=(*session.notes[1 - MAX_NOTES :], note),
        adopted={event.document: event.digest for event in commit.events if isinstance(event, DocumentAdopted)},
    )


def fingerprint(session: Session) -> str:
    """A hash of the session's facts. The workflow counts by its digest, each phase and the tasks by their own.

    Prose (`notes`) is not hashed, so a sentence can be improved without changing any journal's hash.
    """
    head = _encoder.encode((session.workflow.digest, _hashed_fields(session)))
    total = _SHA256.copy()
    total.update(head)
    total.update(session.phases.digests)
    return total.hexdigest()[:16]


#: `tasks` counts through `tasks_sum`; `adopted` is only needed until the documents are written.
_NOT_HASHED = ("workflow", "phases", "notes", "adopted", "tasks")
_hashed_fields = attrgetter(*(name for name in Session.__struct_fields__ if name not in _NOT_HASHED))
_encoder = msgspec.json.Encoder()
#: Copying a hash object is twice as fast as making one.
_SHA256 = hashlib.sha256()


def apply(session: Session | None, event: Event, *, at: datetime, version: int, by: str = "") -> Session:
    """One event of the commit `version`; `evolve` is what counts the commit itself."""
    if isinstance(event, SessionStarted):
        return _started(event, at)
    if session is None:
        raise Corrupt(f"the journal opens with {type(event).__name__} instead of SessionStarted")
    match event:
        case PhaseBegun() | PhaseRedone() | PhaseFinished() | PhaseFailed() | PhaseSkipped() | PhaseReset():
            return _with_phase(session, event, at, version)
        case GateChecked() | QuestionAnswered() | VoteCast() | GateApproved():
            state = session.phases[event.phase]
            after = gate_after(state.gates.get(event.gate, GateState()), event, at=at, by=by)
            return with_state(session, event.phase, gates={**state.gates, event.gate: after})
        case AgentLaunched():
            launched = Delegated(agent=event.agent, agent_id=event.agent_id, launched_at=at)
            known = session.phases[event.phase].delegations
            return with_state(session, event.phase, delegations=(*known, launched)[-MAX_DELEGATIONS:])
        case AgentEnded():
            report = _reported(session.phases[event.phase].report, event.report)
            return with_state(session, event.phase, delegations=_ended(session, event, at), report=report)
        case QuestionAsked():
            asked = Question(id=event.id, phase=event.phase, text=event.text, choices=event.choices, at=at)
            return msgspec.structs.replace(session, questions=(*session.questions, asked))
        case QuestionReplied():
            return _without_questions(session, lambda one: one.id == event.id)
        case EscalationRaised():
            return _escalated(session, event, at)
        case EscalationsResolved():
            return _resolved(session, event.phase)
        case PhaseReviewed():
            return _reviewed(session, event)
        case SessionCompleted():
            return msgspec.structs.replace(
                session,
                status=SessionStatus.COMPLETED,
                ended_at=at,
                merged_commit=event.merged_commit,
                forced=event.forced,
                questions=(),
            )
        case SessionCancelled():
            return msgspec.structs.replace(
                session, status=SessionStatus.CANCELLED, ended_at=at, cancel_reason=event.reason, questions=()
            )
        case PhasesImported():
            return _imported(session, event, version)
        case TaskWritten() | TaskRemoved() | TaskMoved():
            return task_applied(session, event, version)
        case ComplexitySet():
            return msgspec.structs.replace(session, complexity=raised(session.complexity, Complexity(event.level)))
        case SessionPaused():
            return msgspec.structs.replace(session, paused_at=at)
        case SessionResumed():
            return msgspec.structs.replace(session, paused_at=None)
        case SessionReopened():
            return msgspec.structs.replace(session, archived=False, **_GOING_ON)
        case SessionArchived():
            return msgspec.structs.replace(session, archived=True)
        case CheckpointTaken():
            return _checkpoint_taken(session, event)
        case RolledBack():
            return _rolled_back(session, event, version)
        case DocumentAdopted() | TailDropped():
            return session
        case _:
            assert_never(event)


def _checkpoint_taken(session: Session, event: CheckpointTaken) -> Session:
    session = msgspec.structs.replace(session, checkpoint=event.id)
    if event.taken in (Taken.NOTE, Taken.SAFETY):
        return session
    state = session.phases[event.phase]
    if event.kind is CheckpointKind.PRE:
        return with_state(session, event.phase, pre=max(state.pre, event.attempt))
    return with_state(session, event.phase, post=max(state.post, event.attempt))


def _rolled_back(session: Session, event: RolledBack, version: int) -> Session:
    """Whatever waited for a decision about a phase that stands otherwise now is decided by that."""
    unknown = [key for key in event.phases if key not in session.phases]
    if unknown:
        raise Corrupt(f"a rollback names {', '.join(unknown)}, which the workflow does not have")
    if event.tasks:
        session = with_statuses(session, event.tasks, version)
    return msgspec.structs.replace(
        session,
        phases=session.phases.updated(event.phases),
        escalations=tuple(one for one in session.escalations if one.phase not in event.phases),
        questions=tuple(one for one in session.questions if one.phase not in event.phases),
        rollback=LastRollback(id=event.id, safety=event.safety, paths=event.paths, phase_only=event.phase_only),
        **(_GOING_ON if event.phases else {}),
    )


#: Of a session that goes on after it had ended.
_GOING_ON: dict[str, Any] = {
    "status": SessionStatus.ACTIVE,
    "ended_at": None,
    "cancel_reason": None,
    "merged_commit": None,
    "forced": False,
}


def _started(event: SessionStarted, at: datetime) -> Session:
    return Session(
        id=event.session,
        task=event.task,
        workflow=event.workflow,
        number=event.number,
        folder=event.folder,
        branch=event.branch,
        discovery=event.discovery,
        started_at=at,
        updated_at=at,
        base=event.base,
        options=event.options,
        phases=Phases({key: PhaseState(agent=event.workflow.by_key[key].agent) for key in event.workflow.order}),
        # Its own: plans of one line share what they look up, and two sessions must not.
        tasks=Plan(),
    )


def _imported(session: Session, event: PhasesImported, version: int) -> Session:
    found = {key: one for key, one in event.phases.items() if key in session.phases}
    phases = {key: _imported_phase(session.phases[key], one, version) for key, one in found.items()}
    return msgspec.structs.replace(
        session,
        phases=session.phases.updated(phases),
        started_at=event.started_at or session.started_at,
        carried=event.carried,
    )


def _imported_phase(state: PhaseState, found: ImportedPhase, version: int) -> PhaseState:
    return msgspec.structs.replace(
        state,
        status=Status(found.status),
        attempt=found.attempt,
        fence=version,
        started=found.started,
        begun=found.started,
        completed=found.completed,
        gate_passed=found.gate_passed,
        summary=found.summary,
        artifacts=found.artifacts,
    )


def _with_phase(session: Session, event: PhaseEvent, at: datetime, version: int) -> Session:
    before = session.phases.get(event.phase)
    if before is None:
        raise Corrupt(f"{type(event).__name__} names phase {event.phase}, which the workflow does not have")
    status = TRANSITIONS.get((before.status, type(event)))
    if status is None:
        raise Corrupt(f"{type(event).__name__} cannot follow for phase {event.phase}, which is {before.status}")
    after = _phase_after(before, status, event, at, version)
    if isinstance(event, PhaseFinished) and session.is_supervised(event.phase):
        after = msgspec.structs.replace(after, review="pending")
    if session.questions:
        # Whoever asked has ended with the attempt, or will be asked again in the next one.
        session = _without_questions(session, lambda one: one.phase == event.phase)
    return msgspec.structs.replace(session, phases=session.phases.replaced(event.phase, after))


def _without_questions(session: Session, is_gone: Callable[[Question], bool]) -> Session:
    return msgspec.structs.replace(session, questions=tuple(one for one in session.questions if not is_gone(one)))


def _reported(known: Report | None, more: Report | None) -> Report | None:
    return known if more is None else (known or Report()).and_then(more, MAX_TOOLS)


def with_state(session: Session, phase: str, **changes: Any) -> Session:
    """The session with some fields of one phase's state replaced."""
    if phase not in session.phases:
        raise Corrupt(f"an event names phase {phase}, which the workflow does not have")
    state = msgspec.structs.replace(session.phases[phase], **changes)
    return msgspec.structs.replace(session, phases=session.phases.replaced(phase, state))


def _ended(session: Session, event: AgentEnded, at: datetime) -> tuple[Delegated, ...]:
    return tuple(
        msgspec.structs.replace(one, ended_at=at, succeeded=event.succeeded)
        if one.agent_id == event.agent_id and one.ended_at is None
        else one
        for one in session.phases[event.phase].delegations
    )


def _escalated(session: Session, event: EscalationRaised, at: datetime) -> Session:
    entry = Escalation(kind=event.kind, phase=event.phase, gate=event.gate, detail=event.detail, at=at)
    raised = add_distinct(
        session.escalations, entry, kind=lambda one: (one.kind, one.phase, one.gate), at=lambda one: one.at
    )
    session = msgspec.structs.replace(session, escalations=tuple(raised))
    if event.gate is None:
        return session
    gates = session.phases[event.phase].gates
    state = msgspec.structs.replace(gates.get(event.gate, GateState()), escalated=event.kind)
    return with_state(session, event.phase, gates={**gates, event.gate: state})


def _resolved(session: Session, phase: str | None) -> Session:
    """The counting starts anew at every gate that was escalated; what was run stays known."""
    decided = [entry for entry in session.escalations if phase in (None, entry.phase)]
    for entry in decided:
        if entry.gate is not None and entry.phase in session.phases:
            gates = session.phases[entry.phase].gates
            cleared = msgspec.structs.replace(
                gates.get(entry.gate, GateState()), iterations=0, repeats=0, escalated=None
            )
            session = with_state(session, entry.phase, gates={**gates, entry.gate: cleared})
        if entry.kind == BUDGET_EXCEEDED and entry.phase in session.phases:
            session = with_state(session, entry.phase, budget_accepted=True)
    left = tuple(entry for entry in session.escalations if entry not in decided)
    return msgspec.structs.replace(session, escalations=left)


def _reviewed(session: Session, event: PhaseReviewed) -> Session:
    state = session.phases[event.phase]
    review = {"continue": "done", "review": "reviewing", "redo": None}[event.decision]
    return with_state(session, event.phase, review=review, review_redos=state.review_redos + (event.decision == "redo"))


def _phase_after(before: PhaseState, status: Status, event: PhaseEvent, at: datetime, version: int) -> PhaseState:
    match event:
        case PhaseBegun() | PhaseRedone():
            return PhaseState(
                status=status,
                attempt=event.attempt,
                fence=version,
                agent=event.agent,
                started=before.started or at,
                begun=at,
                tokens=before.all_tokens,
                review_redos=before.review_redos,
                protected=before.protected or event.protected,
                pre=before.pre,
                post=before.post,
            )
        case PhaseFinished():
            return msgspec.structs.replace(
                before,
                status=status,
                completed=at,
                gate_passed=at,
                summary=event.summary,
                artifacts=event.artifacts,
                deliverables=event.deliverables,
                context=event.context,
                tokens=before.tokens + event.tokens,
                tools=event.tools,
                tools_dropped=event.tools_dropped,
                report=None,
            )
        case PhaseFailed():
            return msgspec.structs.replace(
                before,
                status=status,
                completed=at,
                error=event.error,
                artifacts=event.artifacts,
                tokens=before.tokens + event.tokens,
                tools=event.tools,
                tools_dropped=event.tools_dropped,
                report=None,
            )
        case PhaseSkipped():
            return msgspec.structs.replace(
                before, status=status, skip_reason=event.reason, tokens=before.all_tokens, report=None
            )
        case PhaseReset():
            return PhaseState(
                status=status,
                attempt=before.attempt,
                fence=before.fence,
                agent=before.agent,
                started=before.started,
                tokens=before.all_tokens,
                pre=before.pre,
                post=before.post,
            )
        case _:
            assert_never(event)
