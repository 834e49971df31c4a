"""Tells listeners of commits, behind the commits themselves.

Postgres writes messages one transaction after another, so a message within a commit would make all commits of the
database wait in a row. A thread sends the latest version of each session, at most once in `PAUSE_S`; the last ones
are sent when the store is closed.
"""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from detent.errors import StoreFailed
from detent.store.postgres.pool import Pool
from detent.store.postgres.queries import queries

if TYPE_CHECKING:
    import psycopg

PAUSE_S = 0.02
#: The thread ends when nothing was committed for this long.
_IDLE_S = 5.0


class Notifier:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._changed = threading.Condition()
        self._waiting: dict[int, int] = {}
        self._thread: threading.Thread | None = None

    def tell(self, session: int, version: int) -> None:
        with self._changed:
            self._waiting[session] = version
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="detent-notifier", daemon=True)
                self._thread.start()
            self._changed.notify()

    def flush(self) -> None:
        """Send what waits, now."""
        with self._changed:
            waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        # The commits stand; a listener that does not hear of them reads them a second later.
        with suppress(StoreFailed):
            self._pool.run(lambda database: _send(database, waiting), wait_s=0)

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._changed.wait(_IDLE_S):
                    self._thread = None
                    return
            self.flush()
            # Not the condition: a burst of commits is told once.
            threading.Event().wait(PAUSE_S)


def _send(database: "psycopg.Cursor[Any]", versions: dict[int, int]) -> None:
    for session, version in versions.items():
        database.execute(queries()["notify"], {"payload": f"{session} {version}"})
