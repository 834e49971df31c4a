"""Write-behind: publishes documents shortly after a commit, and always before the process ends.

One thread serves the whole process. A thread keeps the memory that it has used, so a thread for each project would let
a long process grow.
"""

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count

from detent.errors import DetentError

DELAY_S = 0.5
#: The pause is at least this many times as long as the last run took, so that runs take at most a fifth of the time.
SHARE = 4

_alive: "weakref.WeakSet[WriteBehind]" = weakref.WeakSet()


class WriteBehind:
    """Runs `work` once, `DELAY_S` after the first `mark()` since its last run, or at once after an urgent one.

    `flush()` runs it now if it is due.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._due = self._urgent = False
        #: The number of the timer that is set, if any.
        self._timer: int | None = None
        self._mutex = threading.Lock()
        self._working = threading.Lock()
        self._took_s = 0.0
        self._failed = False
        _alive.add(self)

    def mark(self, *, urgent: bool = False) -> None:
        """`urgent` runs the work at once, where much waits to be written."""
        with self._mutex:
            self._due = True
            # After a failure, retry at the usual pace.
            urgent = urgent and not self._failed
            if self._timer is None or (urgent and not self._urgent):
                _timers.cancel(self._timer)
                self._urgent = urgent
                self._timer = _timers.set(self, 0 if urgent else max(DELAY_S, SHARE * self._took_s))

    def flush(self) -> None:
        with self._working:
            with self._mutex:
                due, timer = self._due, self._timer
                self._due, self._urgent, self._timer = False, False, None
            _timers.cancel(timer)
            if due:
                since_s = time.monotonic()
                try:
                    self._work()
                except BaseException:
                    self._due = self._failed = True
                    raise
                self._took_s, self._failed = time.monotonic() - since_s, False

    def fire(self, timer: int) -> None:
        """Run the work, unless a later timer replaced this one."""
        with self._mutex:
            counts = timer == self._timer
        if counts:
            # The commit stands. The flush at the end, or the next command, publishes the documents.
            with suppress(DetentError):
                self.flush()

    def start_anew(self) -> None:
        """Reset in a forked child: due work belongs to the parent, and its locks would stay held."""
        self._mutex, self._working = threading.Lock(), threading.Lock()
        self._due, self._urgent, self._timer = False, False, None


class _Timers:
    def __init__(self) -> None:
        self._times: list[tuple[float, int]] = []
        #: Timer number to its owner; a cancelled timer has none.
        self._for: dict[int | None, WriteBehind] = {}
        self._numbers = count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def set(self, write_behind: WriteBehind, delay_s: float) -> int:
        with self._changed:
            number = next(self._numbers)
            heappush(self._times, (time.monotonic() + delay_s, number))
            self._for[number] = write_behind
            if self._thread is None:
                self._start()
            self._changed.notify()
            return number

    def cancel(self, number: int | None) -> None:
        with self._changed:
            self._for.pop(number, None)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="detent-behind", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            while True:
                number, write_behind = self._next()
                if write_behind is not None:
                    write_behind.fire(number)
                # Drop the reference so that a closed project can be collected.
                del write_behind
        except BaseException:
            # Let the thread report the error as usual, and start another one for the remaining timers.
            with self._changed:
                self._start()
            raise

    def _next(self) -> tuple[int, WriteBehind | None]:
        with self._changed:
            while not self._times or (left_s := self._times[0][0] - time.monotonic()) > 0:
                self._changed.wait(left_s if self._times else None)
            _, number = heappop(self._times)
            return number, self._for.pop(number, None)


_timers = _Timers()


def _anew() -> None:
    global _timers  # noqa: PLW0603 - a process that was forked has no thread
    _timers = _Timers()
    for write_behind in list(_alive):
        write_behind.start_anew()


os.register_at_fork(after_in_child=_anew)


@atexit.register
def _flush_all() -> None:
    # A failure cannot be reported any more; the next command publishes the documents.
    for write_behind in list(_alive):
        with suppress(DetentError, KeyboardInterrupt):
            write_behind.flush()
