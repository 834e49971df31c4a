"""Which session a run is of, and who does its phases; settled before anything is started."""

from typing import TYPE_CHECKING, NamedTuple

from detent.cli.request import Request
from detent.cli.verb import Usage
from detent.errors import NotFound, Refused

if TYPE_CHECKING:
    from detent.core.workflow.graph import Workflow
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.run.agents import ConfiguredAgents


class Asked(NamedTuple):
    task: str | None
    session: str | None
    workflow: str | None
    size: str | None
    agents: tuple[str, ...]


def resolve_run(request: Request, project: "Project", asked: Asked) -> "tuple[SessionHandle, ConfiguredAgents]":
    """The session with this task, or the active one; else a new one, which is started last."""
    from detent.core.run.isolation import isolated

    handle = _existing(project, asked)
    if handle is not None:
        state = handle.state
        return handle, _agents(project, state.workflow, state.active_order, asked.agents)
    assert asked.task is not None
    chosen = project.catalogue.workflow(asked.workflow or project.settings.run.workflow)
    chosen = isolated(chosen, project.settings.run.isolation, size=asked.size)
    left_out = chosen.sizes.get(asked.size, ()) if asked.size else ()
    agents = _agents(project, chosen, [key for key in chosen.order if key not in left_out], asked.agents)
    made = project.start(chosen, asked.task, size=asked.size, delegates=True, joins=True)
    request.notices += project.left_out
    return made, agents


def _existing(project: "Project", asked: Asked) -> "SessionHandle | None":
    from detent.core.session.session import SessionStatus
    from detent.run.recovery import left_behind

    active = project.active()
    if asked.session is not None and asked.session != active:
        raise Refused(f"{asked.session} is not the active session", way_out=f"detent switch {asked.session}")
    handle = project.session() if active is not None else None
    if asked.task is None:
        if handle is None:
            raise NotFound("no session is active", way_out='detent run "TASK"')
        return handle
    task = asked.task.strip()
    if handle is not None and handle.state.status is SessionStatus.ACTIVE:
        if handle.state.task == task:
            return handle
        raise Refused(
            f"{handle.id} is not finished, and it is about something else: {handle.state.task[:80]}",
            way_out=f"detent run to go on with it, or detent pause and then detent run {task[:30]!r} …",
        )
    # Whose run died when all was done: whoever repeats the command does not want all of it done again.
    ended = [one for one in left_behind(project) if one.state.status is SessionStatus.COMPLETED]
    return next((one for one in ended if one.state.task == task), None)


def _agents(
    project: "Project", workflow: "Workflow", phases: "tuple[str, ...] | list[str]", chosen: tuple[str, ...]
) -> "ConfiguredAgents":
    from detent.run.agents import ConfiguredAgents

    overrides: dict[str, str] = {}
    for one in chosen:
        phase, named, name = one.rpartition("=")
        if not name or (named and not phase):
            raise Usage(f"{one!r} is not an agent; say NAME, or PHASE=NAME")
        overrides[phase] = name
    known = {*workflow.by_key, *(phase.agent for phase in workflow.phases), ""}
    if unknown := [phase for phase in overrides if phase not in known]:
        raise NotFound(f"{workflow.name} has no phase or role {', '.join(unknown)}")
    return ConfiguredAgents(project.settings, overrides, needed=[(key, workflow.by_key[key].agent) for key in phases])
