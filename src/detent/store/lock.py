"""An exclusive lock on an open file, with a bounded wait. The file is never deleted: that would defeat the lock."""

import fcntl
import os
import time
from _thread import LockType
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from detent.errors import LockTimeout

#: Long enough that waiting processes do not slow down the holder: eight that poll more often halve its throughput.
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.03
_TRY = fcntl.LOCK_EX | fcntl.LOCK_NB


class exclusive:  # noqa: N801 - a context manager, named as one
    """A context manager. `flock` excludes other processes; `threads` excludes threads, which share the descriptor.

    A class, because every transition takes the lock and a generator costs twice as much. `meanwhile` is called between
    two tries.
    """

    def __init__(
        self,
        fd: int,
        threads: LockType,
        *,
        wait_s: float,
        what: str,
        meanwhile: Callable[[], object] | None = None,
    ) -> None:
        self._fd, self._threads, self._wait_s, self._what, self._meanwhile = fd, threads, wait_s, what, meanwhile

    def __enter__(self) -> None:
        started = time.monotonic()
        # Uncontended in most cases, where a timeout would only cost time.
        if not self._threads.acquire(blocking=False) and not self._threads.acquire(timeout=max(self._wait_s, 0)):
            raise _timeout(self._what, self._wait_s, "another thread of this process")
        try:
            try:
                fcntl.flock(self._fd, _TRY)
            except BlockingIOError:
                self._wait_for_flock(started)
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def _wait_for_flock(self, started: float) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            waited_s = time.monotonic() - started
            if waited_s >= self._wait_s:
                raise _timeout(self._what, waited_s, _holder(self._fd)) from None
            time.sleep(pause)
            if self._meanwhile is not None:
                self._meanwhile()
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            with suppress(BlockingIOError):
                return fcntl.flock(self._fd, _TRY)


def _timeout(what: str, wait_s: float, holder: str) -> LockTimeout:
    return LockTimeout(
        f"{what} is locked by {holder}; gave up after {wait_s:.3g} s",
        way_out="try again, or end that process if it hangs",
    )


def _holder(fd: int) -> str:
    """The process that holds the lock, where the kernel lists it in `/proc/locks`."""
    status = os.fstat(fd)
    file_id = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as locks:
            pids = [fields[4] for line in locks if (fields := line.split())[5] == file_id and fields[1] != "->"]
    except OSError:
        pids = []
    return f"process {pids[0]}" if pids else "another process"
