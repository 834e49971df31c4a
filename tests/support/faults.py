"""Every call with which a process changes the disk, counted, and made to go wrong at a chosen one.

SIGKILL shows what the death of a process leaves behind. It does not show the loss of power, for which the commit
relies on the sync that these tests count.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WATCHED = ("write", "fdatasync", "fsync", "rename", "replace", "open", "unlink", "ftruncate", "mkdir", "rmdir", "chmod")
CACHES = ("objects.idx", ".stat-cache", "/project-id")
#: Exit status of a child that got through undisturbed, and of one whose chosen call was no write.
DONE, NO_WRITE = 0, 77

_original = {name: getattr(os, name) for name in WATCHED}
Strike = Callable[[str, tuple[Any, ...]], None]


class Counter:
    """Calls `strike` right before the watched call number `number`, and from then on if `lasting`."""

    def __init__(self, strike: Strike | None = None, number: int = 0, *, lasting: bool = False) -> None:
        self.calls: list[str] = []
        self.failed: list[str] = []
        self._strike = strike
        self._number = number
        self._lasting = lasting

    def wrap(self, name: str) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if name != "open" or args[1] & os.O_CREAT:
                self.calls.append(name)
                now = len(self.calls)
                if self._strike and (now == self._number or (self._lasting and now > self._number)):
                    try:
                        self._strike(name, args)
                    except OSError:
                        self.failed.append(name)
                        raise
            return _original[name](*args, **kwargs)

        return watched


@contextmanager
def watching(counter: Counter) -> Iterator[Counter]:
    for name in WATCHED:
        setattr(os, name, counter.wrap(name))
    try:
        yield counter
    finally:
        for name in WATCHED:
            setattr(os, name, _original[name])


def die(_name: str, _args: tuple[Any, ...]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_halfway(name: str, args: tuple[Any, ...]) -> None:
    if name != "write":
        os._exit(NO_WRITE)
    fd, data = args
    _original["write"](fd, bytes(data)[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


def failing(error: int, only: tuple[str, ...] = WATCHED) -> Strike:
    def fail(name: str, args: tuple[Any, ...]) -> None:
        if name in only and not _is_of_a_cache(args[0]):
            raise OSError(error, os.strerror(error))

    return fail


def _is_of_a_cache(target: Any) -> bool:
    """Files that may be missing at any time: a failure to write one is not reported."""
    path = os.fsdecode(target) if not isinstance(target, int) else os.readlink(f"/proc/self/fd/{target}")
    # The second copies of journals may be behind, too.
    return any(name in path for name in CACHES) or path.startswith(os.environ["XDG_STATE_HOME"])


def in_child(work: Callable[[Callable[[], None]], None], counter: Counter) -> tuple[int, bool]:
    """Run `work` in a forked child; its exit status (negative for a signal) and whether it called back before."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            with watching(counter):
                work(lambda: _original["write"](writing, b"!") and None)
            status = DONE
        finally:
            os._exit(status)
    os.close(writing)
    acknowledged = os.read(reading, 1) == b"!"
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), acknowledged
