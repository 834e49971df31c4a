"""Finds the worktree in which a phase is done, for those who look at it from the project's own directory."""

import os

from detent.config.place import Place, find, is_worktree, worktrees


def worktree_place(place: Place, session: str, phase: str | None) -> Place | None:
    """The project in the worktree of the phase, or else of the session; None if there is none, or `place` is in one."""
    directory = worktrees(place.root)
    if is_worktree(place) or not os.path.isdir(directory):
        return None
    from detent.core.run.isolation import tree_name  # noqa: PLC0415 - most projects have no worktrees

    for name in dict.fromkeys((tree_name(session, phase, place.project), tree_name(session, None, place.project))):
        path = os.path.join(directory, name)
        if os.path.lexists(os.path.join(path, ".git")):
            return find(path, project=place.project)[0]
    return None
