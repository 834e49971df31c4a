"""The records of a project's worktrees: their names, whether they are complete, and the lock for changes."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from detent.clients.registry import generated_files, settings_files
from detent.config import place as places
from detent.core.run.isolation import tree_name
from detent.engine.projections.publish import UNREADABLE
from detent.engine.stores import worktree_store
from detent.store import disk
from detent.store.lock import exclusive

BRANCHES = "detent/"
#: Files that Detent writes itself in every checkout with an installed client; no part of the work.
GENERATED = generated_files()
#: Files that hold the hooks of the clients.
HOOKS = settings_files()
#: A merge may wait for other merges, each with the person's git hooks.
_WAIT_S = 1_200.0


class Worktree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record beside a complete worktree. Without a record it holds no work."""

    session: str
    phase: str | None = None
    project: str | None = None
    #: The branch that a person chose for the work of the session; empty for one of Detent.
    target: str = ""

    @property
    def name(self) -> str:
        return tree_name(self.session, self.phase, self.project)

    @property
    def branch(self) -> str:
        return self.target or BRANCHES + self.name

    def path(self, root: str) -> str:
        return os.path.join(places.worktrees(root), self.name)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Worktree).decode


def known(root: str) -> list[Worktree]:
    """Every recorded worktree."""
    store = worktree_store(root)
    trees = []
    for name in store.names(""):
        if name.endswith(".json") and not name.startswith("."):
            with suppress(*UNREADABLE):
                trees.append(_decode(store.get(name) or b""))
    return trees


def is_complete(tree: Worktree, root: str) -> bool:
    is_recorded = worktree_store(root).written(f"{tree.name}.json") > 0
    return is_recorded and os.path.lexists(os.path.join(tree.path(root), ".git"))


@contextmanager
def one_at_a_time(root: str) -> Iterator[None]:
    """Lock the worktrees of a project. Not the project's lock: git may take long, and its hooks may call Detent."""
    directory = places.worktrees(root)
    with disk.failing_as("lock", directory):
        disk.make_directory(directory)
        fd = disk.open_lock(os.path.join(directory, ".lock"))
    try:
        with exclusive(fd, threading.Lock(), wait_s=_WAIT_S, what=directory):
            yield
    finally:
        os.close(fd)


def left_out(root: str) -> list[str]:
    """Git pathspecs that exclude Detent's own files from commits."""
    return [f":(exclude,top,literal){in_repository(root, name)}" for name in GENERATED]


def in_repository(root: str, name: str) -> str:
    """A path of the project, relative to the repository."""
    return os.path.normpath(os.path.join(os.path.relpath(root, places.repository(root) or root), name))


def save(tree: Worktree, root: str) -> None:
    """Record the worktree as complete. The caller holds the lock."""
    store = worktree_store(root)
    # A project may keep `.workflow` in git; its worktrees are never part of it.
    store.put(".gitignore", b"*\n")
    store.put(f"{tree.name}.json", _encode(tree))


def forget(tree: Worktree, root: str) -> None:
    """Delete the record, so that the rest of the worktree is not used again."""
    worktree_store(root).delete(f"{tree.name}.json")
