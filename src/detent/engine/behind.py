"""Work done shortly after the commit instead of within it, and always before the process ends."""

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress

from detent.errors import DetentError

DELAY_S = 0.5
#: Work that takes long is done less often, so that it never takes more than a part of the time.
SHARE = 4

_alive: "weakref.WeakSet[Behind]" = weakref.WeakSet()


class Behind:
    """Runs `work` once, a while after the first `mark()` since its last run; `flush()` runs it now if it is due."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._due = False
        self._timer: threading.Timer | None = None
        self._mutex = threading.Lock()
        self._working = threading.Lock()
        self._took_s = 0.0
        _alive.add(self)

    def mark(self) -> None:
        with self._mutex:
            self._due = True
            if self._timer is None:
                self._timer = threading.Timer(max(DELAY_S, SHARE * self._took_s), self._quietly)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        with self._working:
            with self._mutex:
                due, timer, self._due, self._timer = self._due, self._timer, False, None
            if timer is not None:
                timer.cancel()
            if due:
                since_s = time.monotonic()
                try:
                    self._work()
                except BaseException:
                    self._due = True
                    raise
                self._took_s = time.monotonic() - since_s

    def _quietly(self) -> None:
        # The commit stands; the documents are brought up to date by the flush at the end or the next command.
        with suppress(DetentError):
            self.flush()


@atexit.register
def _flush_all() -> None:
    # Nobody is left to be told; the next command brings the documents up to date.
    for behind in list(_alive):
        with suppress(DetentError):
            behind.flush()
