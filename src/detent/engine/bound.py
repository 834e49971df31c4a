"""What the environment binds an agent to: the session, the phase and the attempt that a runner started it for.

The variables are only believed as far as the journal agrees: an agent that outlived its attempt is bound to nothing.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from detent.core.session import Session, SessionStatus
from detent.core.status import Status
from detent.engine.agent_environment import PHASE, SESSION, STATE, TOKEN

if TYPE_CHECKING:
    from detent.engine.handle import SessionHandle
    from detent.engine.project import Project


class Bound(NamedTuple):
    handle: "SessionHandle"
    phase: str


def bound(project: "Project", environment: Mapping[str, str]) -> Bound | None:
    """The session and phase that the environment names, if the attempt of its token goes on there."""
    name = bound_session(project, environment)
    if name is None:
        return None
    handle = project.session(name)
    phase = bound_phase(handle.state, environment)
    return Bound(handle, phase) if phase is not None else None


def bound_session(project: "Project", environment: Mapping[str, str]) -> str | None:
    """The session that the environment names, if it is one of this project."""
    name = environment.get(SESSION)
    is_ours = environment.get(STATE, project.place.state) == project.place.state
    return name if name and is_ours and name in project.store.sessions() else None


def bound_phase(session: Session, environment: Mapping[str, str]) -> str | None:
    phase = environment.get(PHASE, "")
    if environment.get(SESSION) != session.id or session.status is not SessionStatus.ACTIVE:
        return None
    is_live = phase in session.with_status(Status.IN_PROGRESS)
    return phase if is_live and environment.get(TOKEN) == str(session.token(phase)) else None
