"""Handles the hook events that change the session: agents that start and end, test runs, todo lists."""

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from detent.clients.dialect import HELD, Dialect, text_of
from detent.core.actor import Actor, ActorKind, Channel
from detent.core.gate.evidence import RanBy
from detent.core.guard.call_purpose import agent_name, target_phase
from detent.core.guard.shell.walk import simple_commands
from detent.core.run.result_block import MAX_DELIVERABLES, result_block
from detent.core.session.phase_state import Report, Tokens, ToolUse, Worker
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.testrun.detect import runner
from detent.documents import state as state_document
from detent.documents import workflow as workflow_document
from detent.engine.project import Project
from detent.engine.session import SessionHandle
from detent.engine.workspace import Workspace
from detent.errors import DetentError
from detent.hooks import drift
from detent.hooks.event import Event
from detent.hooks.seen import typed_in
from detent.hooks.stopping import stop
from detent.render.prompt.briefing import assignment, briefing, todos


def handle(client: str, dialect: Dialect, payload: dict[str, Any]) -> str:
    """Apply the event to the session and answer it."""
    reply = _reply(client, dialect, payload, _EVENTS.get(dialect.event(payload)))
    if reply.startswith(("{", HELD)):
        return reply
    return dialect.tell(text_of(payload.get("hook_event_name")), reply) if reply else ""


def recorded(client: str, dialect: Dialect, payload: dict[str, Any]) -> str:
    """Record the test runs that were noted, and say what became of the gates."""
    return _reply(client, dialect, payload, _recorded)


def looked(client: str, dialect: Dialect, payload: dict[str, Any], root: str, package: str | None) -> str:
    """Look for changes that other programs made to the project at `root`, or to one of its packages, and name them."""
    return _reply(client, dialect, payload, None, Workspace(root, project=package))


def _reply(
    client: str,
    dialect: Dialect,
    payload: dict[str, Any],
    handler: "_Handler | None",
    workspace: Workspace | None = None,
) -> str:
    try:
        notices, reply = _handled(client, dialect, payload, handler, workspace)
    except DetentError as error:
        if handler is _before_tool:
            raise
        notices, reply = [], f"Detent: {error.message}. A person should run: detent doctor"
    return reply if reply.startswith(("{", HELD)) else "\n".join(part for part in (*notices, reply) if part)


_Handler = Callable[[Event], str]


class _Doubtful(Exception):
    """Another program changed the journal, so nothing is written."""


def _handled(
    client: str,
    dialect: Dialect,
    payload: dict[str, Any],
    handler: "_Handler | None",
    workspace: Workspace | None,
) -> tuple[list[str], str]:
    """Notices for the agent, and the reply to the event itself."""
    workspace = workspace or Workspace(text_of(payload.get("cwd")) or os.getcwd())
    actor = Actor(name=client, kind=ActorKind.AGENT, channel=Channel.HOOK)
    notices: list[str] = []

    def inspect(project: Project) -> None:
        drifted = drift.look(project)
        if drifted.is_grave:
            raise _Doubtful(f"{'; '.join(drifted.problems)}. A person should run: detent doctor")
        problems = drift.only_new(project, text_of(payload.get("session_id")), drifted.problems)
        notices.extend(f"Detent: {problem}. A person should run: detent doctor" for problem in problems)

    try:
        with workspace.change(actor, inspect=inspect) as project:
            notices += [f"Detent: {notice}" for notice in workspace.notices]
            if project.active() is None or handler is None:
                return notices, ""
            return notices, handler(Event(dialect, payload, project, *_bound(project)))
    except _Doubtful as doubt:
        return [], dialect.deny(str(doubt)) if handler is _before_tool else f"Detent: {doubt}"


def _bound(project: Project) -> tuple[SessionHandle, str | None]:
    """The session and phase that the client is bound to; for an unbound client the active session and no phase."""
    binding = project.binding
    if binding is None or binding.phase is None:
        return project.session(project.active()), None
    return project.session(binding.session), binding.phase


def _session_start(event: Event) -> str:
    session = event.handle.state
    if event.bound is not None:
        return _assignment(event.handle, event.bound)
    text = briefing(session, event.handle.gates.judgements(), [event.handle.handover(key) for key in event.live])
    return f"{text}\n\n{todos(session)}" if session.workflow.activation == "delegation" else text


def _prompt(event: Event) -> str:
    """A background agent has ended: send the todo list with the result."""
    session = event.handle.state
    return todos(session) if session.workflow.activation == "delegation" and event.bound is None else ""


def _before_tool(event: Event) -> str:
    """Begin the phase that the call delegates, in workflows that are driven by delegation."""
    call = event.dialect.call(event.payload)
    target = target_phase(state_document.write(event.handle.state), call)
    if event.bound is not None:
        return event.dialect.deny(f"the run that started you begins {target}; work on {event.bound} only")
    agent = agent_name(call["agent"]) or None
    try:
        if event.handle.state.phases[target].status is Status.FAILED:
            event.handle.redo(target, agent=agent, reason="delegated again")
        else:
            event.handle.begin(target, agent=agent)
    except DetentError as error:
        return event.dialect.deny(f"{error.message}. {error.way_out or ''}")
    return ""


def _after_tool(event: Event) -> str:
    call = event.dialect.call(event.payload)
    if call["kind"] == "delegate":
        return _delegated(event, call)
    if call["kind"] == "shell":
        return _observe_tests(event, call)
    if call["kind"] == "todo" and event.bound is None:
        return todos(event.handle.state) if _disagrees(event) else ""
    if call["kind"] == "wait" and event.bound is None:
        return _waited(event.handle.state)
    return ""


def _waited(session: Session) -> str:
    """The parent waited for its agents: what their ends changed, because their own events reach only a person."""
    if session.workflow.activation != "delegation":
        return ""
    ended = [key for key in session.phases.latest() if session.phases[key].status in (Status.COMPLETED, Status.FAILED)]
    return _next_up(session, ended[0]) if ended and not session.with_status(Status.IN_PROGRESS) else todos(session)


def _task_completed(event: Event) -> str:
    """Keep a task of the client's list open while the phase of that title is not completed."""
    session, title = event.handle.state, text_of(event.payload.get("task_subject")).strip()
    phase = next((key for key in session.active_order if title in (key, session.workflow.by_key[key].title)), None)
    if event.bound is not None or phase is None or session.phases[phase].status is Status.COMPLETED:
        return ""
    status = str(session.phases[phase].status).replace("_", " ")
    return event.dialect.keep_open(
        f"Detent: {title} is {status}. It is completed when detent finish {phase} -m SUMMARY finds its gates open; "
        "detent why explains what is missing."
    )


def _disagrees(event: Event) -> bool:
    """Whether the agent's todo list contradicts the session about a phase."""
    session = event.handle.state
    known = {
        entry["content"]: entry["status"] for entry in workflow_document.todos(workflow_document.from_session(session))
    }
    return any(known.get(title, status) != status for title, status in event.dialect.todo_entries(event.payload))


def _delegated(event: Event, call: dict[str, Any]) -> str:
    payload, handle = event.payload, event.handle
    target = target_phase(state_document.write(handle.state), call)
    agent = agent_name(call["agent"])
    phase = target or ("" if payload.get("agent_id") else _phase_for(event, agent))
    if phase not in (handle.state.phases if event.bound is None else event.live):
        return ""
    state, report = handle.state.phases[phase], event.dialect.agent_report(payload)
    known = report.agent_id in {delegation.agent_id for delegation in state.delegations}
    if state.status is not Status.IN_PROGRESS:
        # The event of the agent's end came first and reached only a person.
        has_ended = known and state.status in (Status.COMPLETED, Status.FAILED)
        return _next_up(handle.state, phase) if has_ended else ""
    # Some clients give their agents no id and report an agent only when it has ended.
    agent_id = (
        report.agent_id or f"{payload.get('session_id')}@{payload.get('tool_use_id') or payload.get('timestamp')}"
    )
    if not known and not (report.is_running and not report.agent_id):
        handle.record_agent_started(phase, agent or state.agent, agent_id)
    if report.is_running:
        return ""
    return _agent_ended(event, phase, agent_id, succeeded=report.succeeded, text=report.text)


def _subagent_start(event: Event) -> str:
    """Record the agent where the launch gave no id, and send it the assignment of its phase."""
    agent_id, agent = text_of(event.payload.get("agent_id")), agent_name(event.payload.get("agent_type"))
    session = event.handle.state
    phase = _phase_for(event, agent)
    known = {delegation.agent_id for state in session.phases.values() for delegation in state.delegations}
    if agent_id and phase and agent_id not in known:
        event.handle.record_agent_started(phase, agent or session.phases[phase].agent, agent_id)
    return _assignment(event.handle, phase) if phase else ""


def _assignment(handle: SessionHandle, phase: str) -> str:
    return assignment(handle.state, handle.handover(phase), handle.gates.judgements(phase)[phase])


def _phase_for(event: Event, agent: str) -> str:
    """The phase in progress that an agent works for if its prompt names none; empty if it works for none.

    An agent of another role, or one that starts beside an agent of the phase, assists its caller.
    """
    session, live = event.handle.state, event.live
    own = [phase for phase in live if agent and session.phases[phase].agent == agent]
    if own or len(live) != 1 or agent not in event.dialect.GENERAL_AGENTS:
        return own[0] if own else ""
    return "" if _running(session, live[0]) else live[0]


def _running(session: Session, phase: str) -> list[str]:
    """The agents of the phase whose end is not recorded."""
    delegations = session.phases[phase].delegations
    ended = {delegation.agent_id for delegation in delegations if delegation.ended_at is not None}
    return [delegation.agent for delegation in delegations if delegation.agent_id not in ended]


def _subagent_stop(event: Event) -> str:
    """Record the end of a background agent. An empty id matches nothing."""
    agent_id = text_of(event.payload.get("agent_id"))
    for phase, state in event.handle.state.phases.items():
        for delegation in state.delegations:
            if agent_id and delegation.agent_id == agent_id and delegation.ended_at is None:
                text = text_of(event.payload.get("last_assistant_message"))
                return _agent_ended(event, phase, agent_id, succeeded=bool(text.strip()), text=text)
    return ""


def _agent_ended(event: Event, phase: str, agent_id: str, *, succeeded: bool, text: str) -> str:
    """Record the end of an agent. In a workflow driven by delegation the last agent of a phase ends the phase."""
    handle = event.handle
    delegations = handle.state.phases[phase].delegations
    if any(delegation.agent_id == agent_id and delegation.ended_at is None for delegation in delegations):
        handle.record_agent_ended(agent_id, succeeded=succeeded, report=_usage(event, agent_id))
    state = handle.state
    by_delegation = state.workflow.activation == "delegation" and event.bound is None
    if not by_delegation or state.phases[phase].status is not Status.IN_PROGRESS:
        return ""
    if running := _running(state, phase):
        return f"Detent: {', '.join(running)} still works on {phase}; if not, run detent finish {phase} -m SUMMARY"
    block = result_block(text)
    try:
        if block.failed or not succeeded:
            # A call that failed has the client's error in place of an answer.
            reason = block.summary if block.failed else text.strip()
            handle.fail(reason or "the agent reported no result", phase=phase)
        else:
            handle.finish(
                block.summary or f"{phase} done",
                phase=phase,
                deliverables=block.deliverables or named_files(text, event.project.place.base),
                context=block.context,
            )
    except DetentError as error:
        return f"Detent holds {phase}: {error.message}. Try: {error.way_out or 'detent why'}"
    return _next_up(handle.state, phase)


def _usage(event: Event, agent_id: str) -> Report | None:
    """The agent's usage, as its client tells it. A runner counts the usage of the agents that it started itself."""
    usage = event.dialect.agent_usage(event.payload, agent_id) if event.bound is None else None
    if usage is None:
        return None
    tools = tuple(ToolUse(tool=call.tool, input=call.input, succeeded=call.succeeded) for call in usage.calls)
    worker = Worker(agent=event.project.actor.name, model=usage.model)
    return Report(tokens=Tokens(input=usage.input, output=usage.output), tools=tools, worker=worker)


def _next_up(session: Session, phase: str) -> str:
    """The todo list, the next phase, and the context that `phase` leaves for it."""
    state = session.phases[phase]
    if state.status is Status.FAILED:
        return f"{todos(session)}\n{phase} failed: {state.error}. Delegate it again to retry."
    if not session.ready:
        return todos(session)
    following = session.workflow.by_key[session.ready[0]]
    left = f". From {phase}: {state.context}" if state.context else ""
    return f"{todos(session)}\nNext: {following.title} ({following.agent or 'anyone'}){left}"


def _observe_tests(event: Event, call: dict[str, Any]) -> str:
    if not any(runner(words) for words in simple_commands(call["command"])):
        return ""
    handle = event.handle
    output, exit_code = event.dialect.shell_result(event.payload)
    command = typed_in(event.project.place.base, call)
    return _verdicts(event, [phase for phase in event.live if handle.gates.observe(phase, command, output, exit_code)])


def _recorded(event: Event) -> str:
    """The verdicts about the runs. Another process may have recorded the run of this event beside its own."""
    return _verdicts(event, event.project.just_seen or filter(partial(_has_seen, event), event.live))


def _has_seen(event: Event, phase: str) -> bool:
    receipts = (gate.receipt for gate in event.handle.state.phases[phase].gates.values())
    return any(receipt is not None and receipt.by is RanBy.SEEN for receipt in receipts)


def _verdicts(event: Event, phases: Iterable[str]) -> str:
    return "\n".join(
        f"Detent: {judgement.gate} of {phase} is {judgement.verdict}: {judgement.reason}"
        for phase in phases
        for judgement in event.handle.gates.judgements(phase)[phase]
    )


def named_files(text: str, base: str) -> tuple[str, ...]:
    """The files below `base` that a text names, in its order; for an answer that lists no deliverables."""
    names: dict[str, None] = {}
    for word in text.split():
        name = word.strip("`'\"*()[]{}<>,;:!?").rstrip(".").removeprefix(base + "/")
        is_path = "." in name and not name.startswith(("/", "-")) and ".." not in name.split("/")
        if is_path and len(names) < MAX_DELIVERABLES and os.path.isfile(os.path.join(base, name)):
            names[name] = None
    return tuple(names)


_EVENTS = {
    "session_start": _session_start,
    "prompt": _prompt,
    "pre_tool": _before_tool,
    "post_tool": _after_tool,
    "tool_failed": _after_tool,
    "subagent_start": _subagent_start,
    "subagent_stop": _subagent_stop,
    "task_completed": _task_completed,
    "stop": stop,
}
