"""The files of a job on this machine: a tree made from the session's newest checkpoint, and joined with later ones.

The newest checkpoint of a session is the last one that is neither a PRE checkpoint nor a safety copy. Parallel jobs
work in trees of their own. Before a job commits a checkpoint it takes the files that other jobs changed since, and the
commit is refused if one more was committed meanwhile. So no file of a finished job is lost.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from detent.config import place as places
from detent.config.place import Place
from detent.core.checkpoint.manifest import Manifest
from detent.core.checkpoint.three_way import join
from detent.core.path_text import to_text
from detent.engine.checkpoints.travel import Head, put, travel_of
from detent.errors import Conflict
from detent.process.git import Git
from detent.run.job import FilesConflict
from detent.store import disk

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: Trees of one session on one machine; each parallel job has one.
MAX_TREES = 64
#: A tree is named by its session, this mark and a number; its lock has this suffix.
MARK, LOCK = ".worker", ".lock"
#: Conflicting paths that a message names.
_MAX_NAMED = 10


@contextmanager
def lent_tree(root: str, session: str, project: str | None) -> Iterator[Place]:
    """A tree of the session that no other job of this machine uses, with a git repository of its own."""
    directory = places.worktrees(root)
    disk.make_directory(directory)
    for number in range(1, MAX_TREES + 1):
        path = os.path.join(directory, f"{session}{MARK}{number}")
        lock = lock_of(path)
        if lock is None:
            continue
        try:
            yield tree_at(path, project)
            return
        finally:
            os.close(lock)
    raise Conflict(f"{MAX_TREES} jobs of {session} run on this machine", way_out="start fewer workers")


def lock_of(path: str) -> int | None:
    """Lock the tree; None if another job of this machine has it. Closing the descriptor frees it."""
    lock = os.open(path + LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, disk.PRIVATE_FILE)
    # The file goes with its tree, perhaps after it was opened here.
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(path + LOCK)):
            return lock
    os.close(lock)
    return None


def tree_at(path: str, project: str | None) -> Place:
    """The place in the tree, which is a repository then. The caller holds its lock."""
    if not os.path.exists(os.path.join(path, ".git", "HEAD")):
        # The rules of `.gitignore` end at a repository. The one around it belongs to the person.
        _make_repository(path)
    return places.find(path, project=project)[0]


def _make_repository(path: str) -> None:
    """As `git init` makes it, without templates of the person."""
    for part in ("objects", "refs"):
        disk.make_directory(os.path.join(path, ".git", part))
    disk.replace(os.path.join(path, ".git", "config"), b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    disk.replace(os.path.join(path, ".git", "HEAD"), b"ref: refs/heads/none\n")


class JobTree:
    """The files of one job. See `JobFiles` of `run/job.py`."""

    def __init__(self, project: "Project", handle: "SessionHandle") -> None:
        self._project, self._handle = project, handle
        self._head = Head(project.store, handle.id)
        self._base: Manifest = {}
        self._manifest = ""

    def make(self) -> None:
        """Make the tree that of the newest checkpoint. What a job that died left in it is removed."""
        self._manifest = self._head.manifest()
        self._base = travel_of(self._project).files(self._handle.id, self._manifest)
        if put(self._project, self._handle.id, self._manifest, self._base):
            self._track_ignored()

    def settle(self) -> Callable[[], None]:
        """Take the files of jobs that finished since. Returns a check for the commit: `Conflict` if one more did."""
        head = self._head.manifest()
        if head != self._manifest:
            theirs = travel_of(self._project).files(self._handle.id, head)
            ours = self._project.checkpoints.capture(self._handle.id, store=False).files
            joined = join(self._base, ours, theirs)
            if joined.conflicts:
                named = ", ".join(map(to_text, joined.conflicts[:_MAX_NAMED]))
                raise FilesConflict(f"parallel work changed the same files: {named}")
            put(self._project, self._handle.id, head, theirs, only=joined.theirs)
            self._base, self._manifest = theirs, head

        def check() -> None:
            if self._head.manifest() != self._manifest:
                raise Conflict("other work was finished meanwhile", way_out="take its files, then repeat the command")

        return check

    def _track_ignored(self) -> None:
        """Add files that an ignore rule covers to the index: they are tracked where they come from."""
        present = self._project.checkpoints.capture(self._handle.id, store=False).files
        if missing := [path for path in self._base if path not in present]:
            with suppress(OSError):
                self._project.checkpoints.universe.forget()
            Git(self._project.place.base).ask("add", "--force", "--", *missing)
