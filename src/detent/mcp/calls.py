"""The tools: one function each, from its arguments to the record of its answer. The engine carries them out."""

import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from detent.core.gate.evidence import Judgement
from detent.core.path_text import to_text
from detent.core.session.decide_gate import find_gate
from detent.core.session.decide_phase import known_phase, live_phase
from detent.core.session.open_decision import DecisionKind, Judged, OpenDecision, open_decisions
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.checkpoint import summary
from detent.engine.checkpoints.file_diffs import file_diffs
from detent.engine.decisions import only_people, verdicts_now, view_now
from detent.engine.gates.check_process import end_check, live_check, start_check, wait_for
from detent.engine.project import Project
from detent.engine.questions import ANSWERED, OPEN, POLL_S, answer_state, ask_once, own_phase
from detent.engine.results import Outcome
from detent.engine.session import SessionHandle
from detent.engine.tasks.tasks import nothing_ready
from detent.errors import DetentError, GateClosed, Invalid, Refused
from detent.mcp import tools
from detent.mcp.answers import WHERE, Pending, actor_of, decision_record, workspace_of
from detent.mcp.server import Cancelled, Context
from detent.render.next_commands import START, next_commands
from detent.render.terminal.tasks import tally, task_record

Record = dict[str, Any]

#: Lines of all files of one diff, and characters of a line.
MAX_LINES, MAX_LINE = 1_000, 500
#: Files that a diff lists.
MAX_FILES = 500
#: Phases that a status lists. Those in progress, failed or ready come before the others.
MAX_PHASES = 100
#: Decisions that an agent can make unnecessary: it fixes the cause, and the check runs again.
_OWN_WORK = frozenset({DecisionKind.CLOSED, DecisionKind.STALE, DecisionKind.ACCEPT})


@contextmanager
def _reading(context: Context, notices: list[str]) -> Iterator[Project]:
    workspace = workspace_of(context)
    try:
        with workspace.read(actor_of(workspace, context)) as project:
            yield project
    finally:
        notices += workspace.notices


@contextmanager
def _changing(context: Context, notices: list[str], *, phase: str = "") -> Iterator[Project]:
    """The project to change. A refusal that only a person can lift becomes `Pending`.

    `phase` is the phase that the call is about; a call that names none may be about each of them.
    """
    workspace = workspace_of(context)

    def watch(project: Project) -> None:
        project.checking = lambda gate, seconds: context.tick(f"the check of {gate} runs", seconds)
        project.checkpoints.progress = lambda done, total: context.tick(f"capturing files, {done} of {total}", 0.0)

    try:
        with workspace.change(actor_of(workspace, context), inspect=watch) as project:
            try:
                yield project
            except (GateClosed, Refused) as refusal:
                waiting = _waiting(project, phase or None)
                if waiting:
                    raise Pending(refusal.message, waiting) from refusal
                raise
    finally:
        notices += workspace.notices


def _waiting(project: Project, phase: str | None) -> tuple[OpenDecision, ...]:
    """The open decisions of the agent's session, if only people can make them."""
    try:
        session = project.session().state
        decisions = open_decisions(session, verdicts_now(project, session), view_now(project, session))
    except DetentError:
        return ()
    return only_people(decisions, phase)


# Looking


def status(_arguments: tools.Nothing, context: Context, notices: list[str]) -> Record:
    with _reading(context, notices) as project:
        if project.binding is None and project.active() is None:
            paused = project.sessions.paused()
            return {
                "session": None,
                "paused": paused,
                "way_out": f"a session is started in a shell: {START}"
                + (f"; or a person resumes {paused}: detent resume {paused}" if paused else ""),
            }
        state = project.session().state
        judged = verdicts_now(project, state)
        following = _following(project, state, judged)
    live = (*state.with_status(Status.IN_PROGRESS, Status.FAILED), *state.ready)
    shown = frozenset(islice(dict.fromkeys((*live, *state.workflow.order)), MAX_PHASES))
    record = {
        "session": state.id,
        "task": state.task,
        "workflow": state.workflow.name,
        "status": state.status,
        "version": state.version,
        "phases": [_phase_record(state, key) for key in state.workflow.order if key in shown],
        "phases_left_out": len(state.workflow.order) - len(shown),
        "gates": {key: list(entries) for key, entries in judged.items()},
        **following,
    }
    return record | ({"tasks": tally(state.tasks)} if len(state.tasks) else {})


def _following(project: Project, session: Session, judged: Judged) -> Record:
    """The open decisions, and the next calls."""
    view = view_now(project, session)
    decisions = open_decisions(session, judged, view)
    waiting = [decision_record(entry) for entry in decisions if entry.kind not in _OWN_WORK]
    commands = next_commands(session, view, judged=judged, decisions=decisions)
    record = {"waits_for_person": waiting, "next": [call for each in commands if (call := next_call(each))]}
    return record | ({"person_decides": WHERE} if waiting else {})


def _phase_record(session: Session, key: str) -> Record:
    state, phase = session.phases[key], session.workflow.by_key[key]
    record = {
        "phase": key,
        "title": phase.title if phase.title != key else "",
        "status": state.status,
        "agent": state.agent or phase.agent,
        "attempt": state.attempt,
        "token": str(session.token(key)) if state.status is Status.IN_PROGRESS else "",
        "summary": state.summary,
        "error": state.error,
        "waits_for": list(session.open_needs(key)) if state.status is Status.PENDING else [],
    }
    return {name: value for name, value in record.items() if value}


def next_call(command: str) -> Record | None:
    """The tool call that does what a command does; None for a command that no tool carries out."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    match words:
        case ["detent", "why" | "status" as verb]:
            return _call(verb)
        case ["detent", "graph"]:
            # `status` lists the phases.
            return _call("status")
        case ["detent", "why", phase]:
            return _call("why", phase=phase)
        case ["detent", "begin", phase]:
            return _call("begin", phase=phase)
        case ["detent", "finish", phase, "-m", summary, *_]:
            return _call("finish", phase=phase, summary=summary)
        case ["detent", "gate", "run", gate]:
            return _call("gate_run", gate=gate)
        case ["detent", "gate", "run", gate, "--phase", phase]:
            return _call("gate_run", gate=gate, phase=phase)
        case ["detent", "task", "next"]:
            return _call("task_next")
        case ["detent", "task", "start", task]:
            return _call("task_start", task=task)
        case ["detent", "task", "done", task, "-m", summary, *met] if set(met[::2]) <= {"--met"}:
            return _call("task_done", task=task, summary=summary, met=met[1::2])
        case ["detent", "checkpoint", "list"]:
            return _call("checkpoints")
        case _:
            return None


def _call(tool: str, **arguments: str | list[str]) -> Record:
    return {"tool": tool, "arguments": arguments}


def why(arguments: tools.Why, context: Context, notices: list[str]) -> Record:
    with _reading(context, notices) as project:
        handle = project.session()
        state, everything = handle.state, handle.why()
    key = known_phase(state, arguments.phase) if arguments.phase else None
    obstacles = [obstacle for obstacle in everything if key is None or obstacle.phase in (key, None)]
    return {"session": state.id, "phase": key, "obstacles": obstacles}


def checkpoints(arguments: tools.ListCheckpoints, context: Context, notices: list[str]) -> Record:
    with _reading(context, notices) as project:
        handle = project.session()
        positions = handle.checkpoints.all()
    shown = positions[-arguments.count :]
    records = [summary(handle.id, position) for position in shown]
    return {"session": handle.id, "checkpoints": records, "left_out": len(positions) - len(shown)}


def diff(arguments: tools.Diff, context: Context, notices: list[str]) -> Record:
    def comparing(done: int, total: int) -> None:
        context.tick(f"comparing files, {done} of {total}", 0.0)

    with _reading(context, notices) as project:
        project.checkpoints.progress = comparing
        comparison = project.session().checkpoints.compare(arguments.a, arguments.b)
        files, left_out = file_diffs(comparison, 0 if arguments.stat else MAX_LINES, comparing)
    record: Record = {"from": comparison.diff.a, "to": comparison.diff.b}
    if arguments.stat:
        listed = files[:MAX_FILES]
        record["files"] = {to_text(file.path): {"change": file.change, "lines": file.counts} for file in listed}
        record["left_out"] = len(files) - len(listed)
    else:
        record["files"] = {
            to_text(file.path): "\n".join(line[:MAX_LINE] for line in file.lines) for file in islice(files, MAX_FILES)
        }
        record["left_out"] = left_out + max(0, len(files) - MAX_FILES)
    return record


# Phases


def begin(arguments: tools.Begin, context: Context, notices: list[str]) -> Record:
    with _changing(context, notices) as project:
        begun = project.session().begin(arguments.phase or None, agent=arguments.agent or None)
    return {
        "phase": begun.phase,
        "attempt": begun.token.attempt,
        "token": str(begun.token),
        "handover": begun.handover,
        "warnings": list(begun.warnings),
    }


def finish(arguments: tools.Finish, context: Context, notices: list[str]) -> Record:
    def end(handle: SessionHandle) -> Outcome:
        return handle.finish(
            arguments.summary,
            phase=_named(arguments),
            token=arguments.token or None,
            artifacts=arguments.artifacts,
            deliverables=arguments.deliverables,
            context=arguments.context,
        )

    return _ended(context, notices, end, _phase_of(arguments))


def fail(arguments: tools.Fail, context: Context, notices: list[str]) -> Record:
    def end(handle: SessionHandle) -> Outcome:
        return handle.fail(
            arguments.error, phase=_named(arguments), token=arguments.token or None, artifacts=arguments.artifacts
        )

    return _ended(context, notices, end, _phase_of(arguments))


def _phase_of(arguments: tools.Finish | tools.Fail) -> str:
    """The phase that the call is about, if its arguments tell."""
    return arguments.phase or arguments.token.partition(":")[0]


def _named(arguments: tools.Finish | tools.Fail) -> str | None:
    """The named phase; refused if the token belongs to another one."""
    from detent.core.session.token import parse_token  # noqa: PLC0415
    from detent.core.workflow.phase_key import normalize_phase_key  # noqa: PLC0415

    phase, token = arguments.phase, arguments.token
    if phase and token and normalize_phase_key(phase) != normalize_phase_key(parse_token(token).phase):
        raise Invalid(f"the token {token} is not of phase {phase}", way_out="leave one of them out")
    return phase or None


def _ended(context: Context, notices: list[str], end: Callable[[SessionHandle], Outcome], phase: str) -> Record:
    with _changing(context, notices, phase=phase) as project:
        outcome = end(project.session())
        state = outcome.session
        following = _following(project, state, verdicts_now(project, state))
    return {
        "session": state.id,
        "status": state.status,
        "version": state.version,
        "warnings": list(outcome.warnings),
        **following,
    }


def gate_run(arguments: tools.GateRun, context: Context, notices: list[str]) -> Record:
    with _changing(context, notices, phase=arguments.phase) as project:
        handle = project.session()
        phase = live_phase(handle.state, arguments.phase or None)
        declared = find_gate(handle.state, phase, arguments.gate)
        if arguments.tests or declared.runnable() is None:
            handle.gates.run(arguments.gate, phase=phase, command=shlex.join(arguments.tests) or None)
        else:
            _run_apart(project, handle, arguments, phase)
        judged = next(each for each in handle.gates.judgements(phase)[phase] if each.gate == arguments.gate)
    return {"session": handle.id, "phase": phase, "state": "done", **_judged(judged)}


def _judged(judgement: Judgement) -> Record:
    return {
        "gate": judgement.gate,
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        **({"way_out": judgement.way_out} if judgement.way_out else {}),
    }


def _run_apart(project: Project, handle: SessionHandle, arguments: tools.GateRun, phase: str) -> None:
    """Run the check in a process of its own: it goes on after `wait_s`, and ends if the client cancels the call."""
    was_running = live_check(project.store, handle.id, arguments.gate) is not None
    before = _checked_at(handle.state, phase, arguments.gate)
    check = start_check(project, handle.id, arguments.gate, phase)
    try:
        wait_for(check, arguments.wait_s, project.checking)
    except Cancelled:
        if not was_running:
            end_check(check)
        raise
    if _checked_at(handle.state, phase, arguments.gate) == before:
        raise Refused(
            f"the check of {arguments.gate} ended without a result",
            way_out=f"a shell shows why: detent gate run {arguments.gate}",
        )


def _checked_at(session: Session, phase: str, gate: str) -> object:
    state = session.phases[phase].gates.get(gate)
    return state.checked_at if state is not None else None


# Tasks


def task_next(_arguments: tools.Nothing, context: Context, notices: list[str]) -> Record:
    with _reading(context, notices) as project:
        handle = project.session()
        row, state = handle.tasks.next(), handle.state
        if row is None:
            return {"session": state.id, "task": None, "reason": nothing_ready(state)}
        return {"session": state.id, "task": task_record(state, row)}


def task_start(arguments: tools.TaskStart, context: Context, notices: list[str]) -> Record:
    with _changing(context, notices) as project:
        handle = project.session()
        claimed = handle.tasks.start(arguments.task or None)
        given = handle.tasks.context(claimed.task)
    return {
        "task": claimed.task,
        "claim": claimed.fence,
        "owner": claimed.claim.owner,
        "lease_s": claimed.claim.lease_s,
        "context": given,
    }


def task_done(arguments: tools.TaskDone, context: Context, notices: list[str]) -> Record:
    with _changing(context, notices) as project:
        handle = project.session()
        outcome = handle.tasks.done(arguments.task, arguments.summary, met=arguments.met, fence=arguments.claim or None)
    return {"task": arguments.task, "tasks": tally(outcome.session.tasks), "warnings": list(outcome.warnings)}


def task_add(arguments: tools.TaskAdd, context: Context, notices: list[str]) -> Record:
    from detent.core.session.events import TaskWritten  # noqa: PLC0415

    with _changing(context, notices) as project:
        outcome = project.session().tasks.add(
            arguments.title,
            parent=arguments.parent or None,
            depends_on=arguments.depends_on,
            requirements=arguments.requirements,
            focus_paths=arguments.focus_paths,
            acceptance=arguments.acceptance,
        )
    written = next(event for event in outcome.events if isinstance(event, TaskWritten))
    return {"task": written.task, "tasks": tally(outcome.session.tasks), "warnings": list(outcome.warnings)}


# Questions


def ask(arguments: tools.Ask, context: Context, notices: list[str]) -> Record:
    with _changing(context, notices) as project:
        handle = project.session()
        phase = arguments.phase or own_phase(handle.state, os.environ)
        question = ask_once(handle, arguments.question, arguments.choices, phase)
    began_s = time.monotonic()
    with _reading(context, []) as project:
        handle = project.session(handle.id)
        while True:
            state, answer = answer_state(handle, question)
            waited_s = time.monotonic() - began_s
            if state != OPEN or waited_s >= arguments.wait_s:
                break
            context.tick(f"{question} waits for a person", waited_s)
            context.wait(POLL_S)
    if state == ANSWERED:
        return {"question": question, "state": state, "answer": answer}
    if state == OPEN:
        return {
            "question": question,
            "state": "pending",
            "waits_for": [{"what": arguments.question, "person_types": f"detent reply {question} ANSWER"}],
            "person_decides": WHERE,
            "way_out": "ask the same question again to wait for its answer",
        }
    raise Refused(f"{question} was dropped: the attempt that asked it has ended")
