"""What the parts of a session's handle count on: the session, and the one way to change it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from detent.core.actor import Actor
from detent.core.session.commands import Command
from detent.core.session.session import Session
from detent.engine.results import Outcome

if TYPE_CHECKING:
    from detent.engine.gates.checks import GateChecks
    from detent.engine.project import Project


class SessionPart(ABC):
    id: str
    _project: "Project"
    _actor: Actor

    @property
    @abstractmethod
    def state(self) -> Session:
        """The session as it stands now, whoever moved it."""

    @property
    @abstractmethod
    def _checks(self) -> "GateChecks":
        """What runs checks and gathers facts for judging."""

    @abstractmethod
    def carry_out(
        self, command: Command, warnings: Iterable[str] = (), *, then: Callable[[], object] | None = None
    ) -> Outcome:
        """Decide the command and commit what it makes happen; `then` is done right before the commit, if it comes."""

    @abstractmethod
    def carry_out_first(self, choose: Callable[[Session], Command]) -> Outcome:
        """The same for a command that is chosen under the lock, so that no two choose the same."""

    @abstractmethod
    def _inside(self, path: str) -> str:
        """`path` relative to the project's directory, whatever it was relative to before."""
