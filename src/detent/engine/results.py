"""The results of engine calls, as plain values."""

import msgspec

from detent.core.session.events import Event
from detent.core.session.handover import Handover
from detent.core.session.session import Session
from detent.core.session.token import Token


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command: the session after it, its events, and warnings for a person."""

    session: Session
    #: The events of its commit.
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
