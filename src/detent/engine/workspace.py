"""The door: every surface opens a project here, says who asks, and reads or changes it.

`change` does what each change needs, once and in this order: open, bind to the agent's session, finish what an
interrupted command left, adopt edits made by hand, let the caller work, publish the documents, collect notices.
`read` takes no lock and writes nothing.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from detent.core.actor import Actor, Channel
from detent.engine.actor import identify, own_lineage
from detent.engine.agents.environment import SESSION
from detent.engine.outside import pending_edits, pending_settings
from detent.engine.project import Clock, Project, open_project, utc_now
from detent.errors import DetentError, NotFound


class Workspace:
    def __init__(
        self,
        directory: str = ".",
        *,
        project: str | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock = utc_now,
        notices: list[str] | None = None,
        tolerant: bool = False,
    ) -> None:
        """`tolerant` opens a project whose settings cannot be used without them."""
        self.directory = directory
        self._tolerant = tolerant
        self._project = project
        self._environment = os.environ if environment is None else environment
        self._clock = clock
        #: For the person or agent who asked; none of them stopped anything.
        self.notices: list[str] = [] if notices is None else notices

    def actor(self, channel: Channel, *, name: str | None = None, changes: bool = False) -> Actor:
        """The actor behind the environment of this workspace.

        `changes`: the ancestors of the process count too, so that every commit of an agent's shell says so. Reading
        needs no author and saves the look at them.
        """
        return identify(self._environment, channel, name=name, lineage=own_lineage() if changes else ())

    @contextmanager
    def read(self, actor: Actor) -> Iterator[Project]:
        """The project to look at."""
        with self.open(actor) as project:
            self.notices += _lost(project)
            self.notices += [f"{notice}; the next command records it" for notice in pending_settings(project)]
            self.notices += [
                f"{name} was edited by hand; the next command that changes something adopts it, or detent adopt"
                for name in pending_edits(project)
            ]
            yield project

    @contextmanager
    def change(
        self,
        actor: Actor,
        *,
        adopt: bool = True,
        inspect: Callable[[Project], object] | None = None,
    ) -> Iterator[Project]:
        """The project to change.

        `adopt=False` leaves edits and interrupted work as they are, for looking at damage. `inspect` sees the project
        before anything is written; an exception from it leaves everything as it is.
        """
        project = self.open(actor)
        try:
            if inspect is not None:
                inspect(project)
            self.notices += _lost(project)
            if adopt:
                self.notices += [adoption.describe() for adoption in project.reconcile(publish=False)]
            yield project
        finally:
            self._close(project)

    def open(self, actor: Actor) -> Project:
        """The project, for a caller that closes it. Most want `read` or `change`."""
        if not os.path.isdir(self.directory):
            raise NotFound(f"{self.directory} is not a directory")
        project = open_project(
            self.directory, project=self._project, actor=actor, clock=self._clock, tolerant=self._tolerant
        )
        if SESSION in self._environment:
            from detent.engine.agents.binding import read_binding  # noqa: PLC0415 - only below a runner

            project.binding = read_binding(project, self._environment)
        return project

    def _close(self, project: Project) -> None:
        try:
            project.close()
        except DetentError as error:
            # The commit stands. Failing now would make people repeat it.
            self.notices.append(f"documents are behind and will be written by the next command: {error.message}")
        self.notices += project.notices
        self.notices += project.store.notices


def _lost(project: Project) -> list[str]:
    """Says which journals are gone or shorter than their second copies, whatever the command is about."""
    lost = project.store.repairs.lost() if project.store.repairs is not None else []
    return [f"the journals of {', '.join(lost)} lack commits; detent doctor says which"] if lost else []
