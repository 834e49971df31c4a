"""Whether a worker reaches the journals. One that does not sends no heartbeats and takes no work: others take over."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.engine.project import Project

#: Parts of a heartbeat: between two questions, and after which a store that has not answered counts as lost.
_ASKED, _LOST = 10, 4


class Reach:
    """Asks the store at intervals, on a thread of its own: a question to a store that is cut off may not return."""

    def __init__(self, opened: "Callable[[], AbstractContextManager[Project]]", heartbeat_s: float) -> None:
        self._opened, self._pause_s, self._limit_s = opened, heartbeat_s / _ASKED, heartbeat_s / _LOST
        self._answered_s, self._is_shared = time.monotonic(), True
        self._over = threading.Event()
        threading.Thread(target=self._ask, name="reach", daemon=True).start()

    def is_there(self) -> bool:
        return not self._is_shared or time.monotonic() - self._answered_s < self._limit_s + self._pause_s

    def close(self) -> None:
        self._over.set()

    def _ask(self) -> None:
        while not self._over.is_set():
            with suppress(DetentError), self._opened() as project:
                self._is_shared = project.store.is_shared
                while self._is_shared and not self._over.wait(self._pause_s):
                    project.store.now()
                    self._answered_s = time.monotonic()
                return
            self._over.wait(self._pause_s)
