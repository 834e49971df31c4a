"""Where those who work are: each thread has the project to itself, opened in the tree that its phase works on.

A project object is made for one thread. Several on the same state keep out of each other's way as processes do.
"""

import threading
from typing import TYPE_CHECKING

from detent.core.actor import as_runner
from detent.engine.project import Project

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.run.worktree import Worktrees


class Workspaces:
    def __init__(self, project: Project, session: str) -> None:
        self._outer = project
        self._trees: Worktrees | None = None
        mode = project.settings.run.isolation
        if mode != "none":
            from detent.run import worktree  # noqa: PLC0415 - most runs have no trees of their own

            self._trees = worktree.Worktrees(project, session, mode)
        self._own = threading.local()
        self._opened: list[Project] = []

    def project(self, phase: str) -> Project:
        """The project of this thread, in the tree of the phase."""
        place = self._outer.place if self._trees is None else self._trees.place(phase)
        known: dict[Place, Project] = self._own.__dict__.setdefault("projects", {})
        if place not in known:
            known[place] = opened_at(self._outer, place)
            self._opened.append(known[place])
        return known[place]

    def done(self, phase: str) -> None:
        """The phase is finished, and what it did is where it belongs."""
        if self._trees is not None:
            self._trees.done(phase)

    def close(self) -> None:
        for project in self._opened:
            project.close()
        if self._trees is not None:
            self._trees.close()


def opened_at(project: Project, place: "Place") -> Project:
    """The same project with the files of another place: a second object on the same state."""
    return Project(project.store.reopen(), place, project.settings, actor=as_runner(project.actor), clock=project.clock)
