"""Recovery after a run that died: records the attempts and tasks that it left open."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from detent.clients.registry import CLIENTS
from detent.core.actor import as_runner
from detent.core.session.commands import Fail
from detent.core.session.phase_state import Report, Tokens, Worker, run_agent
from detent.core.session.status import Status
from detent.engine.run_lease import dead_leases
from detent.errors import NotFound, Refused
from detent.run.feed import OpenTurn, open_turns
from detent.run.turn import is_turn

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.run.context import Agents


def left_behind(project: "Project") -> "list[SessionHandle]":
    """The sessions whose runner died while it held the lease."""
    dead = dead_leases(project.store, now=project.clock())
    return [project.session(name, actor=as_runner(project.actor)) for name in dead]


def recover(
    project: "Project", handle: "SessionHandle", agents: "Agents", *, in_flight: Collection[str] = ()
) -> tuple[str, ...]:
    """Record the end of the work of earlier runs, whose processes are gone. Returns a sentence for each.

    `in_flight` are phases whose work goes on elsewhere.
    """
    notices: list[str] = []
    session = handle.state
    left = [
        (phase, delegation.agent_id)
        for phase in session.with_status(Status.IN_PROGRESS)
        if phase not in in_flight
        for delegation in session.phases[phase].delegations
        if delegation.ended_at is None and delegation.agent_id.startswith("run-")
    ]
    turns = open_turns(project.store.feed_reader(handle.id)) if left else {}
    for phase, agent_id in left:
        task = None if is_turn(agent_id) else agent_id.rpartition("/")[2]
        report = _report(turns.get((phase, task)), agent_id, agents)
        try:
            notices.append(_record_dead(handle, session, phase, agent_id, report))
        except Refused:
            # A worker of another machine that was taken for dead has ended it meanwhile.
            if handle.state.version == session.version:
                raise
    if handle.tasks.rows():
        notices += [f"{task} was given back" for task in handle.tasks.release_abandoned()]
    return tuple(notices)


def _record_dead(handle: "SessionHandle", session: "Session", phase: str, agent_id: str, report: Report | None) -> str:
    run = agent_id.partition("/")[0]
    unknown = "" if report is not None else "; the tokens that it used are unknown"
    if not is_turn(agent_id):
        # The agent of a task: the task is given back and the phase stays in progress.
        handle.record_agent_ended(agent_id, succeeded=False, phase=phase, report=report)
        return f"an agent of {phase} ended with {run}{unknown}"
    error = f"interrupted: {run} ended without recording it{unknown}"
    known = report or Report()
    handle.execute(
        Fail(token=session.token(phase), error=error, agent_id=agent_id, tokens=known.tokens, worker=known.worker)
    )
    return f"attempt {session.phases[phase].attempt} of {phase} was interrupted{unknown}"


def _report(turn: OpenTurn | None, agent_id: str, agents: "Agents") -> Report | None:
    """The agent and its usage, as the feed of the dead run and the record of its client tell it.

    None if neither tells tokens.
    """
    if turn is None or run_agent(agent_id) != turn.agent.replace("/", "_"):
        return None
    recorded = _recorded(turn, agents)
    known = [tokens for tokens in (turn.used, recorded) if tokens is not None and tokens != Tokens()]
    if not known and turn.spent == Tokens():
        return None
    last = max(known, key=lambda tokens: tokens.input + tokens.output, default=Tokens())
    worker = Worker(agent=turn.agent, model=turn.started.model, version=turn.started.version)
    return Report(tokens=turn.spent + last, worker=worker)


def _recorded(turn: OpenTurn, agents: "Agents") -> Tokens | None:
    """The tokens in the client's own record of the conversation; None if it keeps none that can be read."""
    try:
        settings = agents.settings_of(turn.agent)
    except NotFound:
        return None
    client = CLIENTS.get(settings.adapter)
    recorded = getattr(client.load("adapter"), "recorded_usage", None) if client is not None else None
    if recorded is None or not turn.started.conversation:
        return None
    tokens: Tokens = recorded(settings, turn.started.conversation, turn.at.timestamp())
    return tokens
