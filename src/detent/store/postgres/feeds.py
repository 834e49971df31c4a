"""The feeds of runs in the database, so that every machine can follow a run.

A run writes its feed into a file of its machine and hands the lines to a thread, which sends them in batches. The
thread uses one connection, and a database that is slow or away costs the run nothing: lines that wait too long are
dropped, and the head of the feed lets a reader go on. Nothing is decided by a feed, so its commits are not synced.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from detent.errors import Conflict, DetentError
from detent.store.feed_file import FeedFile
from detent.store.postgres.pool import Pool
from detent.store.postgres.queries import queries

if TYPE_CHECKING:
    import psycopg

#: Time between two batches, and between two looks of a reader.
PAUSE_S, LOOK_S = 0.5, 0.5
#: Limits in bytes: a batch, the lines that wait for the database, the feed of a session without its heads.
MAX_BATCH, MAX_WAITING, MAX_BYTES = 256 * 1024, 1024 * 1024, 1024 * 1024
#: Days after which a feed is removed.
KEEP_DAYS = 7
#: A feed that is closed waits this long for its last batch.
CLOSE_S = 2.0
#: Batches of one answer of the database.
_AT_ONCE = 500
#: Batches of a writer after which the feed is shortened.
_SHORTEN_AFTER = 50
#: The thread ends when nothing was told for this long.
_IDLE_S = 5.0
#: Tries of a batch that other writers overtake.
_TRIES = 20


class _Batch(NamedTuple):
    number: int
    lines: bytes
    #: The lines for a later reader, if they differ from those that were sent last.
    head: bytes
    starts: bool


class FeedSender:
    """One thread a process and database."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        #: Whether the last batch could not be sent.
        self.is_failing = False
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._waiting: set[SharedFeedWriter] = set()
        self._thread: threading.Thread | None = None

    def wake(self, writer: "SharedFeedWriter") -> None:
        with self._changed:
            self._waiting.add(writer)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="detent-feeds", daemon=True)
                self._thread.start()
            self._changed.notify()

    def finish(self, writer: "SharedFeedWriter") -> None:
        """Wait a little until all lines of the writer are sent."""
        deadline_s = time.monotonic() + CLOSE_S
        while writer.has_lines and not self.is_failing and time.monotonic() < deadline_s:
            self.wake(writer)
            self._hurry.set()
            writer.sent.wait(deadline_s - time.monotonic())

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._changed.wait(_IDLE_S):
                    self._thread = None
                    return
                writers, self._waiting = self._waiting, set()
            for writer in writers:
                self.is_failing = not writer.send()
                if self.is_failing:
                    self.wake(writer)
            # Not the condition: a burst of lines is sent at once.
            self._hurry.wait(PAUSE_S)
            self._hurry.clear()


class SharedFeedWriter:
    """See `FeedWriter` for the contract."""

    def __init__(self, file: FeedFile, sender: FeedSender, session: Callable[[], int]) -> None:
        """`session` asks for the number of the session, which may need the database."""
        self._file, self._sender, self._session = file, sender, session
        self._id = uuid.uuid4()
        self._guard, self._sending = threading.Lock(), threading.Lock()
        self._lines: list[bytes] = []
        self._size = 0
        self._starts = False
        self._head: Sequence[bytes] = ()
        self._sent_head = b""
        #: The batch that is being sent; it stays the same until it is there.
        self._batch: _Batch | None = None
        self._count = 0
        #: Set when all lines were sent.
        self.sent = threading.Event()

    @property
    def has_lines(self) -> bool:
        return bool(self._lines) or self._batch is not None

    def write(self, line: bytes, *, starts: bool, head: Sequence[bytes]) -> None:
        self._file.write(line, starts=starts, head=head)
        with self._guard:
            self.sent.clear()
            if starts or self._size + len(line) > MAX_WAITING:
                self._lines, self._size = [], 0
            self._lines.append(line)
            self._size += len(line)
            self._starts, self._head = self._starts or starts, head
        if starts:
            # At once: what workers on other machines tell of this run must come after it.
            self.send()
        else:
            self._sender.wake(self)

    def close(self) -> None:
        self._file.close()
        self._sender.finish(self)

    def send(self) -> bool:
        """Send what waits; False if that failed. It is then tried again."""
        with self._sending:
            while batch := self._next():
                try:
                    self._sender.pool.run(partial(self._insert, self._session(), batch), wait_s=0)
                except DetentError:
                    return False
                self._sent_head, self._batch = batch.head or self._sent_head, None
            self.sent.set()
            return True

    def _next(self) -> _Batch | None:
        with self._guard:
            if self._batch is None and self._lines:
                size, count = 0, 0
                for line in self._lines:
                    if count and size + len(line) > MAX_BATCH:
                        break
                    size, count = size + len(line), count + 1
                lines, self._lines = self._lines[:count], self._lines[count:]
                self._size -= size
                head = b"".join(self._head)
                is_same = head == self._sent_head or len(head) > MAX_BATCH
                self._count += 2
                self._batch = _Batch(self._count, b"".join(lines), b"" if is_same else head, self._starts)
                self._starts = False
            return self._batch

    def _insert(self, session: int, batch: _Batch, database: "psycopg.Cursor[Any]") -> None:
        statements = queries()
        with database.connection.transaction():
            values = {"session": session, "writer": self._id, "number": batch.number}
            if database.execute(statements["has_told"], values).fetchone() is not None:
                # The answer to an earlier try was lost.
                return
            database.execute(statements["not_synced"])
            place = self._tell(database, session, batch.number, batch.lines, is_head=False)
            if batch.starts:
                database.execute(statements["remove_earlier"], {"session": session, "position": place})
                database.execute(statements["remove_old"], {"days": KEEP_DAYS})
            if batch.head:
                place = self._tell(database, session, batch.number + 1, batch.head, is_head=True)
                values = {"session": session, "writer": self._id, "position": place}
                database.execute(statements["remove_heads"], values)
            if batch.number // 2 % _SHORTEN_AFTER == 0 or len(batch.lines) * 2 > MAX_BATCH:
                database.execute(statements["remove_longest_ago"], {"session": session, "limit": MAX_BYTES})

    def _tell(self, database: "psycopg.Cursor[Any]", session: int, number: int, lines: bytes, *, is_head: bool) -> int:
        """Add a row; returns its position."""
        values = {"session": session, "writer": self._id, "number": number, "is_head": is_head, "lines": lines}
        for _ in range(_TRIES):
            row = database.execute(queries()["tell"], values).fetchone()
            if row is not None:
                return int(row[0])
        raise Conflict(f"{_TRIES} other writers told at the same moment")


class SharedFeedReader:
    """See `FeedReader` for the contract."""

    def __init__(self, read: Callable[[int, int], list[tuple[int, bytes]]]) -> None:
        """`read` returns the batches behind a position, at most as many as asked for."""
        self._read = read
        self._after = 0
        self._next_s = 0.0

    def read(self) -> Iterator[bytes]:
        if time.monotonic() < self._next_s:
            return
        more = True
        while more:
            batches = self._read(self._after, _AT_ONCE)
            more = len(batches) == _AT_ONCE
            for position, lines in batches:
                self._after = position
                yield from bytes(lines).split(b"\n")[:-1]
        self._next_s = time.monotonic() + LOOK_S

    def close(self) -> None:
        """Nothing is open between two looks."""
