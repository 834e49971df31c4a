"""The lock of all writers of objects, between processes, threads and forked children."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from detent.store import disk
from detent.store.lock import exclusive

#: Rewriting all segments takes less, even on a slow disk.
WAIT_S = 60.0


class WriteLock:
    """`.lock` beside the segments; the file is never deleted."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._fd = -1
        self._pid = os.getpid()
        self._opening = threading.Lock()
        self._threads = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        self.forget_if_forked()
        with self._opening, disk.failing_as("lock", self._root):
            self._open()
        with exclusive(self._fd, self._threads, wait_s=WAIT_S, what=self._root):
            yield

    def forget_if_forked(self) -> bool:
        """A forked child shares the parent's descriptor and with it the lock: it opens its own."""
        if self._pid == os.getpid():
            return False
        self._fd, self._pid = -1, os.getpid()
        self._opening, self._threads = threading.Lock(), threading.Lock()
        return True

    def close(self) -> None:
        if self._fd >= 0 and self._pid == os.getpid():
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> None:
        if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:
            # The file of a removed directory excludes no other process.
            self.close()
        if self._fd < 0:
            disk.make_directory(self._root, durable=True)
            self._fd = disk.open_lock(os.path.join(self._root, ".lock"))
