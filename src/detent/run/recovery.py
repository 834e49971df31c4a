"""Recovery after a run that died: ends its processes, and records the attempts and tasks that it left open."""

from typing import TYPE_CHECKING

from detent.core.actor import as_runner
from detent.core.session.commands import Fail
from detent.core.session.status import Status
from detent.engine.agents import environment as variables
from detent.engine.run_lease import live_lease, read_lease
from detent.process.marked import end_marked
from detent.run.turn import is_turn

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle


def left_behind(project: "Project") -> "list[SessionHandle]":
    """The sessions whose runner died while it held the lease."""
    leased = [name for name in project.store.sessions() if read_lease(project.store, name) is not None]
    dead = [name for name in leased if live_lease(project.store, name, now=project.clock()) is None]
    return [project.session(name, actor=as_runner(project.actor)) for name in dead]


def recover(project: "Project", handle: "SessionHandle") -> tuple[str, ...]:
    """End the processes of earlier runs and record the end of their work. Returns a sentence for each."""
    ended = end_marked(f"{variables.SESSION}={handle.id}", f"{variables.STATE}={project.store.location('')}")
    notices = [f"{ended} processes of an earlier run were ended"] if ended else []
    session = handle.state
    for phase in session.with_status(Status.IN_PROGRESS):
        notices += [
            _record_dead(handle, session, phase, delegation.agent_id)
            for delegation in session.phases[phase].delegations
            if delegation.ended_at is None and delegation.agent_id.startswith("run-")
        ]
    if handle.tasks.rows():
        notices += [f"{task} was given back" for task in handle.tasks.release_abandoned()]
    return tuple(notices)


def _record_dead(handle: "SessionHandle", session: "Session", phase: str, agent_id: str) -> str:
    run = agent_id.partition("/")[0]
    if not is_turn(agent_id):
        # The agent of a task: the task is given back and the phase stays in progress.
        handle.record_agent_ended(agent_id, succeeded=False, phase=phase)
        return f"an agent of {phase} ended with {run}"
    error = f"interrupted: {run} ended without recording it"
    handle.execute(Fail(token=session.token(phase), error=error, agent_id=agent_id))
    return f"attempt {session.phases[phase].attempt} of {phase} was interrupted"
