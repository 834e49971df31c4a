"""What is known of the worktrees of a project: which there are, what they are called, and who may change them now."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from detent.clients.registry import generated_files, settings_files
from detent.config import place as places
from detent.core.run.isolation import tree_name
from detent.engine.stores import worktree_store
from detent.store import disk
from detent.store.lock import exclusive

BRANCHES = "detent/"
#: Detent writes these itself, in every checkout where a client is installed: they are nobody's work.
GENERATED = generated_files()
#: What the clients keep their hooks in.
HOOKS = settings_files()
#: A merge may wait for others, each with the hooks of the person.
_WAIT_S = 1_200.0


class Worktree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is written beside a worktree once it is complete; without that nobody has worked in it."""

    session: str
    phase: str | None = None
    project: str | None = None

    @property
    def name(self) -> str:
        return tree_name(self.session, self.phase, self.project)

    @property
    def branch(self) -> str:
        return BRANCHES + self.name

    def path(self, root: str) -> str:
        return os.path.join(places.worktrees(root), self.name)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Worktree).decode


def known(root: str) -> list[Worktree]:
    """Every worktree that is complete."""
    store = worktree_store(root)
    trees = []
    for name in store.names(""):
        if name.endswith(".json") and not name.startswith("."):
            with suppress(msgspec.DecodeError):
                trees.append(_decode(store.get(name) or b""))
    return trees


def is_complete(tree: Worktree, root: str) -> bool:
    is_recorded = worktree_store(root).written(f"{tree.name}.json") > 0
    return is_recorded and os.path.lexists(os.path.join(tree.path(root), ".git"))


@contextmanager
def one_at_a_time(root: str) -> Iterator[None]:
    """What is done to worktrees. Not the project's lock: git may take long, and its hooks may call Detent."""
    directory = places.worktrees(root)
    with disk.failing_as("lock", directory):
        os.makedirs(directory, exist_ok=True)
        fd = os.open(os.path.join(directory, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with exclusive(fd, threading.Lock(), wait_s=_WAIT_S, what=directory):
            yield
    finally:
        os.close(fd)


def left_out(root: str) -> list[str]:
    """What no commit of a worktree takes, as git's pathspecs."""
    return [f":(exclude,top,literal){in_repository(root, name)}" for name in GENERATED]


def in_repository(root: str, name: str) -> str:
    """A path of the project as it is called in the repository."""
    return os.path.normpath(os.path.join(os.path.relpath(root, places.repository(root) or root), name))


def save(tree: Worktree, root: str) -> None:
    """From here on it is complete. The caller holds the lock."""
    store = worktree_store(root)
    # The project may have its `.workflow` in git; checkouts of itself are never part of it.
    store.put(".gitignore", b"*\n")
    store.put(f"{tree.name}.json", _encode(tree))


def forget(tree: Worktree, root: str) -> None:
    """It is no whole worktree any more: nobody goes on with what is left of it."""
    worktree_store(root).delete(f"{tree.name}.json")
