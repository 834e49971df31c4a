"""What the engine answers. Plain values: nothing here can be asked to do anything."""

import msgspec

from detent.core.session.events import Event
from detent.core.session.handover import Handover
from detent.core.session.session import Session
from detent.core.session.token import Token


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was carried out: the session after it, and what a person should know."""

    session: Session
    #: What it made happen, in one commit.
    events: tuple[Event, ...]
    warnings: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        return self.session.version


class Begun(Outcome, frozen=True, kw_only=True):
    """An attempt in progress. `finish` and `fail` need its token."""

    token: Token
    handover: Handover

    @property
    def phase(self) -> str:
        return self.token.phase
