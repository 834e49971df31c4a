"""What happens at an event that changes something: the engine's part of the hooks."""

import os
from typing import Any, NamedTuple

import msgspec

from detent.clients.dialect import Dialect, text_of
from detent.core.actor import Actor, ActorKind, Channel
from detent.core.gate.evidence import Verdict
from detent.core.gate.registry import KINDS
from detent.core.guard.call_purpose import agent_name, target_phase
from detent.core.guard.shell.walk import simple_commands
from detent.core.run.result_block import result_block
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.testrun.detect import runner
from detent.documents import state as state_document
from detent.documents import workflow as workflow_document
from detent.engine.project import Project
from detent.engine.projections.publish import UNREADABLE
from detent.engine.session import SessionHandle
from detent.engine.workspace import Workspace
from detent.errors import DetentError
from detent.hooks import drift
from detent.hooks.outcome import named_files
from detent.render.prompt.briefing import assignment, briefing, todos
from detent.store.port import PROJECT

MAX_STOPS = 3
STOPS = "stops.json"


class Event(NamedTuple):
    """Something that happened in a client, and the session it happened to."""

    dialect: Dialect
    payload: dict[str, Any]
    project: Project
    handle: SessionHandle
    #: The one phase that a runner started the client for; it begins and ends phases itself.
    bound: str | None = None

    @property
    def live(self) -> tuple[str, ...]:
        """The phases in progress that the event can be about."""
        return self.handle.state.with_status(Status.IN_PROGRESS) if self.bound is None else (self.bound,)


class Stops(msgspec.Struct, frozen=True, kw_only=True):
    """How often a client session tried to stop while the journal stood at a version."""

    version: int
    count: int


def handle(client: str, dialect: Dialect, payload: dict[str, Any]) -> str:
    """Carry out what the event means and answer it."""
    name = text_of(payload.get("hook_event_name"))
    try:
        told, said = _handled(client, dialect, payload)
    except DetentError as error:
        if dialect.event(payload) == "pre_tool":
            raise
        told, said = [], f"Detent: {error.message}. A person should run: detent doctor"
    if said.startswith("{"):
        return said
    text = "\n".join(part for part in (*told, said) if part)
    return dialect.tell(name, text) if text else ""


class _Doubtful(Exception):
    """The record itself was changed behind Detent's back, so nothing is written over it."""


def _handled(client: str, dialect: Dialect, payload: dict[str, Any]) -> tuple[list[str], str]:
    """Notices for the agent, and the answer to the event itself."""
    workspace = Workspace(text_of(payload.get("cwd")) or os.getcwd())
    actor = Actor(name=client, kind=ActorKind.AGENT, channel=Channel.HOOK)
    told: list[str] = []

    def inspect(project: Project) -> None:
        drifted = drift.look(project)
        if drifted.is_grave:
            raise _Doubtful(f"{'; '.join(drifted.problems)}. A person should run: detent doctor")
        problems = drift.only_new(project, text_of(payload.get("session_id")), drifted.problems)
        told.extend(f"Detent: {problem}. A person should run: detent doctor" for problem in problems)

    try:
        with workspace.change(actor, inspect=inspect) as project:
            told += [f"Detent: {notice}" for notice in workspace.notices]
            if project.active() is None:
                return told, ""
            event = Event(dialect, payload, project, *_bound(project))
            return told, _EVENTS.get(dialect.event(payload), _nothing)(event)
    except _Doubtful as doubt:
        return [], dialect.deny(str(doubt)) if dialect.event(payload) == "pre_tool" else f"Detent: {doubt}"


def _bound(project: Project) -> tuple[SessionHandle, str | None]:
    """The session of the agent's attempt and its phase; the active session for any other client."""
    binding = project.binding
    if binding is None or binding.phase is None:
        return project.session(project.active()), None
    return project.session(binding.session), binding.phase


def judge_write(content: str, state: str) -> tuple[str | None, str]:
    """Why the state document must not be replaced by `content`, if there is a reason, and what is odd about it."""
    try:
        with open(os.path.join(state, "state.json"), "rb") as file:
            disk = msgspec.json.decode(file.read(), type=dict[str, Any])
    except (OSError, *UNREADABLE):
        return (
            "the state document cannot be read, so it is not written over; a person should run: detent doctor --fix",
            "",
        )
    try:
        incoming = msgspec.json.decode(content)
    except UNREADABLE as error:
        return f"the state document would not be readable: {error}", ""
    found = state_document.check_write(incoming, disk)
    blocking = "; ".join(one.message for one in found if one.blocks)
    return blocking or None, "; ".join(f"{one.rule}: {one.message}" for one in found if not one.blocks)


def _session_start(event: Event) -> str:
    session = event.handle.state
    if event.bound is not None:
        return _assignment(event.handle, event.bound)
    said = briefing(session, event.handle.gates.judgements(), [event.handle.handover(key) for key in event.live])
    return f"{said}\n\n{todos(session)}" if session.workflow.activation == "delegation" else said


def _prompt(event: Event) -> str:
    """An agent in the background has ended, and what came of it was told to nobody yet."""
    session = event.handle.state
    return todos(session) if session.workflow.activation == "delegation" and event.bound is None else ""


def _before_tool(event: Event) -> str:
    """A delegation to a phase that is ready or has failed begins it, in workflows that are driven by delegation."""
    call = event.dialect.call(event.payload)
    target = target_phase(state_document.write(event.handle.state), call)
    if event.bound is not None:
        return event.dialect.deny(f"{target} is begun by the run that started you; work on {event.bound} alone")
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
    return ""


def _disagrees(event: Event) -> bool:
    """Whether the list that the agent wrote says something else about a phase than the session does."""
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
    known = report.agent_id in {one.agent_id for one in state.delegations}
    if state.status is not Status.IN_PROGRESS:
        return todos(handle.state) if known and state.status is Status.COMPLETED else ""
    # Some clients give their agents no id, and tell of one only when it has ended.
    agent_id = (
        report.agent_id or f"{payload.get('session_id')}@{payload.get('tool_use_id') or payload.get('timestamp')}"
    )
    if not known and not (report.is_running and not report.agent_id):
        handle.record_agent_started(phase, agent or state.agent, agent_id)
    if report.is_running:
        return ""
    return _landed(event, phase, agent_id, succeeded=report.succeeded, text=report.text)


def _subagent_start(event: Event) -> str:
    """Where launching tells no id, the start of the agent does. It hears what the phase was given."""
    agent_id, agent = text_of(event.payload.get("agent_id")), agent_name(event.payload.get("agent_type"))
    session = event.handle.state
    phase = _phase_for(event, agent)
    known = {one.agent_id for state in session.phases.values() for one in state.delegations}
    if agent_id and phase and agent_id not in known:
        event.handle.record_agent_started(phase, agent or session.phases[phase].agent, agent_id)
    return _assignment(event.handle, phase) if phase else ""


def _assignment(handle: SessionHandle, phase: str) -> str:
    return assignment(handle.state, handle.handover(phase), handle.gates.judgements(phase)[phase])


def _phase_for(event: Event, agent: str) -> str:
    """The phase in progress that an agent works for, which was sent to none by name; empty if it works for none.

    One that is known for something else, or that starts beside an agent of the phase, helps whoever called it.
    """
    session, live = event.handle.state, event.live
    own = [phase for phase in live if agent and session.phases[phase].agent == agent]
    if own or len(live) != 1 or agent not in event.dialect.GENERAL_AGENTS:
        return own[0] if own else ""
    return "" if _running(session, live[0]) else live[0]


def _running(session: Session, phase: str) -> list[str]:
    """The agents of the phase that have not ended, as far as anybody was told."""
    delegations = session.phases[phase].delegations
    ended = {one.agent_id for one in delegations if one.ended_at is not None}
    return [one.agent for one in delegations if one.agent_id not in ended]


def _subagent_stop(event: Event) -> str:
    """A background agent ends here. An empty id matches nothing."""
    agent_id = text_of(event.payload.get("agent_id"))
    for phase, state in event.handle.state.phases.items():
        for one in state.delegations:
            if agent_id and one.agent_id == agent_id and one.ended_at is None:
                text = text_of(event.payload.get("last_assistant_message"))
                return _landed(event, phase, agent_id, succeeded=bool(text.strip()), text=text)
    return ""


def _landed(event: Event, phase: str, agent_id: str, *, succeeded: bool, text: str) -> str:
    """An agent ended; in a workflow that is driven by delegation its phase ends with the last of its agents."""
    handle = event.handle
    if any(one.agent_id == agent_id and one.ended_at is None for one in handle.state.phases[phase].delegations):
        handle.record_agent_ended(agent_id, succeeded=succeeded)
    state = handle.state
    by_delegation = state.workflow.activation == "delegation" and event.bound is None
    if not by_delegation or state.phases[phase].status is not Status.IN_PROGRESS:
        return ""
    if running := _running(state, phase):
        return f"Detent: {', '.join(running)} still at {phase}; if that is wrong, detent finish {phase} -m SUMMARY"
    block = result_block(text)
    try:
        if block.failed or not succeeded:
            handle.fail(block.summary or "the agent reported no result", phase=phase)
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


def _next_up(session: Session, phase: str) -> str:
    """The list as it stands now, and what comes next with what the phase leaves for it."""
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
    told = []
    for phase in event.live:
        outcome = handle.gates.observe(phase, call["command"], output, exit_code)
        if outcome is not None:
            told += [
                f"Detent: {one.gate} of {phase} is {one.verdict}: {one.reason}"
                for one in handle.gates.judgements(phase)[phase]
            ]
    return "\n".join(told)


def _stop(event: Event) -> str:
    """Stopping is held while the agent could still open a gate, at most three times; then a person is asked."""
    if event.payload.get("background_tasks") or _is_up_to_a_person(event):
        return ""
    actionable = [
        (phase, one)
        for phase, judged in event.handle.gates.judgements(event.bound).items()
        for one in judged
        if one.verdict in (_MENDED if event.bound is None else _FAILING) and KINDS[one.kind].opened_by.is_agent
    ]
    if not actionable:
        return ""
    held = _count_stop(event)
    reasons = "; ".join(
        f"{one.gate} of {phase} is {one.verdict}: {one.reason} ({one.way_out})" for phase, one in actionable
    )
    if held <= MAX_STOPS:
        return event.dialect.keep_going(f"The work is not done: {reasons}")
    if event.bound is not None:
        # The runner judges the gates itself, and has its own limit after which a person is asked.
        return ""
    phase, _ = actionable[0]
    detail = f"the agent stopped {MAX_STOPS} times with closed gates: {reasons}"
    event.handle.escalate("stop_blocked", phase, detail)
    return f"Detent: a person must decide about {phase}: {detail}. Try: detent resolve retry|skip|cancel"


_FAILING = (Verdict.FAIL, Verdict.STALE)
#: What nobody has looked at yet is for the agent too; but under a runner, which looks at it when the agent has stopped.
_MENDED = (*_FAILING, Verdict.PENDING)


def _is_up_to_a_person(event: Event) -> bool:
    session = event.handle.state
    if event.bound is None:
        return bool(session.escalations or session.awaiting_review)
    waiting = [one.phase for one in session.escalations] + [one.phase for one in session.questions]
    return event.bound in waiting


def _count_stop(event: Event) -> int:
    """How often this client session tried to stop since the journal last moved.

    What others do to the journal says nothing about one that is bound to a phase: there the whole attempt counts.
    """
    project, session = event.project, event.handle.state
    client_session = text_of(event.payload.get("session_id"))
    name, version = f"{session.id}/{STOPS}", session.version
    if event.bound is not None:
        name, version = f"{session.id}/{event.bound}.{STOPS}", session.phases[event.bound].fence
    with project.store.lock(PROJECT):
        try:
            known = msgspec.json.decode(project.store.get(name) or b"{}", type=dict[str, Stops])
        except UNREADABLE:
            known = {}
        before = known.get(client_session, Stops(version=0, count=0))
        count = before.count + 1 if before.version == version else 1
        # Sessions that saw an older journal start from one again anyway.
        current = {key: stops for key, stops in known.items() if stops.version == version}
        current[client_session] = Stops(version=version, count=count)
        project.store.put(name, msgspec.json.encode(current))
    return count


def _nothing(_event: Event) -> str:
    return ""


_EVENTS = {
    "session_start": _session_start,
    "prompt": _prompt,
    "pre_tool": _before_tool,
    "post_tool": _after_tool,
    "tool_failed": _after_tool,
    "subagent_start": _subagent_start,
    "subagent_stop": _subagent_stop,
    "stop": _stop,
}
