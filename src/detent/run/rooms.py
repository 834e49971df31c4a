"""Where those who work are: each thread has the project to itself, opened in the tree that its phase works on.

A project object is made for one thread. Several on the same state keep out of each other's way as processes do.
"""

import threading
from typing import TYPE_CHECKING

from detent.engine.project import Project
from detent.store.files import FileStore

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.run.worktree import Worktrees


class Rooms:
    def __init__(self, project: Project, session: str) -> None:
        self._outer = project
        self._trees: Worktrees | None = None
        if project.settings.run.isolation != "none":
            from detent.run import worktree  # noqa: PLC0415 - most runs have no trees of their own

            self._trees = worktree.Worktrees(project, session, project.settings.run.isolation)
        self._own = threading.local()
        self._opened: list[Project] = []
        self._making = threading.Lock()

    def project(self, phase: str) -> Project:
        """The project of this thread, in the tree of the phase."""
        place = self._place(phase)
        known: dict[Place, Project] = self._own.__dict__.setdefault("projects", {})
        if place not in known:
            outer = self._outer
            known[place] = Project(FileStore(place.state), place, outer.settings, actor=outer.actor, clock=outer.clock)
            with self._making:
                self._opened.append(known[place])
        return known[place]

    def done(self, phase: str) -> None:
        """The phase is finished, and what it did is where it belongs."""
        if self._trees is not None:
            with self._making:
                self._trees.done(phase)

    def close(self) -> None:
        for project in self._opened:
            project.close()
        if self._trees is not None:
            self._trees.close()

    def _place(self, phase: str) -> "Place":
        if self._trees is None:
            return self._outer.place
        with self._making:
            return self._trees.tree(phase).place
