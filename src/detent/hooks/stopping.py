"""An agent that wants to stop: it is kept working while it can open a gate, a few times; then a person decides."""

import msgspec

from detent.clients.dialect import text_of
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.session.decide_gate import find_gate
from detent.core.session.open_decision import escalations_open, way_out
from detent.engine.projections.publish import UNREADABLE
from detent.hooks.event import Event
from detent.objects.universe import is_changed_since
from detent.store.port import PROJECT

MAX_STOPS = 3
STOPS = "stops.json"
#: Verdicts that an agent must act on. Without a runner, which judges pending gates after the agent stops, PENDING too.
_FAILING = (Verdict.FAIL, Verdict.STALE)


class Stops(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts of a client session to stop at one version of the journal."""

    version: int
    count: int


def stop(event: Event) -> str:
    """Keep the agent from stopping while it can open a gate, at most three times; then escalate to a person."""
    if event.payload.get("background_tasks") or _needs_person(event):
        return ""
    closed = _FAILING if event.bound is not None else (*_FAILING, Verdict.PENDING)
    actionable = [
        (phase, judgement)
        for phase, judgements in event.handle.gates.judgements(event.bound).items()
        for judgement in judgements
        if judgement.verdict in closed and _is_openable(event, phase, judgement)
        if event.bound is None or _is_current(event, phase, judgement)
    ]
    if not actionable:
        return ""
    reasons = "; ".join(
        f"{judgement.gate} of {phase} is {judgement.verdict}: {judgement.reason} ({judgement.way_out})"
        for phase, judgement in actionable
    )
    if _count_stop(event) <= MAX_STOPS:
        return event.dialect.keep_going(f"The work is not done: {reasons}")
    if event.bound is not None:
        # The runner judges the gates itself and escalates after a limit of its own.
        return ""
    phase, _ = actionable[0]
    detail = f"the agent stopped {MAX_STOPS} times with closed gates: {reasons}"
    event.handle.escalate("stop_blocked", phase, detail)
    decisions = escalations_open(event.handle.state)
    return f"Detent: a person must decide about {phase}: {detail}. A person types: {way_out(decisions)}"


def _is_openable(event: Event, phase: str, judgement: Judgement) -> bool:
    """Whether the agent can open the gate, so that it should go on."""
    gate = find_gate(event.handle.state, phase, judgement.gate)
    return gate.opened_by.is_agent and not gate.needs_person(judgement.verdict, sees_tests=True)


def _is_current(event: Event, phase: str, judgement: Judgement) -> bool:
    """Whether the verdict is about the present files. If it is not, the runner runs the check when the turn ends."""
    session, moment = event.handle.state, event.project.checkpoints.moment()
    gate, at_gate = find_gate(session, phase, judgement.gate), session.phases[phase].gates.get(judgement.gate)
    if gate.runnable() is None:
        return True
    # A command may read any file, also one that its evidence does not count as an input.
    if at_gate is not None and at_gate.checked_at is not None and is_changed_since(moment, at_gate.checked_at):
        return False
    return event.handle.gates.checks.is_current(session, phase, gate, moment)


def _needs_person(event: Event) -> bool:
    session = event.handle.state
    if event.bound is None:
        return bool(session.escalations or session.awaiting_review)
    waiting = {escalation.phase for escalation in session.escalations}
    return event.bound in waiting | {question.phase for question in session.questions}


def _count_stop(event: Event) -> int:
    """Count the attempts of this client session to stop since the last commit.

    For a client that is bound to a phase it counts the whole attempt: commits of others say nothing about it.
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
        # Client sessions at an older version restart at one anyway.
        current = {key: stops for key, stops in known.items() if stops.version == version}
        current[client_session] = Stops(version=version, count=count)
        project.store.put(name, msgspec.json.encode(current))
    return count
