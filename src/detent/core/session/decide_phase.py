"""Decides commands about phases, and the reports of agents that end an attempt.

`TRANSITIONS` lists the legal transitions of one phase. The checks here add what the table cannot express: needs,
tokens, gates, limits. A refusal names the values and the way out.
"""

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from detent.core.gate.evidence import Facts, Verdict
from detent.core.gate.judge import judgements
from detent.core.limits import (
    MAX_ERROR,
    MAX_NAME,
    MAX_REASON,
    MAX_SUMMARY,
    MAX_TOOL_INPUT,
    MAX_TOOLS,
    check_artifacts,
    check_deliverables,
    check_optional,
    check_task,
    check_text,
    cut,
)
from detent.core.session.commands import Begin, Cancel, Complete, Fail, Finish, Import, PhaseCommand, Redo, Skip, Start
from detent.core.session.decide_checkpoint import checkpoints
from detent.core.session.events import (
    AgentEnded,
    AgentLaunched,
    Event,
    PhaseBegun,
    PhaseEvent,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseReviewed,
    PhasesImported,
    PhaseSkipped,
    SessionCancelled,
    SessionCompleted,
    SessionStarted,
)
from detent.core.session.evolve import apply
from detent.core.session.open_decision import escalations_open, reviews_open, way_out
from detent.core.session.phase_state import PhaseState, Report, ToolUse, Worker
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.session.transition import TRANSITIONS
from detent.core.task.row import TaskStatus
from detent.core.workflow.graph import Workflow
from detent.core.workflow.phase_key import normalize_phase_key
from detent.errors import GateClosed, Invalid, NotFound, Refused


def decide_start(command: Start) -> tuple[Event, ...]:
    """The events of a new session. Its first phase is in progress, so no document shows a pending current phase."""
    left_out = size_phases(command.workflow.sizes, command.size, command.workflow.name)
    first = first_phase(command.workflow, command.size)
    started = _session_started(command)
    events: tuple[Event, ...] = (
        started,
        *(PhaseSkipped(phase=key, reason=f"size {command.size}") for key in left_out),
        PhaseBegun(phase=first, attempt=1, agent=command.workflow.by_key[first].agent),
    )
    if command.tree is None or command.now is None:
        return events
    facts = Facts(now=command.now, tree=command.tree)
    return (*events, *checkpoints(apply(None, started, at=command.now, version=1), events, facts))


def first_phase(workflow: Workflow, size: str | None) -> str:
    """The phase that a session of this size starts with."""
    left_out = size_phases(workflow.sizes, size, workflow.name)
    for key in workflow.order:
        if key not in left_out:
            return key
    raise Refused(f"size {size} leaves no phase of {workflow.name} to do")


def decide_import(command: Import) -> tuple[SessionStarted, PhasesImported]:
    return _session_started(command.start), command.imported


def decide_phase(session: Session, command: PhaseCommand, facts: Facts) -> tuple[Event, ...]:
    match command:
        case Begin():
            return _begin(session, command)
        case Finish():
            return with_completion(session, _finish(session, command, facts), command.merged_commit)
        case Fail():
            return _fail(session, command)
        case Redo():
            return _redo(session, command)
        case Skip():
            return with_completion(session, tuple(_skip(session, command)))
        case Complete():
            return _complete(session, command, facts)
        case Cancel():
            return (SessionCancelled(reason=check_text("a reason to cancel", command.reason, MAX_REASON)),)
        case _:
            assert_never(command)


def known_phase(session: Session, key: str) -> str:
    """The phase key in the spelling of the workflow. Accepts legacy keys; raises `NotFound` for any other."""
    if key in session.phases:
        return key
    present = normalize_phase_key(key)
    if present in session.phases:
        return present
    import difflib  # noqa: PLC0415 - only a misspelling needs it

    close = difflib.get_close_matches(key, session.workflow.order, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise NotFound(
        f"{session.workflow.name} has no phase {key[:80]}; {hint}it has {', '.join(session.workflow.order)}",
        way_out="detent graph",
    )


def size_phases(sizes: dict[str, tuple[str, ...]], size: str | None, workflow: str) -> tuple[str, ...]:
    """The phases that `size` leaves out."""
    if size is None:
        return ()
    if size not in sizes:
        offered = f"it has {', '.join(sizes)}" if sizes else "it comes in one size"
        raise NotFound(f"workflow {workflow} has no size {size}; {offered}")
    return tuple(dict.fromkeys(sizes[size]))


def _session_started(command: Start) -> SessionStarted:
    return SessionStarted(
        session=command.session,
        task=check_task(command.task),
        workflow=command.workflow,
        number=command.number,
        folder=command.folder,
        branch=check_optional("a branch", command.branch or "", MAX_NAME) or None,
        discovery=command.discovery,
        base=command.base,
        options=command.options,
        toolchain=command.toolchain,
        protected=command.protected,
        id_later_s=command.id_later_s,
    )


def _begin(session: Session, command: Begin) -> tuple[Event, ...]:
    if command.phase is None:
        if not session.ready:
            raise Refused(_nothing_ready(session), way_out="detent why")
        phase = session.ready[0]
    else:
        phase = known_phase(session, command.phase)
    event = PhaseBegun(
        phase=phase, attempt=session.phases[phase].attempt + 1, agent=_agent(session, phase, command.agent)
    )
    if command.phase is not None:
        _check_legal(session, event)
        _check_needs(session, phase)
    _check_free(session)
    return _with_launch(event, command)


def _finish(session: Session, command: Finish, facts: Facts) -> tuple[Event, ...]:
    phase, attempt = _live_attempt(session, command)
    report = _attempt_report(session.phases[phase], command)
    summary = report.summary if command.summary is None else command.summary
    summary = cut(check_text("a summary of the work", summary, None), MAX_SUMMARY)
    event = PhaseFinished(
        phase=phase,
        attempt=attempt,
        summary=summary,
        artifacts=report.artifacts,
        deliverables=check_deliverables(command.deliverables) or report.deliverables,
        context=check_optional("context", command.context, MAX_REASON) or report.context,
        tokens=report.tokens,
        tools=report.tools,
        tools_dropped=report.tools_dropped,
        protected=facts.protected if session.workflow.by_key[phase].rewrites_tests else None,
    )
    _check_legal(session, event)
    _check_gates(session, phase, facts)
    return (*_ended(session.phases[phase], phase, command, succeeded=True), event)


def _fail(session: Session, command: Fail) -> tuple[Event, ...]:
    phase, attempt = _live_attempt(session, command)
    report = _attempt_report(session.phases[phase], command)
    event = PhaseFailed(
        phase=phase,
        attempt=attempt,
        error=cut(check_text("an error", command.error, None), MAX_ERROR),
        artifacts=report.artifacts,
        tokens=report.tokens,
        tools=report.tools,
        tools_dropped=report.tools_dropped,
    )
    _check_legal(session, event)
    return (*_ended(session.phases[phase], phase, command, succeeded=False), event)


def _redo(session: Session, command: Redo) -> tuple[Event, ...]:
    phase = known_phase(session, command.phase)
    state = session.phases[phase]
    if command.failed is not None and (state.attempt, state.status) != (command.failed, Status.FAILED):
        raise Refused(
            f"attempt {state.attempt} of {phase} is {state.status}, and attempt {command.failed} was to be repeated",
            way_out="detent status shows the holder",
        )
    begun = [
        key
        for key in session.workflow.descendants(phase)
        if session.phases[key].status in (Status.IN_PROGRESS, Status.COMPLETED, Status.FAILED)
    ]
    if begun and not command.cascade:
        raise Refused(
            f"{', '.join(begun)} built on {phase} and would have to be done again",
            way_out=f"detent redo {phase} --cascade",
        )
    event = PhaseRedone(
        phase=phase,
        attempt=state.attempt + 1,
        agent=_agent(session, phase, command.agent),
        reason=cut(check_optional("a reason", command.reason, None), MAX_REASON),
    )
    _check_legal(session, event)
    _check_needs(session, phase)
    reset = [PhaseReset(phase=key, reason=f"{phase} is done again") for key in reversed(begun)]
    return (*reset, *_with_launch(event, command))


def _skip(session: Session, command: Skip) -> Iterable[PhaseSkipped]:
    reason = check_text("a reason to skip", command.reason, MAX_REASON)
    by_size = size_phases(session.workflow.sizes, command.size, session.workflow.name)
    named = dict.fromkeys(known_phase(session, key) for key in command.phases)
    open_by_size = (key for key in by_size if session.phases[key].status is Status.PENDING)
    chosen = (*named, *(key for key in open_by_size if key not in named))
    if not chosen:
        raise Refused("there is nothing left to skip" if command.size else "name the phases to skip")
    for phase in chosen:
        event = PhaseSkipped(phase=phase, reason=reason)
        _check_legal(session, event)
        yield event


def _complete(session: Session, command: Complete, facts: Facts) -> tuple[Event, ...]:
    _check_tasks_done(session, command)
    unfinished = session.unfinished
    merged = _commit_name(command.merged_commit)
    if len(session.tasks) and unfinished == session.workflow.order[-1:] == session.in_progress:
        # The last phase reviews the work of the tasks, so completing the session finishes it.
        finished = _finish(session, Finish(phase=unfinished[0], summary="all tasks are done and looked at"), facts)
        return *finished, SessionCompleted(merged_commit=merged, forced=_open_tasks(session) > 0)
    if unfinished and not command.force:
        listed = ", ".join(f"{key} ({session.phases[key].status})" for key in unfinished)
        raise Refused(
            f"{len(unfinished)} of {len(session.active_order)} phases are not finished: {listed}",
            way_out="finish or skip them, or detent complete --force",
        )
    return (SessionCompleted(merged_commit=merged, forced=bool(unfinished) or _open_tasks(session) > 0),)


def _check_tasks_done(session: Session, command: Complete) -> None:
    left, counts = _open_tasks(session), session.tasks.counts
    if left and not command.force:
        open_tasks = [task for task in session.tasks.leaves if session.tasks[task].status is not TaskStatus.COMPLETED]
        listed = ", ".join(f"{task} ({session.tasks[task].status})" for task in open_tasks[:10])
        more = f" and {left - 10} more" if left > 10 else ""
        raise Refused(
            f"{left} of {sum(counts.values())} tasks are not done: {listed}{more}",
            way_out="finish them, or detent complete --force",
        )


def _open_tasks(session: Session) -> int:
    counts = session.tasks.counts if len(session.tasks) else {}
    return sum(counts.values()) - counts.get(TaskStatus.COMPLETED, 0)


def _check_gates(session: Session, phase: str, facts: Facts) -> None:
    judged = judgements(session, phase, facts)
    closed = [judgement for judgement in judged if judgement.verdict is not Verdict.PASS] if judged else ()
    if closed:
        reasons = [f"{judgement.gate} is {judgement.verdict}: {judgement.reason}" for judgement in closed]
        headline = f"phase {phase} is held by {len(closed)} of its gates"
        raise GateClosed("\n  - ".join([headline, *reasons]), way_out=closed[0].way_out)


#: Maximum number of texts about acceptance criteria in a report.
MAX_MET = 100
_CLOSING = PhaseFinished | PhaseSkipped


def with_completion(session: Session, events: tuple[Event, ...], merged_commit: str | None = None) -> tuple[Event, ...]:
    """`events`, and the completion of the session if they leave nothing to do and nothing to review.

    Open tasks keep the session open; `complete` ends it and records them.
    """
    closed = {event.phase for event in events if isinstance(event, _CLOSING)}
    if closed.issuperset(session.unfinished) and not _to_review(session, events, closed) and not _open_tasks(session):
        return (*events, SessionCompleted(merged_commit=_commit_name(merged_commit)))
    if merged_commit is not None:
        raise Invalid("a merged commit belongs to the end of the session, and other phases are still open")
    return events


def _to_review(session: Session, events: tuple[Event, ...], closed: set[str]) -> set[str]:
    """The phases that wait for a review after the events, which close the phases in `closed`."""
    finished = {event.phase for event in events if isinstance(event, PhaseFinished)}
    reviewed = {event.phase for event in events if isinstance(event, PhaseReviewed) and event.decision == "continue"}
    return {*session.awaiting_review, *filter(session.is_supervised, finished)} - reviewed - (closed - finished)


def live_phase(session: Session, phase: str | None) -> str:
    """The named phase; without a name, the only phase in progress."""
    if phase is not None:
        return known_phase(session, phase)
    live = session.in_progress
    if len(live) == 1:
        return live[0]
    if live:
        raise Refused(f"{len(live)} phases are in progress: {', '.join(live)}; name one of them")
    raise Refused("no phase is in progress", way_out="detent begin" if session.ready else "detent why")


def _live_attempt(session: Session, command: Finish | Fail) -> tuple[str, int]:
    """The phase and attempt that the command ends: those of its token, if that attempt is in progress."""
    token = command.token
    phase = live_phase(session, command.phase) if token is None else known_phase(session, token.phase)
    if token is not None and command.phase is not None and known_phase(session, command.phase) != phase:
        raise Refused(f"the token is of {phase}, not of {command.phase}; leave one of them out")
    state = session.phases[phase]
    if state.status is not Status.IN_PROGRESS:
        begun = f" (attempt {state.attempt})" if state.attempt else ""
        raise Refused(f"phase {phase} is {state.status}{begun}, not in progress", way_out=_way_out(session, phase))
    if token is not None and (token.attempt, token.fence) != (state.attempt, state.fence):
        raise Refused(
            f"the token is of attempt {token.attempt} (fence {token.fence}) of {phase}, "
            f"but attempt {state.attempt} (fence {state.fence}) is in progress",
            way_out=f"the holder of attempt {state.attempt} must end it; detent status shows the holder",
        )
    return phase, state.attempt


def _check_legal(session: Session, event: PhaseEvent) -> None:
    state = session.phases[event.phase]
    if (state.status, type(event)) not in TRANSITIONS:
        raise Refused(
            f"phase {event.phase} is {state.status}; {_VERBS[type(event)]} is not possible from there",
            way_out=_way_out(session, event.phase),
        )


_VERBS: dict[type[PhaseEvent], str] = {
    PhaseBegun: "begin",
    PhaseRedone: "redo",
    PhaseFinished: "finish",
    PhaseFailed: "fail",
    PhaseSkipped: "skip",
    PhaseReset: "reset",
}


def _check_needs(session: Session, phase: str) -> None:
    needs = session.open_needs(phase)
    if needs:
        waiting = [f"{need} ({session.phases[need].status})" for need in needs]
        raise Refused(f"phase {phase} waits for {', '.join(waiting)}", way_out="detent why")


def _check_free(session: Session) -> None:
    """Refuse to begin a phase while an escalation or a review waits for a person."""
    if session.awaiting_review:
        waiting = ", ".join(session.awaiting_review)
        raise Refused(f"{waiting} waits for a person's review", way_out=way_out(reviews_open(session)))
    if session.escalations:
        first = session.escalations[0]
        message = f"a person must decide first: {first.phase}: {first.detail}"
        raise Refused(message, way_out=way_out(escalations_open(session)))


def _way_out(session: Session, phase: str) -> str:
    match session.phases[phase].status:
        case Status.PENDING:
            return f"detent begin {phase}" if phase in session.ready else "detent why"
        case Status.IN_PROGRESS:
            return f"detent finish {phase}, or detent redo {phase} for a new attempt"
        case Status.COMPLETED | Status.FAILED | Status.SKIPPED:
            return f"detent redo {phase}"


def _nothing_ready(session: Session) -> str:
    live = session.in_progress
    failed = session.with_status(Status.FAILED)
    if live:
        return f"no phase is ready to begin; {', '.join(live)} must be finished first"
    if failed:
        return f"no phase is ready to begin; {', '.join(failed)} failed"
    return "no phase is left to begin; complete the session"


def _agent(session: Session, phase: str, named: str | None) -> str:
    agent = check_optional("an agent's name", named, MAX_NAME) if named else ""
    return agent or session.workflow.by_key[phase].agent


def _commit_name(text: str | None) -> str | None:
    return check_optional("a merged commit", text or "", MAX_NAME) or None


# Agents of an attempt


def _with_launch(begun: PhaseBegun | PhaseRedone, command: Begin | Redo) -> tuple[Event, ...]:
    """The event, and the launch of the agent in the commit that begins the attempt, so that no crash loses it."""
    if command.launch is None:
        return (begun,)
    launched = AgentLaunched(phase=begun.phase, agent=begun.agent, agent_id=command.launch, sandboxed=command.sandboxed)
    return (begun, launched)


def _ended(state: PhaseState, phase: str, command: Finish | Fail, *, succeeded: bool) -> tuple[AgentEnded, ...]:
    """The end of the agent that ends the attempt, if it is running."""
    agent_id = command.agent_id
    if agent_id is None or not any(e.agent_id == agent_id and e.ended_at is None for e in state.delegations):
        return ()
    # The event that ends the attempt has the rest of the report.
    report = checked_report(Report(worker=command.worker)) if command.worker is not None else None
    return (AgentEnded(phase=phase, agent_id=agent_id, succeeded=succeeded, report=report),)


def checked_report(report: Report) -> Report:
    """The report with its texts cut and its paths checked, as it is stored."""
    return replace(
        report,
        summary=cut(report.summary.strip(), MAX_SUMMARY),
        artifacts=check_artifacts(report.artifacts),
        deliverables=check_deliverables(report.deliverables),
        context=cut(report.context, MAX_REASON),
        met=tuple(cut(text, MAX_REASON) for text in report.met[:MAX_MET]),
        tools=tuple(map(_short, report.tools[-MAX_TOOLS:])),
        tools_dropped=report.tools_dropped + max(0, len(report.tools) - MAX_TOOLS),
        worker=_short_worker(report.worker) if report.worker is not None else None,
    )


def _short_worker(worker: Worker) -> Worker:
    return Worker(
        agent=cut(worker.agent, MAX_NAME), model=cut(worker.model, MAX_NAME), version=cut(worker.version, MAX_NAME)
    )


def _short(use: ToolUse) -> ToolUse:
    if len(use.input) <= MAX_TOOL_INPUT and len(use.tool) <= MAX_TOOL_INPUT:
        return use
    return replace(use, tool=cut(use.tool, MAX_TOOL_INPUT), input=cut(use.input, MAX_TOOL_INPUT))


def _attempt_report(state: PhaseState, command: Finish | Fail) -> Report:
    """The reports of all agents of the attempt, with the values that end it."""
    last = Report(
        artifacts=check_artifacts(command.artifacts),
        tokens=command.tokens,
        tools=tuple(map(_short, command.tools[-MAX_TOOLS:])),
        tools_dropped=max(0, len(command.tools) - MAX_TOOLS),
    )
    return last if state.report is None else state.report.and_then(last, MAX_TOOLS)
