"""One `Project` per worker thread, in the worktree of the phase.

The files of a `Project` belong to one thread. The journals and the documents are those of the run.
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
            from detent.run import worktree  # noqa: PLC0415 - most runs have no worktrees

            self._trees = worktree.Worktrees(project, session, mode)
        self._own = threading.local()
        self._opened: list[Project] = []

    def project(self, phase: str) -> Project:
        """The project of this thread, in the worktree of the phase."""
        place = self._outer.place if self._trees is None else self._trees.place(phase)
        known: dict[Place, Project] = self._own.__dict__.setdefault("projects", {})
        if place not in known:
            known[place] = self._outer.beside(place, as_runner(self._outer.actor))
            known[place].sandbox = self._outer.sandbox
            self._opened.append(known[place])
        return known[place]

    def done(self, phase: str) -> None:
        """Remove the worktree of a finished phase."""
        if self._trees is not None:
            self._trees.done(phase)

    def close(self) -> None:
        for project in self._opened:
            project.close()
        if self._trees is not None:
            self._trees.close()


def opened_at(project: Project, place: "Place") -> Project:
    """A second `Project` on the same state, with the files of another place and journals of its own."""
    opened = Project(
        project.store.reopen(), place, project.settings, actor=as_runner(project.actor), clock=project.clock
    )
    opened.sandbox = project.sandbox
    return opened
