"""An exclusive lock on an open file, with a bounded wait. The file is never deleted, which would defeat the lock."""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from detent.errors import LockTimeout

# Long enough that waiting costs the one who works nothing: eight impatient processes halve the throughput of one.
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.03


@contextmanager
def exclusive(
    fd: int, threads: threading.Lock, *, wait_s: float, what: str, meanwhile: Callable[[], object] | None = None
) -> Iterator[None]:
    """flock keeps other processes out, `threads` the other threads of this one, which share the descriptor."""
    deadline = time.monotonic() + wait_s
    if not threads.acquire(timeout=max(wait_s, 0)):
        raise _timeout(what, wait_s, "another thread of this process")
    try:
        _wait_for_flock(fd, deadline, what, meanwhile)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        threads.release()


def _wait_for_flock(fd: int, deadline: float, what: str, meanwhile: Callable[[], object] | None) -> None:
    started = time.monotonic()
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _timeout(what, time.monotonic() - started, _holder(fd)) from None
            time.sleep(pause)
            if meanwhile is not None:
                meanwhile()
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        else:
            return


def _timeout(what: str, wait_s: float, holder: str) -> LockTimeout:
    return LockTimeout(
        f"{what} is locked by {holder}; gave up after {wait_s:.3g} s",
        way_out="try again, or end that process if it hangs",
    )


def _holder(fd: int) -> str:
    """Linux tells who holds a lock; elsewhere it stays unnamed."""
    status = os.fstat(fd)
    file_id = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as locks:
            pids = [fields[4] for line in locks if (fields := line.split())[5] == file_id and fields[1] != "->"]
    except OSError:
        pids = []
    return f"process {pids[0]}" if pids else "another process"
