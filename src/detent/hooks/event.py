"""An event of a client, with the session that it concerns."""

from typing import Any, NamedTuple

from detent.clients.dialect import Dialect
from detent.core.session.status import Status
from detent.engine.project import Project
from detent.engine.session import SessionHandle


class Event(NamedTuple):
    """An event of a client, and the session that it concerns."""

    dialect: Dialect
    payload: dict[str, Any]
    project: Project
    handle: SessionHandle
    #: The phase that a runner started the client for. The runner begins and ends phases itself.
    bound: str | None = None

    @property
    def live(self) -> tuple[str, ...]:
        """The phases in progress that the event can concern."""
        return self.handle.state.with_status(Status.IN_PROGRESS) if self.bound is None else (self.bound,)
