"""The results of engine calls, as plain values."""

from collections.abc import Callable

import msgspec

from detent.core.lazy import lazy
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


class Begun(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """An attempt in progress: the session after its begin, and its events. `finish` and `fail` need its token."""

    session: Session
    events: tuple[Event, ...]
    token: Token
    #: Looks up the handover, and which of its paths exist.
    look: Callable[[], Handover]

    @property
    def version(self) -> int:
        return self.session.version

    @property
    def phase(self) -> str:
        return self.token.phase

    @lazy
    def handover(self) -> Handover:
        """Made on first use: a runner makes its own for the prompt, and many callers need none."""
        return self.look()

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.handover.warnings
