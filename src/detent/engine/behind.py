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

_alive: "weakref.WeakSet[Behind]" = weakref.WeakSet()


class Behind:
    """Runs `work` once, a while after the first `mark()` since its last run, or at once after one that hurries.

    `flush()` runs it now if it is due.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._due = self._hurries = False
        #: The number of the bell that will ring for it, if one was set.
        self._bell: int | None = None
        self._mutex = threading.Lock()
        self._working = threading.Lock()
        self._took_s = 0.0
        self._failed = False
        _alive.add(self)

    def mark(self, *, hurries: bool = False) -> None:
        """`hurries` if so much waits to be written that it is to be written now."""
        with self._mutex:
            self._due = True
            # Where it cannot be done there is no hurry to try again.
            hurries = hurries and not self._failed
            if self._bell is None or (hurries and not self._hurries):
                _bells.take_back(self._bell)
                self._hurries = hurries
                self._bell = _bells.set(self, 0 if hurries else max(DELAY_S, SHARE * self._took_s))

    def flush(self) -> None:
        with self._working:
            with self._mutex:
                due, bell = self._due, self._bell
                self._due, self._hurries, self._bell = False, False, None
            _bells.take_back(bell)
            if due:
                since_s = time.monotonic()
                try:
                    self._work()
                except BaseException:
                    self._due = self._failed = True
                    raise
                self._took_s, self._failed = time.monotonic() - since_s, False

    def ring(self, bell: int) -> None:
        """Only the bell that was set last counts."""
        with self._mutex:
            counts = bell == self._bell
        if counts:
            # The commit stands; the documents are brought up to date by the flush at the end or the next command.
            with suppress(DetentError):
                self.flush()

    def start_anew(self) -> None:
        """In a process that was forked: what was due is the other's, and locks that others held stay held."""
        self._mutex, self._working = threading.Lock(), threading.Lock()
        self._due, self._hurries, self._bell = False, False, None


class _Bells:
    def __init__(self) -> None:
        self._times: list[tuple[float, int]] = []
        #: For whom each of them rings; one that was taken back rings for nobody.
        self._for: dict[int | None, Behind] = {}
        self._numbers = count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def set(self, behind: Behind, delay_s: float) -> int:
        with self._changed:
            number = next(self._numbers)
            heappush(self._times, (time.monotonic() + delay_s, number))
            self._for[number] = behind
            if self._thread is None:
                self._start()
            self._changed.notify()
            return number

    def take_back(self, number: int | None) -> None:
        with self._changed:
            self._for.pop(number, None)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._ring, name="detent-behind", daemon=True)
        self._thread.start()

    def _ring(self) -> None:
        try:
            while True:
                number, behind = self._next()
                if behind is not None:
                    behind.ring(number)
                # Whoever has it no more is not kept until the next bell.
                del behind
        except BaseException:
            # What nobody foresaw is told as any thread tells it; the others are served all the same.
            with self._changed:
                self._start()
            raise

    def _next(self) -> tuple[int, Behind | None]:
        with self._changed:
            while not self._times or (left_s := self._times[0][0] - time.monotonic()) > 0:
                self._changed.wait(left_s if self._times else None)
            _, number = heappop(self._times)
            return number, self._for.pop(number, None)


_bells = _Bells()


def _anew() -> None:
    global _bells  # noqa: PLW0603 - a process that was forked has no thread
    _bells = _Bells()
    for behind in list(_alive):
        behind.start_anew()


os.register_at_fork(after_in_child=_anew)


@atexit.register
def _flush_all() -> None:
    # Nobody is left to be told; the next command brings the documents up to date.
    for behind in list(_alive):
        with suppress(DetentError):
            behind.flush()
