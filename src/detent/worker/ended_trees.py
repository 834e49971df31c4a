"""Removes the trees of sessions that have ended from this machine.

A tree stays while a job or a loop of any worker has it. It also stays if it has a file that no checkpoint in the
shared place has. Ignored files, which no checkpoint has, go with their tree.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from detent.config import place as places
from detent.core.checkpoint.manifest import Manifest
from detent.core.counted import listed
from detent.core.path_text import to_text
from detent.engine.checkpoints.travel import travel_of
from detent.errors import DetentError, NotFound
from detent.store import disk
from detent.store.scratch import scratch_directory
from detent.worker.trees import LOCK, MARK, lock_of, tree_at

if TYPE_CHECKING:
    from detent.engine.project import Project

_SCRATCH = "ended"


def remove_ended(project: "Project", kept: set[str], note: Callable[[str], object]) -> None:
    """Remove the trees of ended sessions. `note` gets the reason for one that stays; it is in `kept` from then on."""
    if project.settings.checkpoint.capture != "tree":
        return
    directory = places.worktrees(project.place.root)
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return
    trees = [name.removesuffix(LOCK) for name in names if name.endswith(LOCK) and MARK in name]
    known = set(project.store.sessions()) if trees else set()
    for tree in trees:
        session = tree.rpartition(MARK)[0]
        if session in known and tree not in kept:
            # One session or tree that cannot be read does not keep the others.
            with suppress(DetentError):
                if project.journal(session).session().has_ended:
                    _remove(project, session, os.path.join(directory, tree), kept, note)


def _remove(project: "Project", session: str, path: str, kept: set[str], note: Callable[[str], object]) -> None:
    if os.path.isfile(os.path.join(path, ".git")):
        # A worktree of git, which a run with `--isolation` made for a phase of that name.
        return
    with disk.failing_as("remove", path):
        lock = lock_of(path)
        if lock is None:
            return
        try:
            there = project.beside(tree_at(path, project.place.project), project.actor)
            only_here = _only_here(there, session)
            there.checkpoints.close()
            if only_here:
                kept.add(os.path.basename(path))
                note(
                    f"{path} was kept: no checkpoint has its {listed(only_here)}; remove it when you need none of them"
                )
                return
            # Moved first: half a tree would look like work.
            with scratch_directory(_SCRATCH, os.path.dirname(path)) as scratch:
                os.rename(path, os.path.join(scratch, os.path.basename(path)))
                os.unlink(path + LOCK)
            there.checkpoints.universe.remove_cache()
        finally:
            os.close(lock)


def _only_here(project: "Project", session: str) -> list[str]:
    """The files of the tree that no checkpoint of the session in the shared place has with the same content."""
    checkpoints, travel = project.checkpoints, travel_of(project)
    captured = checkpoints.capture(session, project.journal(session).session(), store=False)
    left: Manifest = captured.files
    for manifest in dict.fromkeys(at.event.tree.manifest for at in reversed(checkpoints.positions(session))):
        if not left:
            break
        # `detent files clean` may have removed it.
        with suppress(NotFound):
            files = travel.files(session, manifest)
            left = {name: entry for name, entry in left.items() if files.get(name) != entry}
    return [to_text(name) for name in sorted({*left, *captured.left_out})]
