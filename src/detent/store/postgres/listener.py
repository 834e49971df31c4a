"""Hears of commits: one connection a process and database that listens, while anything asks for news.

A message is a session and a version, nothing else. It may be lost: a connection that broke, a pooler that does not
pass messages on. So a silent listener only saves work for `POLL_S`; then the journal is read whatever it says.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from detent.store.postgres.pool import Pool
from detent.store.postgres.queries import queries

if TYPE_CHECKING:
    import psycopg

#: A journal is read again after this long without a message.
POLL_S = 1.0
_RECONNECT_S = 1.0
#: The thread ends when nothing has asked for this long.
_IDLE_S = 30.0
_SLICE_S = 0.5


class Listener:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._guard = threading.Lock()
        self._heard: dict[int, int] = {}
        self._looked_s: dict[int, float] = {}
        self._thread: threading.Thread | None = None
        self._is_listening = False
        self._asked_s = 0.0
        self._wakes: list[tuple[int, Callable[[], object]]] = []

    def may_have_news(self, session: int, version: int) -> bool:
        """Whether commits may follow `version`; False only if a listener that works has heard of none."""
        now_s = time.monotonic()
        with self._guard:
            self._asked_s = now_s
            self._start()
            is_silent = self._is_listening and self._heard.get(session, 0) <= version
            if is_silent and now_s - self._looked_s.get(session, 0.0) < POLL_S:
                return False
            self._looked_s[session] = now_s
            return True

    @contextmanager
    def waking(self, session: int, wake: Callable[[], object]) -> Iterator[None]:
        """While it is open, `wake` is called in the thread of the listener for each message about the session."""
        with self._guard:
            self._wakes.append((session, wake))
            self._start()
        try:
            yield
        finally:
            with self._guard:
                self._wakes.remove((session, wake))

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._listen, name="detent-listener", daemon=True)
            self._thread.start()

    def _listen(self) -> None:
        import psycopg  # noqa: PLC0415

        while self._is_wanted():
            try:
                with self._pool.connect() as connection:
                    connection.execute(queries()["listen"])
                    with self._guard:
                        # Whatever was missed before is read once.
                        self._looked_s.clear()
                        self._is_listening = True
                    while self._is_wanted():
                        self._hear(connection)
            except psycopg.Error:
                time.sleep(_RECONNECT_S)
            finally:
                with self._guard:
                    self._is_listening = False

    def _hear(self, connection: "psycopg.Connection[Any]") -> None:
        for message in connection.notifies(timeout=_SLICE_S):
            session, _, version = message.payload.partition(" ")
            wakes: list[Callable[[], object]] = []
            with suppress(ValueError), self._guard:
                number = int(session)
                self._heard[number] = max(self._heard.get(number, 0), int(version))
                wakes += [wake for which, wake in self._wakes if which == number]
            for wake in wakes:
                wake()

    def _is_wanted(self) -> bool:
        with self._guard:
            return bool(self._wakes) or time.monotonic() - self._asked_s < _IDLE_S
