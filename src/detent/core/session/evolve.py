"""Applies events to a session. Never refuses: a journal that cannot be followed is corrupt."""

from collections.abc import Callable
from datetime import datetime
from operator import attrgetter
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from detent.core.actor import Actor, ActorKind
from detent.core.checkpoint.checkpoint import CheckpointKind, Taken
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Delegated, GateState, Program
from detent.core.gate.state import gate_after
from detent.core.limits import MAX_TOOLS
from detent.core.session import events
from detent.core.session.describe import event_lines
from detent.core.session.escalation import BUDGET_EXCEEDED, add_distinct
from detent.core.session.events import Commit, Event, GateEvent, ImportedPhase, PhaseEvent, TaskEvent
from detent.core.session.phase_state import PhaseState, Report
from detent.core.session.phases import Phases
from detent.core.session.session import NO_TASKS, Escalation, LastRollback, Note, Question, Session, SessionStatus
from detent.core.session.status import Status
from detent.core.session.transition import TRANSITIONS
from detent.core.task.complexity import Complexity, complexity, raised
from detent.core.task.id import canonical
from detent.core.task.lifecycle import TRANSITIONS as TASK_TRANSITIONS
from detent.core.task.lifecycle import Action
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus, row_of
from detent.core.testrun.baseline import KnownTests
from detent.errors import Corrupt, DetentError
from detent.sha256 import sha256

#: Maximum number of history entries in the state. The journal has all of them.
MAX_NOTES = 100
#: Maximum number of launched agents in the state of a phase.
MAX_DELEGATIONS = 50
_SUM_BITS = 128

_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="deterministic").encode


def evolve(session: Session | None, commit: Commit) -> Session:
    """The session after `commit`. Raises `Corrupt` for a damaged journal, or one written by other rules."""
    known, name = (session.tasks, session.id) if session is not None else (NO_TASKS, "")
    try:
        for event in commit.events:
            session = apply(session, event, at=commit.at, version=commit.version, actor=commit.actor)
    except Corrupt as error:
        raise _cannot_follow(name, error.message) from error
    except (LookupError, StopIteration, ValueError) as error:
        raise _cannot_follow(name, f"commit {commit.version} names what is not there: {error!r}") from error
    if session is None or commit.version != session.version + 1:
        before = session.version if session else "a start"
        raise _cannot_follow(name, f"commit {commit.version} does not follow {before}")
    note = Note(timestamp=commit.at, agent=commit.by, action="; ".join(event_lines(commit.events)))
    added = 0
    if session.tasks is not known and commit.actor.kind is not ActorKind.PERSON:
        written = {event.task for event in commit.events if isinstance(event, events.TaskWritten)}
        added = sum(task not in known for task in written)
    return replace(
        session,
        version=commit.version,
        added_tasks=session.added_tasks + added,
        updated_at=commit.at,
        notes=(*session.notes[1 - MAX_NOTES :], note),
        adopted={event.document: event.digest for event in commit.events if isinstance(event, events.DocumentAdopted)},
    )


def _cannot_follow(session: str, message: str) -> Corrupt:
    mends = (
        f"detent doctor --restore {session} sets it aside, and all commits behind it" if session else "detent doctor"
    )
    return Corrupt(message, way_out=mends)


def fingerprint(session: Session) -> str:
    """A hash of the session's facts. It covers the workflow, each phase and the tasks through their own digests.

    Prose (`notes`) is not hashed, so a sentence can be improved without changing any journal's hash.
    """
    fields = _encode((session.workflow.digest, _hashed_fields(session)))
    return sha256(fields + session.phases.digests).hexdigest()[:16]


#: `tasks_sum` covers `tasks`; `toolchain` never changes; `adopted` is only needed until the documents are written.
_NOT_HASHED = ("workflow", "phases", "notes", "adopted", "tasks", "toolchain")
_hashed_fields = attrgetter(*(name for name in Session.__struct_fields__ if name not in _NOT_HASHED))


def apply(session: Session | None, event: Event, *, at: datetime, version: int, actor: Actor | None = None) -> Session:
    """The session after one event of commit `version` by `actor`. `evolve` counts the commit itself."""
    if isinstance(event, events.SessionStarted):
        return _started(event, at)
    if session is None:
        raise Corrupt(f"the journal opens with {type(event).__name__} instead of SessionStarted")
    if isinstance(event, PhaseEvent):
        return _with_phase(session, event, at, version)
    if isinstance(event, GateEvent):
        gates = session.phases[event.phase].gates
        by, proof = (actor.identity, actor.proof) if actor is not None else ("", None)
        after = gate_after(gates.get(event.gate, GateState()), event, at=at, by=by, proof=proof)
        session = with_state(session, event.phase, gates={**gates, event.gate: after})
        return _with_check(session, event) if isinstance(event, events.GateChecked) else session
    if isinstance(event, TaskEvent):
        return _with_task(session, event, version)
    match event:
        case events.LossAccepted():
            accepted = tuple(dict.fromkeys((*session.baseline.accepted, *event.names)))
            return replace(session, baseline=replace(session.baseline, accepted=accepted))
        case events.BaselineRecorded():
            tests = {**session.baseline.tests, event.command: event.tests}
            return replace(session, baseline=replace(session.baseline, tests=tests))
        case events.BaselineReplaced():
            tests = {**session.baseline.tests, event.command: event.tests}
            last = {command: known for command, known in session.baseline.last.items() if command != event.command}
            return replace(session, baseline=replace(session.baseline, tests=tests, last=last))
        case events.GateCommandSet():
            return _with_gate_command(session, event)
        case events.AgentLaunched():
            launched = Delegated(agent=event.agent, agent_id=event.agent_id, launched_at=at, sandboxed=event.sandboxed)
            known = session.phases[event.phase].delegations
            return with_state(session, event.phase, delegations=(*known, launched)[-MAX_DELEGATIONS:])
        case events.AgentEnded():
            report = _reported(session.phases[event.phase].report, event.report)
            return with_state(session, event.phase, delegations=_ended(session, event, at), report=report)
        case events.QuestionAsked():
            asked = Question(id=event.id, phase=event.phase, text=event.text, choices=event.choices, at=at)
            return replace(session, questions=(*session.questions, asked))
        case events.QuestionReplied():
            return _without_questions(session, lambda question: question.id == event.id)
        case events.EscalationRaised():
            return _escalated(session, event, at)
        case events.EscalationsResolved():
            return _resolved(session, event.phase)
        case events.PhaseReviewed():
            return _reviewed(session, event)
        case events.SessionCompleted():
            return replace(
                session,
                status=SessionStatus.COMPLETED,
                ended_at=at,
                merged_commit=event.merged_commit,
                forced=event.forced,
                questions=(),
            )
        case events.SessionCancelled():
            return replace(
                session, status=SessionStatus.CANCELLED, ended_at=at, cancel_reason=event.reason, questions=()
            )
        case events.PhasesImported():
            return _imported(session, event, version)
        case events.ComplexitySet():
            return replace(session, complexity=raised(session.complexity, Complexity(event.level)))
        case events.SessionPaused():
            return replace(session, paused_at=at)
        case events.SessionResumed():
            return replace(session, paused_at=None)
        case events.SessionReopened():
            return replace(session, archived=False, **_REOPENED)
        case events.SessionArchived():
            return replace(session, archived=True)
        case events.CheckpointTaken():
            return _checkpoint_taken(session, event)
        case events.RolledBack():
            return _rolled_back(session, event, version)
        case events.RunOptionsSet():
            return replace(session, options=replace(session.options, run=event.run))
        case events.SettingsChanged():
            return replace(session, options=replace(session.options, settings=event.digest))
        case events.DocumentAdopted() | events.TailDropped() | events.TailSetAside():
            return session
        case _:
            assert_never(event)


def _with_gate_command(session: Session, event: events.GateCommandSet) -> Session:
    """The session with the command in its pinned workflow. Receipts of the command before it are dropped.

    Another gate of the phase that runs the tests by the same command gets the new one too.
    """
    by_key = session.workflow.by_key
    changed = {phase: _gates_of_command(by_key[phase].gates, event.gate) for phase in event.phases}
    phases = tuple(
        replace(
            phase,
            gates=tuple(
                gate.with_command(event.command) if gate_name(gate) in changed[phase.key] else gate
                for gate in phase.gates
            ),
        )
        if phase.key in changed
        else phase
        for phase in session.workflow.phases
    )
    session = replace(session, workflow=replace(session.workflow, phases=phases))
    for phase, names in changed.items():
        gates = session.phases[phase].gates
        cleared = {
            name: replace(gates[name], receipt=None, aside=None, iterations=0, failures=0, repeats=0)
            for name in names & gates.keys()
        }
        if cleared:
            session = with_state(session, phase, gates={**gates, **cleared})
    return session


def _gates_of_command(gates: tuple[Gate, ...], name: str) -> frozenset[str]:
    """The named gate, and those that run the tests by the same command as it does."""
    named = next(gate for gate in gates if gate_name(gate) == name)
    return frozenset(
        gate_name(gate)
        for gate in gates
        if gate is named or (named.runs_tests and gate.runs_tests and gate.runnable() == named.runnable())
    )


def _checkpoint_taken(session: Session, event: events.CheckpointTaken) -> Session:
    session = replace(session, checkpoint=event.id)
    if event.taken in (Taken.NOTE, Taken.SAFETY):
        return session
    state = session.phases[event.phase]
    if event.kind is CheckpointKind.PRE:
        gates = session.workflow.by_key[event.phase].gates
        is_compared = any(gate.needs_changes or gate.needs_begin for gate in gates)
        tree = state.tree or (event.tree.manifest if is_compared else None)
        return with_state(session, event.phase, pre=max(state.pre, event.attempt), tree=tree)
    return with_state(session, event.phase, post=max(state.post, event.attempt))


def _rolled_back(session: Session, event: events.RolledBack, version: int) -> Session:
    """The rollback also drops the escalations and questions of the phases that it changes."""
    unknown = [key for key in event.phases if key not in session.phases]
    if unknown:
        raise Corrupt(f"a rollback names {', '.join(unknown)}, which the workflow does not have")
    if event.tasks:
        session = _with_task_statuses(session, event.tasks, version)
    return replace(
        session,
        phases=session.phases.updated(event.phases),
        escalations=tuple(entry for entry in session.escalations if entry.phase not in event.phases),
        questions=tuple(entry for entry in session.questions if entry.phase not in event.phases),
        rollback=LastRollback(id=event.id, safety=event.safety, paths=event.paths, phase_only=event.phase_only),
        **(_REOPENED if event.phases else {}),
    )


#: The fields of a session that is active again after its end.
_REOPENED: dict[str, Any] = {
    "status": SessionStatus.ACTIVE,
    "ended_at": None,
    "cancel_reason": None,
    "merged_commit": None,
    "forced": False,
}


def _with_check(session: Session, event: events.GateChecked) -> Session:
    """The session with the program of a check, and with the tests of a pass."""
    receipt = event.receipt
    session = _with_program(session, receipt.program)
    if receipt.tests is None or receipt.aside is not None or not receipt.is_pass:
        return session
    gate = next(gate for gate in session.workflow.by_key[event.phase].gates if gate_name(gate) == event.gate)
    passed = KnownTests(count=receipt.tests.passed, names=receipt.names)
    last = {**session.baseline.last, gate.runnable() or "": passed}
    return replace(session, baseline=replace(session.baseline, last=last))


def _with_program(session: Session, program: Program | None) -> Session:
    """The session with the program of a run, if it knows none by that name."""
    if program is None or program.name in session.programs:
        return session
    return replace(session, programs={**session.programs, program.name: program})


def _started(event: events.SessionStarted, at: datetime) -> Session:
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
        toolchain=event.toolchain,
        programs=event.toolchain.programs if event.toolchain else {},
        protected=event.protected,
        id_later_s=event.id_later_s,
        phases=Phases({key: PhaseState(agent=event.workflow.by_key[key].agent) for key in event.workflow.order}),
        # A plan of its own: a plan shares its index with later versions of it, which two sessions must not.
        tasks=Plan(),
    )


def _imported(session: Session, event: events.PhasesImported, version: int) -> Session:
    phases = {
        key: _imported_phase(session.phases[key], imported, version)
        for key, imported in event.phases.items()
        if key in session.phases
    }
    return replace(
        session,
        phases=session.phases.updated(phases),
        started_at=event.started_at or session.started_at,
        carried=event.carried,
    )


def _imported_phase(state: PhaseState, imported: ImportedPhase, version: int) -> PhaseState:
    return replace(
        state,
        status=Status(imported.status),
        attempt=imported.attempt,
        fence=version,
        started=imported.started,
        begun=imported.started,
        completed=imported.completed,
        gate_passed=imported.gate_passed,
        summary=imported.summary,
        artifacts=imported.artifacts,
    )


def _with_phase(session: Session, event: PhaseEvent, at: datetime, version: int) -> Session:
    if event.phase not in session.phases:
        raise Corrupt(f"{type(event).__name__} names phase {event.phase}, which the workflow does not have")
    before = session.phases[event.phase]
    status = TRANSITIONS.get((before.status, type(event)))
    if status is None:
        raise Corrupt(f"{type(event).__name__} cannot follow for phase {event.phase}, which is {before.status}")
    after = _phase_after(before, status, event, at, version)
    if isinstance(event, events.PhaseFinished) and session.is_supervised(event.phase):
        after = replace(after, review="pending")
    if session.questions:
        # The agent that asked ends with the attempt.
        session = _without_questions(session, lambda question: question.phase == event.phase)
    return replace(session, phases=session.phases.replaced(event.phase, after))


def _without_questions(session: Session, is_closed: Callable[[Question], bool]) -> Session:
    return replace(session, questions=tuple(q for q in session.questions if not is_closed(q)))


def _reported(known: Report | None, more: Report | None) -> Report | None:
    return known if more is None else (known or Report()).and_then(more, MAX_TOOLS)


def with_state(session: Session, phase: str, **changes: Any) -> Session:
    """The session with fields of one phase's state replaced."""
    if phase not in session.phases:
        raise Corrupt(f"an event names phase {phase}, which the workflow does not have")
    state = replace(session.phases[phase], **changes)
    return replace(session, phases=session.phases.replaced(phase, state))


def _ended(session: Session, event: events.AgentEnded, at: datetime) -> tuple[Delegated, ...]:
    return tuple(
        replace(entry, ended_at=at, succeeded=event.succeeded)
        if entry.agent_id == event.agent_id and entry.ended_at is None
        else entry
        for entry in session.phases[event.phase].delegations
    )


def _escalated(session: Session, event: events.EscalationRaised, at: datetime) -> Session:
    entry = Escalation(kind=event.kind, phase=event.phase, gate=event.gate, detail=event.detail, at=at)
    entries = add_distinct(session.escalations, entry, kind=attrgetter("kind", "phase", "gate"), at=attrgetter("at"))
    session = replace(session, escalations=tuple(entries))
    if event.gate is None:
        return session
    gates = session.phases[event.phase].gates
    state = replace(gates.get(event.gate, GateState()), escalated=event.kind)
    return with_state(session, event.phase, gates={**gates, event.gate: state})


def _resolved(session: Session, phase: str | None) -> Session:
    """The session without its escalations. Resets the counters of their gates; receipts stay."""
    decided = [entry for entry in session.escalations if phase in (None, entry.phase)]
    for entry in decided:
        if entry.gate is not None and entry.phase in session.phases:
            gates = session.phases[entry.phase].gates
            cleared = replace(gates.get(entry.gate, GateState()), iterations=0, repeats=0, escalated=None)
            session = with_state(session, entry.phase, gates={**gates, entry.gate: cleared})
        if entry.kind == BUDGET_EXCEEDED and entry.phase in session.phases:
            session = with_state(session, entry.phase, budget_accepted=True)
    left = tuple(entry for entry in session.escalations if entry not in decided)
    return replace(session, escalations=left)


def _reviewed(session: Session, event: events.PhaseReviewed) -> Session:
    state = session.phases[event.phase]
    review = {"continue": "done", "review": "reviewing", "redo": None}[event.decision]
    return with_state(session, event.phase, review=review, review_redos=state.review_redos + (event.decision == "redo"))


def _phase_after(before: PhaseState, status: Status, event: PhaseEvent, at: datetime, version: int) -> PhaseState:
    match event:
        case events.PhaseBegun() | events.PhaseRedone():
            return before.redone(
                status=status,
                attempt=event.attempt,
                fence=version,
                agent=event.agent,
                started=before.started or at,
                begun=at,
                tokens=before.all_tokens,
            )
        case events.PhaseFinished():
            return replace(
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
                protected=event.protected,
            )
        case events.PhaseFailed():
            return replace(
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
        case events.PhaseSkipped():
            return replace(before, status=status, skip_reason=event.reason, tokens=before.all_tokens, report=None)
        case events.PhaseReset():
            return before.reset(status=status, tokens=before.all_tokens)
        case _:
            assert_never(event)


# Tasks


def _with_task(session: Session, event: TaskEvent, version: int) -> Session:
    try:
        match event:
            case events.TaskWritten():
                before = session.tasks.get(event.task)
                body = _digest(event.document)
                row = replace(row_of(event.document), body=body, changed=version, written=version)
                if canonical(event.task) != row.id:
                    raise Corrupt(f"an event about {event.task} holds the document of {row.id}")
                return _with_row(session, before, row)
            case events.TaskRemoved():
                before = session.tasks[event.task]
                claims = {task: claim for task, claim in session.claims.items() if task != event.task}
                gone = _with_sum(session, before, None, session.tasks.without(event.task))
                return replace(gone, claims=claims, retired=(*session.retired, event.task))
            case events.TaskMoved():
                return _task_moved(session, event, version)
    except DetentError as error:
        raise Corrupt(f"the journal cannot be followed at {event.task}: {error.message}") from error


def _task_moved(session: Session, event: events.TaskMoved, version: int) -> Session:
    before = session.tasks[event.task]
    status = TASK_TRANSITIONS.get((before.status, Action(event.action)))
    if status is None or status != event.status:
        raise Corrupt(f"{event.action} cannot follow for task {event.task}, which is {before.status}")
    row = replace(
        before,
        status=status,
        reason=event.reason or None if status in (TaskStatus.BLOCKED, TaskStatus.FAILED) else None,
        attempts=before.attempts + (event.action == Action.START),
        changed=version,
    )
    claims = {task: claim for task, claim in session.claims.items() if task != event.task}
    if event.claim is not None:
        claims[event.task] = event.claim
    return replace(_with_row(session, before, row), claims=claims)


def _with_task_statuses(session: Session, statuses: dict[str, str], version: int) -> Session:
    """The session with the task statuses of a rollback. The claims on these tasks end."""
    for task, status in statuses.items():
        before = session.tasks[task]
        row = replace(before, status=TaskStatus(status), reason=None, changed=version)
        session = _with_row(session, before, row)
    claims = {task: claim for task, claim in session.claims.items() if task not in statuses}
    return replace(session, claims=claims)


def _with_row(session: Session, before: Row | None, row: Row) -> Session:
    return _with_sum(session, before, row, session.tasks.with_row(row))


def _with_sum(session: Session, before: Row | None, after: Row | None, tasks: Any) -> Session:
    """`tasks_sum` is the sum of the hashes of all rows, so that it does not depend on their order."""
    total = int(session.tasks_sum or "0", 16) - _hash(before) + _hash(after)
    counted = complexity(tasks.leaf_count, has_subtasks=tasks.has_subtasks)
    return replace(
        session,
        tasks=tasks,
        tasks_sum=f"{total % (1 << _SUM_BITS):032x}",
        complexity=raised(session.complexity, counted),
    )


def _digest(document: dict[str, Any]) -> str:
    return sha256(_sorted(document)).hexdigest()[:16]


def _hash(row: Row | None) -> int:
    return 0 if row is None else int.from_bytes(sha256(_encode(row)).digest()[: _SUM_BITS // 8], "big")
