"""Work done shortly after the commit instead of within it, and always before the process ends.

One thread does it for the whole process. Threads keep the memory that they have used to themselves, and in a long
process one for each piece of work would never be done growing.
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
#: Work that takes long is done less often, so that it never takes more than a part of the time.
SHARE = 4

_alive: "weakref.WeakSet[WriteBehind]" = weakref.WeakSet()


class WriteBehind:
    """Runs `work` once, a while after the first `mark()` since its last run, or at once after one that hurries.

    `flush()` runs it now if it is due.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._due = self._urgent = False
        #: The number of the bell that will ring for it, if one was set.
        self._timer: int | None = None
        self._mutex = threading.Lock()
        self._working = threading.Lock()
        self._took_s = 0.0
        self._failed = False
        _alive.add(self)

    def mark(self, *, urgent: bool = False) -> None:
        """`urgent` if so much waits to be written that it is to be written now."""
        with self._mutex:
            self._due = True
            # Where it cannot be done there is no hurry to try again.
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
        """Only the bell that was set last counts."""
        with self._mutex:
            counts = timer == self._timer
        if counts:
            # The commit stands; the documents are brought up to date by the flush at the end or the next command.
            with suppress(DetentError):
                self.flush()

    def start_anew(self) -> None:
        """In a process that was forked: what was due is the other's, and locks that others held stay held."""
        self._mutex, self._working = threading.Lock(), threading.Lock()
        self._due, self._urgent, self._timer = False, False, None


class _Timers:
    def __init__(self) -> None:
        self._times: list[tuple[float, int]] = []
        #: For whom each of them rings; one that was taken back rings for nobody.
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
                # Whoever has it no more is not kept until the next bell.
                del write_behind
        except BaseException:
            # What nobody foresaw is told as any thread tells it; the others are served all the same.
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
    # Nobody is left to be told; the next command brings the documents up to date.
    for write_behind in list(_alive):
        with suppress(DetentError):
            write_behind.flush()
