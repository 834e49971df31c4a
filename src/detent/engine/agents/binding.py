"""Binds the process of an agent to the session, phase and attempt that a runner started it for.

The environment variables count only as far as the journal agrees: an agent that outlived its attempt has no phase.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from detent.core.session.session import Session
from detent.engine.agents.environment import PHASE, SESSION, STATE, TOKEN

if TYPE_CHECKING:
    from detent.engine.project import Project


class AgentBinding(NamedTuple):
    session: str
    #: The phase of the agent's attempt; None once the attempt is over.
    phase: str | None


def read_binding(project: "Project", environment: Mapping[str, str]) -> AgentBinding | None:
    """The binding that the environment names, if its session is one of this project."""
    name = environment.get(SESSION)
    own = project.store.location("")
    is_ours = environment.get(STATE, own) == own
    if not name or not is_ours or name not in project.store.sessions():
        return None
    phase = bound_phase(project.journal(name).session(), environment) if environment.get(PHASE) else None
    return AgentBinding(name, phase)


def bound_phase(session: Session, environment: Mapping[str, str]) -> str | None:
    phase = environment.get(PHASE, "")
    if environment.get(SESSION) != session.id or session.has_ended:
        return None
    is_live = phase in session.in_progress
    return phase if is_live and environment.get(TOKEN) == str(session.token(phase)) else None
