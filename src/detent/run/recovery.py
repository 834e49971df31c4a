"""What a run that died left behind: processes that go on, attempts and tasks that nobody ended."""

from typing import TYPE_CHECKING

from detent.core.session.commands import Fail
from detent.core.session.status import Status
from detent.engine.agents import environment as variables
from detent.process.marked import end_marked
from detent.run.phase_run import is_turn

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle


def recover(project: "Project", handle: "SessionHandle") -> tuple[str, ...]:
    """End what still runs for the session, and record what its runner did not live to end; in words, what it was."""
    ended = end_marked(f"{variables.SESSION}={handle.id}", f"{variables.STATE}={project.store.location('')}")
    told = [f"{ended} processes of an earlier run were ended"] if ended else []
    session = handle.state
    for phase in session.with_status(Status.IN_PROGRESS):
        told += [
            _record_dead(handle, session, phase, one.agent_id)
            for one in session.phases[phase].delegations
            if one.ended_at is None and one.agent_id.startswith("run-")
        ]
    if handle.tasks.rows():
        told += [f"{task} was given back" for task in handle.tasks.release_abandoned()]
    return tuple(told)


def _record_dead(handle: "SessionHandle", session: "Session", phase: str, agent_id: str) -> str:
    run = agent_id.partition("/")[0]
    if not is_turn(agent_id):
        # The agent of a task: the task goes back, and the phase goes on.
        handle.record_agent_ended(agent_id, succeeded=False, phase=phase)
        return f"an agent of {phase} ended with {run}"
    error = f"interrupted: {run} ended without recording it"
    handle.execute(Fail(token=session.token(phase), error=error, agent_id=agent_id))
    return f"attempt {session.phases[phase].attempt} of {phase} was interrupted"
