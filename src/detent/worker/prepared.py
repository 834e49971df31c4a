"""The part of a run that each machine prepares for itself: its settings, agents and limits."""

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent.engine.gates.applicable import is_observed
from detent.run.agents import ConfiguredAgents
from detent.run.context import RunOptions

if TYPE_CHECKING:
    from detent.engine.project import Project


class Prepared(NamedTuple):
    agents: ConfiguredAgents
    options: RunOptions


def project_key(project: "Project") -> str:
    """The name of the project among all that share a scheduler."""
    own = hashlib.sha256(project.store.location("").encode()).hexdigest()[:12]
    name = project.settings.store.project or own
    return name if project.place.project is None else f"{name}/{project.place.project}"


def prepare(project: "Project", session: str, *, wait: bool) -> Prepared:
    """Use the options that the session was started with; programs and agents are those of this machine."""
    chosen = project.session(session).state.options.run
    run = msgspec.structs.replace(project.settings.run, **chosen.overrides(), isolation="none")
    project.settings = msgspec.structs.replace(project.settings, run=run)
    return Prepared(
        ConfiguredAgents(project.settings, chosen.agents),
        RunOptions(
            parallel=run.parallel,
            attempts=run.attempts,
            turns=run.turns,
            max_hours=run.max_hours,
            max_turns=run.max_turns,
            max_tasks=run.max_tasks,
            observes=is_observed(project.place),
            wait=wait,
        ),
    )
