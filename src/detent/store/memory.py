"""The store in memory, with the same contract: for tests, dry runs and tools that only simulate."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from detent.core.events import Commit
from detent.errors import Conflict, LockTimeout, NotFound
from detent.store.line import decode_line, encode_line, sum_at_end
from detent.store.port import PROJECT, START, Cursor, Tail, displaced


class MemoryStore:
    """See `Store` for the contract. Keeps the journal as the lines a file would have."""

    def __init__(self) -> None:
        self._journals: dict[str, list[bytes]] = {}
        self._documents: dict[str, bytes] = {}
        self._locks: dict[str, threading.Lock] = {}

    def sessions(self) -> list[str]:
        return sorted(self._journals)

    def create(self, session: str, first: Commit) -> Cursor:
        if session in self._journals:
            raise Conflict(f"there is already a session {session}", way_out="choose another --name")
        line, total = encode_line(first, START.sum)
        self._journals[session] = [line]
        return Cursor(first.version, total)

    def read(self, session: str, after: Cursor, limit: int = 5_000) -> Tail:
        lines = self._lines(session)
        version, total, _ = after
        if version and (version > len(lines) or sum_at_end(lines[version - 1]) != total):
            raise displaced(session, after)
        commits = []
        for line in lines[version : version + limit]:
            commit, total = decode_line(line, total, version + 1, session)
            commits.append(commit)
            version += 1
        return Tail(commits, Cursor(version, total), 0, more=version < len(lines))

    def append(self, session: str, after: Cursor, commit: Commit) -> Cursor:
        lines = self._lines(session)
        if len(lines) != after.version:
            raise Conflict(
                f"{session} is at version {len(lines)}, not at {after.version}",
                way_out="look at it again with detent status, then repeat the command",
            )
        line, total = encode_line(commit, after.sum)
        lines.append(line)
        return Cursor(commit.version, total)

    @contextmanager
    def lock(
        self,
        name: str,
        *,
        wait_s: float = 10.0,
        meanwhile: Callable[[], object] | None = None,  # noqa: ARG002 - nothing to catch up with between threads
    ) -> Iterator[None]:
        if name != PROJECT:
            self._lines(name)
        lock = self._locks.setdefault(name, threading.Lock())
        if not lock.acquire(timeout=wait_s):
            raise LockTimeout(f"{name or 'the project'} is locked; gave up after {wait_s:g} s")
        try:
            yield
        finally:
            lock.release()

    def get(self, name: str) -> bytes | None:
        return self._documents.get(name)

    def put(self, name: str, data: bytes) -> None:
        self._documents[name] = data

    def delete(self, name: str) -> None:
        self._documents.pop(name, None)

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._documents if name.startswith(prefix))

    def close(self) -> None:
        """Nothing is held open."""

    def _lines(self, session: str) -> list[bytes]:
        if session not in self._journals:
            raise NotFound(f"there is no session {session}", way_out="detent history lists what there was")
        return self._journals[session]
