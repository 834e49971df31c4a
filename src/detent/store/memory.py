"""The store in memory, with the same contract: for tests, dry runs and tools that only simulate."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Self

from detent.core.session.events import Commit
from detent.errors import Conflict, LockTimeout, NotFound
from detent.store.journal_tail import sum_at_end
from detent.store.line import decode_line, encode_line
from detent.store.port import PROJECT, START, Changes, Cursor, SessionFile, Tail, displaced

if TYPE_CHECKING:
    from detent.store.feed_file import FeedFile, FeedFileReader


class MemoryStore:
    """See `Store` for the contract. Keeps a journal as the lines of its file.

    The content and the directories of the store are removed with the object.
    """

    def __init__(self) -> None:
        self._journals: dict[str, list[bytes]] = {}
        self._documents: dict[str, bytes] = {}
        #: The number of the write that wrote each document.
        self._written: dict[str, int] = {}
        self._writes = 0
        self._executable: set[str] = set()
        self._directory: str | None = None
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def sessions(self) -> list[str]:
        return sorted(self._journals)

    def create(
        self,
        session: str,
        first: Commit,
        rest: Iterable[Commit] = (),
        files: Iterable[tuple[SessionFile, bytes]] = (),
        *,
        beside: Iterable[tuple[str, bytes]] = (),
        seen: int | None = None,
    ) -> Cursor:
        if session in self._journals or (seen is not None and seen != len(self._journals)):
            raise Conflict(f"there is already a session {session}", way_out="choose another --name")
        lines, total = [], START.sum
        for commit in (first, *rest):
            line, total = encode_line(commit, total)
            lines.append(line)
        for file, data in list(files):
            name = f"{session}/{file.name}"
            self.put(name, data)
            if file.executable:
                self._executable.add(name)
        for name, data in beside:
            self.put(name, data)
        self._journals[session] = lines
        return Cursor(len(lines), total)

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

    def back_up(self, session: str) -> None:
        """Nothing outlives the process."""

    def positions(self) -> dict[str, int]:
        return {session: len(lines) for session, lines in sorted(self._journals.items())}

    def may_have_news(self, session: str, version: int) -> bool:
        return len(self._lines(session)) > version

    def waking(self, session: str, wake: Callable[[], object]) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    @property
    def is_shared(self) -> bool:
        return False

    def now(self) -> None:
        """There is no other machine."""
        return

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

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:  # noqa: ARG002 - nothing here is durable
        with self._guard:
            self._writes += 1
            self._documents[name], self._written[name] = data, self._writes
            self._executable.discard(name)

    def swap(self, name: str, before: bytes | None, after: bytes | None) -> bool:
        if self._documents.get(name) != before:
            return False
        if after is None:
            self.delete(name)
        else:
            self.put(name, after)
        return True

    def delete(self, name: str) -> None:
        with self._guard:
            self._documents.pop(name, None)
            self._written.pop(name, None)

    def names(self, prefix: str) -> list[str]:
        return self.changed(prefix).names

    def of_sessions(self, name: str) -> dict[str, bytes]:
        documents = ((session, self.get(f"{session}/{name}")) for session in self.sessions())
        return {session: data for session, data in documents if data is not None}

    def changed(self, prefix: str, since: int = 0) -> Changes:
        with self._guard:
            names = [name for name, at in self._written.items() if at >= since and name.startswith(prefix)]
            mark = self._writes + 1
        return Changes(sorted(name for name in names if "/" not in name[len(prefix) :]), mark)

    def written(self, name: str) -> int:
        return self._written.get(name, 0)

    def session_files(self, session: str) -> list[SessionFile]:
        start = f"{session}/"
        with self._guard:
            names = sorted(name for name in self._documents if name.startswith(start))
        return [SessionFile(name.removeprefix(start), name in self._executable) for name in names]

    def directory(self, name: str) -> str:
        with self._guard:
            if self._directory is None:
                import shutil  # noqa: PLC0415 - only checkpoints and runs need it
                import tempfile  # noqa: PLC0415

                self._directory = os.path.realpath(tempfile.mkdtemp(prefix="detent-memory-"))
                weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
            return os.path.join(self._directory, name)

    def feed_writer(self, session: str) -> "FeedFile":
        from detent.store.feed_file import FeedFile, feed_path  # noqa: PLC0415 - only runs need it

        return FeedFile(feed_path(self, session))

    def feed_reader(self, session: str) -> "FeedFileReader":
        from detent.store.feed_file import FeedFileReader, feed_path  # noqa: PLC0415 - only followers need it

        return FeedFileReader(feed_path(self, session))

    def location(self, name: str) -> str:
        return f"memory:{os.getpid()}-{id(self):x}/{name}".rstrip("/")

    @property
    def repairs(self) -> None:
        """Nothing outside of this process reaches the journals."""
        return

    @property
    def notices(self) -> list[str]:
        """Nothing else can be in the place of a document."""
        return []

    def warnings(self) -> list[tuple[str, str]]:
        return []

    def reopen(self) -> Self:
        return self

    def close(self) -> None:
        """Nothing is held open."""

    def _lines(self, session: str) -> list[bytes]:
        if session not in self._journals:
            raise NotFound(f"there is no session {session}", way_out="detent history lists ended sessions")
        return self._journals[session]
