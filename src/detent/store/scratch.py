"""Temporary directories. A killed process leaves its directory behind, and the next of the same kind removes it."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: A younger directory may be one that its process has not locked yet.
_YOUNG_S = 60.0


@contextmanager
def scratch_directory(kind: str, parent: str | None = None) -> Iterator[str]:
    """A directory `detent-<kind>-…` in `parent`, by default where temporary files go. It goes with the context."""
    parent, prefix = parent or tempfile.gettempdir(), f"detent-{kind}-"
    _remove_abandoned(parent, prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as directory:
        # The system releases the lock when the process ends, however it ends.
        lock = _locked(directory)
        try:
            yield directory
        finally:
            if lock is not None:
                os.close(lock)


def _remove_abandoned(parent: str, prefix: str) -> None:
    """Remove the directories of this account whose process has ended. A failure leaves them to the next one."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix):
                continue
            state = entry.stat(follow_symlinks=False)
            if state.st_uid != os.getuid() or time.time() - state.st_mtime < _YOUNG_S:
                continue
            lock = _locked(entry.path)
            if lock is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)


def _locked(directory: str) -> int | None:
    """The descriptor that holds the lock; None if another process holds it, or this is no directory to be locked."""
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
