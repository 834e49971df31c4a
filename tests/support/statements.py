"""Every statement that a process sends to Postgres, counted, and the process killed at a chosen one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Statements:
    """Kills this process right before or right after statement number `number`; 0 only counts."""

    def __init__(self, number: int = 0, *, after: bool = False) -> None:
        self.count = 0
        self._number, self._after = number, after

    def run(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        is_chosen = self.count == self._number
        if is_chosen and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **kwargs)
        if is_chosen:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


@contextmanager
def watching_statements(statements: Statements) -> Iterator[Statements]:
    """Count what goes through cursors, and the ends of transactions."""
    import psycopg

    watched = [
        (psycopg.Cursor, "execute"),
        (psycopg.Cursor, "executemany"),
        (psycopg.Transaction, "__exit__"),
    ]
    original = {(owner, name): getattr(owner, name) for owner, name in watched}
    for (owner, name), call in original.items():
        setattr(owner, name, lambda *args, call=call, **kwargs: statements.run(call, *args, **kwargs))
    try:
        yield statements
    finally:
        for (owner, name), call in original.items():
            setattr(owner, name, call)
