"""The store in Postgres. See `Store` for the contract, and docs/internals.md for how machines exclude each other.

A commit is one conditional insert: it stands if it follows the commit that its writer has seen, and it finds its place
taken otherwise. The locks of this store exclude the processes of one machine, which share views and files.
"""

import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from detent.core.session.events import Commit
from detent.errors import Conflict, Corrupt, NotFound
from detent.store import disk
from detent.store.files import FileStore
from detent.store.line import decode_line, encode_line
from detent.store.lock import exclusive
from detent.store.port import PROJECT, START, Changes, Cursor, SessionFile, Tail, displaced
from detent.store.postgres import local_journal
from detent.store.postgres.feeds import FeedSender, SharedFeedReader, SharedFeedWriter
from detent.store.postgres.listener import Listener
from detent.store.postgres.migrating import check_schema
from detent.store.postgres.notifier import Notifier
from detent.store.postgres.pool import Pool, pool_of
from detent.store.postgres.projects import add_project
from detent.store.postgres.queries import queries
from detent.store.second_copy import Registration
from detent.store.shared_names import MARKERS, PROJECT_ID, may_be_shared, shared_kind

if TYPE_CHECKING:
    import psycopg

_LOCKS = ".locks"
#: Commits of one answer of the database.
_AT_ONCE = 1_000

#: One a pool, and with it one a process.
_listeners: dict[Pool, Listener] = {}
_notifiers: dict[Pool, Notifier] = {}
_senders: dict[Pool, FeedSender] = {}


class PostgresStore:
    """See `Store` for the contract. `root` is the directory of the views on this machine."""

    def __init__(
        self,
        url: str,
        project: str,
        root: str,
        registration: Registration | None = None,
        *,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        """`tell` gets a line for a person while a call waits for the database."""
        self.url, self.project = url, project
        self.local = FileStore(root)
        self._root = root
        self._registration = registration
        self._tell = tell
        self._statements = queries()
        self._pool: Pool | None = None
        self._ids: tuple[int, str] | None = None
        self._sessions: dict[str, int] = {}
        self._locks: dict[str, tuple[int, threading.Lock]] = {}
        self._process = os.getpid()
        self._guard = threading.Lock()
        self._held = threading.local()

    # Journals

    def sessions(self) -> list[str]:
        return [name for (name,) in self._all("sessions", project=self._project)]

    def positions(self) -> dict[str, int]:
        return {name: version or 0 for name, version in self._all("positions", project=self._project)}

    def back_up(self, session: str) -> None:
        """The database has backups."""

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
        cursor, lines = START, []
        for commit in (first, *rest):
            line, total = encode_line(commit, cursor.sum)
            cursor = Cursor(commit.version, total, cursor.hint + len(line))
            lines.append((commit.version, total, line))
        named = [(f"{session}/{file.name}", data, file.executable) for file, data in files]
        shared = [each for each in named if shared_kind(each[0]) is not None]
        shared += [(name, data, False) for name, data in beside]
        attempt, project = uuid.uuid4(), self._project

        def insert(database: "psycopg.Cursor[Any]") -> int | None:
            with database.connection.transaction():
                ordinal = seen
                if ordinal is None:
                    ((ordinal,),) = database.execute(self._statements["count_sessions"], {"project": project})
                row = database.execute(
                    self._statements["add_session"], {"project": project, "name": session, "ordinal": ordinal + 1}
                ).fetchone()
                if row is None:
                    return self._created(database, session, attempt)
                number = int(row[0])
                database.executemany(
                    self._statements["add_commit"],
                    [
                        {"session": number, "version": version, "sum": total, "line": line, "attempt": attempt}
                        for version, total, line in lines
                    ],
                )
                database.executemany(
                    self._statements["put"],
                    [
                        {"project": project, "name": name, "data": data, "executable": executable}
                        for name, data, executable in shared
                    ],
                )
                return number

        number = self._run(insert)
        while number is None:
            if session in self.sessions() or seen is not None:
                raise Conflict(f"there is already a session {session}", way_out="choose another --name")
            number = self._run(insert)
        self._sessions[session] = number
        self._keep_files([*((name, data) for name, data, _ in named), *beside], {n for n, _, x in named if x})
        local_journal.add_lines(self._root, session, START, [line for _, _, line in lines], cursor)
        self._notify(number, cursor.version)
        return cursor

    def read(self, session: str, after: Cursor, limit: int = 5_000) -> Tail:
        rows, more = self._rows(session, after, limit)
        version, total, offset = after
        commits: list[Commit] = []
        for _, _, line in rows:
            commit, total = decode_line(line, total, version + 1, session)
            commits.append(commit)
            version, offset = version + 1, offset + len(line)
        end = Cursor(version, total, offset)
        if self._is_holding(session) and not more:
            self._keep_lines(session, after, [line for _, _, line in rows], end)
        return Tail(commits, end, 0, more)

    def append(self, session: str, after: Cursor, commit: Commit) -> Cursor:
        number, attempt = self._number(session), uuid.uuid4()
        line, total = encode_line(commit, after.sum)
        values = {
            "session": number,
            "after": after.version,
            "before": after.sum,
            "sum": total,
            "line": line,
            "attempt": attempt,
        }

        def insert(database: "psycopg.Cursor[Any]") -> bool:
            if database.execute(self._statements["append"], values).rowcount == 1:
                return True
            # The answer to an earlier try may be lost.
            place = {"session": number, "version": commit.version}
            row = database.execute(self._statements["attempt"], place).fetchone()
            return row is not None and row[0] == attempt

        if not self._run(insert):
            self._rows(session, after, 0)
            raise Conflict(
                f"{session} is at version {after.version + 1} or later, not at {after.version}",
                way_out="look at it again with detent status, then repeat the command",
            )
        end = Cursor(commit.version, total, after.hint + len(line))
        self._keep_lines(session, after, [line], end)
        self._notify(number, end.version)
        return end

    def may_have_news(self, session: str, version: int) -> bool:
        return self._listener.may_have_news(self._number(session), version)

    def waking(self, session: str, wake: Callable[[], object]) -> AbstractContextManager[None]:
        return self._listener.waking(self._number(session), wake)

    @property
    def _listener(self) -> Listener:
        pool = self._open()
        return _listeners.get(pool) or _listeners.setdefault(pool, Listener(pool))

    @property
    def is_shared(self) -> bool:
        return True

    def now(self) -> datetime:
        ((now,),) = self._all("now")
        moment: datetime = now
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    # Locks: of this machine

    @contextmanager
    def lock(self, name: str, *, wait_s: float = 10.0, meanwhile: Callable[[], object] | None = None) -> Iterator[None]:
        if name == PROJECT:
            self._prepare_directory()
            held = self.local.lock(PROJECT, wait_s=wait_s, meanwhile=meanwhile)
        else:
            self._number(name)
            fd, threads = self._lock_file(name)
            held = exclusive(fd, threads, wait_s=wait_s, what=name, meanwhile=meanwhile)
        with held:
            before = self._holding
            self._held.names = before | {name}
            try:
                yield
            finally:
                self._held.names = before

    # Documents

    def get(self, name: str) -> bytes | None:
        if name == PROJECT_ID:
            return self._identity()[1].encode()
        if shared_kind(name) is None:
            return self.local.get(name)
        row = self._first("get", project=self._project, name=name)
        if row is not None:
            return bytes(row[0])
        kind = shared_kind(name)
        # A text that an agent wrote by its path is shared when a command next writes it.
        return self.local.get(name) if kind is not None and kind.is_file_too and kind.prefix != MARKERS else None

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        if shared_kind(name) is None:
            self.local.put(name, data, durable=durable)
            return
        self._change("put", project=self._project, name=name, data=data, executable=False)
        self._keep_files([(name, data)])

    def swap(self, name: str, before: bytes | None, after: bytes | None) -> bool:
        if shared_kind(name) is None:
            return self.local.swap(name, before, after)
        if before is None and after is None:
            return self.get(name) is None
        statement = "put_new" if before is None else "delete_same" if after is None else "put_over"
        values = {"project": self._project, "name": name, "data": after, "before": before}

        def change(database: "psycopg.Cursor[Any]") -> bool:
            if database.execute(self._statements[statement], values).rowcount == 1:
                return True
            # The answer to an earlier try may be lost. Whoever wrote the same bytes wanted the same.
            row = database.execute(self._statements["get"], values).fetchone()
            return row is not None and after is not None and bytes(row[0]) == after

        is_done: bool = self._run(change)
        if is_done and after is not None:
            self._keep_files([(name, after)])
        elif is_done:
            self._remove_file(name)
        return is_done

    def delete(self, name: str) -> None:
        if shared_kind(name) is None:
            self.local.delete(name)
            return
        self._change("delete", project=self._project, name=name)
        self._remove_file(name)

    def names(self, prefix: str) -> list[str]:
        if not may_be_shared(prefix):
            return self.local.names(prefix)
        shared = [name for name, _ in self._shared(prefix) if "/" not in name[len(prefix) :]]
        local = self.local.names(prefix)
        if prefix == MARKERS:
            self._keep_markers(shared, local)
            return shared
        return sorted({*shared, *(name for name in local if not name.startswith(MARKERS))})

    def of_sessions(self, name: str) -> dict[str, bytes]:
        kind = shared_kind(f"WFS-each/{name}")
        if kind is not None and not kind.is_file_too:
            rows = self._all("of_sessions", project=self._project, name=name)
        else:
            rows = [(session, self.get(f"{session}/{name}")) for session in self.sessions()]
        return {session: bytes(data) for session, data in rows if data is not None}

    def changed(self, prefix: str, since: int = 0) -> Changes:
        names, mark = self.local.changed(prefix, since)
        if not may_be_shared(prefix):
            return Changes(names, mark)
        # Only marks of files are compared: a shared document may always have changed.
        return Changes(self.names(prefix), mark)

    def written(self, name: str) -> int:
        if shared_kind(name) is None:
            return self.local.written(name)
        row = self._first("written", project=self._project, name=name)
        return int(row[0]) if row is not None else 0

    def session_files(self, session: str) -> list[SessionFile]:
        files = {file.name: file for file in self.local.session_files(session)}
        for name, executable in self._shared(f"{session}/"):
            inside = name.removeprefix(f"{session}/")
            files[inside] = SessionFile(inside, executable)
        return sorted(files.values())

    def directory(self, name: str) -> str:
        return self.local.directory(name)

    def feed_writer(self, session: str) -> SharedFeedWriter:
        file, pool = self.local.feed_writer(session), pool_of(self.url)
        sender = _senders.get(pool) or _senders.setdefault(pool, FeedSender(pool))
        return SharedFeedWriter(file, sender, lambda: self._number(session))

    def feed_reader(self, session: str) -> SharedFeedReader:
        def read(after: int, limit: int) -> list[tuple[int, bytes]]:
            return self._all("told", session=self._number(session), after=after, limit=limit)

        return SharedFeedReader(read)

    def location(self, name: str) -> str:
        kind = shared_kind(name)
        if kind is None or kind.is_file_too:
            return self.local.location(name)
        return f"{self._open().name}/{self.project}/{name}"

    @property
    def notices(self) -> list[str]:
        return self.local.notices

    @property
    def repairs(self) -> None:
        """The database has its own backups."""
        return

    def warnings(self) -> list[tuple[str, str]]:
        ((may_change, is_synced),) = self._all("safety")
        problems = []
        if may_change:
            message = f"the role of {self._open().name} may change and remove commits"
            problems.append((message, "connect with a role that has only what detent store roles gives"))
        if not is_synced:
            message = f"{self._open().name} acknowledges commits before they are on disk"
            problems.append((message, "set fsync and synchronous_commit to on"))
        return problems

    def reopen(self) -> "PostgresStore":
        return PostgresStore(self.url, self.project, self._root, self._registration, tell=self._tell)

    def close(self) -> None:
        self.local.close()
        if self._pool is not None and self._pool in _notifiers:
            _notifiers[self._pool].flush()
        with self._guard:
            while self._locks:
                os.close(self._locks.popitem()[1][0])

    # The database

    def _open(self) -> Pool:
        if self._pool is None or self._pool is not pool_of(self.url):
            pool = pool_of(self.url)
            pool.tell = self._tell
            check_schema(pool)
            self._pool = pool
        return self._pool

    def _identity(self) -> tuple[int, str]:
        if self._ids is None:
            row = self._first("project", name=self.project)
            if row is None and self._is_package_of_a_project():
                add_project(self._open(), self.project)
                row = self._first("project", name=self.project)
            if row is None:
                raise NotFound(
                    f"{self._open().name} has no project {self.project}",
                    way_out="detent init --store URL adds it; or correct [store] in detent.toml",
                )
            self._ids = (int(row[0]), str(row[1]))
        return self._ids

    def _is_package_of_a_project(self) -> bool:
        whole, _, package = self.project.partition("/")
        return bool(package) and self._first("project", name=whole) is not None

    @property
    def _project(self) -> int:
        return self._identity()[0]

    def _run(self, action: "Callable[[psycopg.Cursor[Any]], Any]") -> Any:
        return self._open().run(action)

    def _all(self, statement: str, **values: object) -> list[Any]:
        text = self._statements[statement]
        rows: list[Any] = self._run(lambda database: database.execute(text, values or None).fetchall())
        return rows

    def _first(self, statement: str, **values: object) -> Any:
        rows = self._all(statement, **values)
        return rows[0] if rows else None

    def _change(self, statement: str, **values: object) -> None:
        text = self._statements[statement]
        self._run(lambda database: database.execute(text, values))

    def _shared(self, prefix: str) -> list[tuple[str, bool]]:
        return self._all("names", project=self._project, prefix=prefix)

    def _number(self, session: str) -> int:
        number = self._sessions.get(session)
        if number is None:
            row = self._first("session", project=self._project, name=session)
            if row is None:
                raise NotFound(f"there is no session {session}", way_out="detent history lists ended sessions")
            number = self._sessions[session] = int(row[0])
        return number

    def _created(self, database: "psycopg.Cursor[Any]", session: str, attempt: uuid.UUID) -> int | None:
        """The session if an earlier try of this call created it; its answer was lost."""
        row = database.execute(self._statements["session"], {"project": self._project, "name": session}).fetchone()
        if row is None:
            return None
        place = {"session": row[0], "version": 1}
        written = database.execute(self._statements["attempt"], place).fetchone()
        return int(row[0]) if written is not None and written[0] == attempt else None

    def _rows(self, session: str, after: Cursor, limit: int) -> tuple[list[tuple[int, str, bytes]], bool]:
        """The rows behind a position, and whether more follow. `Corrupt` if it is no position of the journal."""
        wanted = min(limit, _AT_ONCE)
        overlap = 1 if after.version else 0
        rows = self._all("read", session=self._number(session), after=after.version, limit=wanted + 1 + overlap)
        if overlap:
            if not rows or (rows[0][0], rows[0][1]) != (after.version, after.sum):
                raise displaced(session, after)
            rows = rows[1:]
        if rows and rows[0][0] != after.version + 1:
            raise Corrupt(f"the journal of {session} lacks commit {after.version + 1}")
        return rows[:wanted], len(rows) > wanted

    def _notify(self, session: int, version: int) -> None:
        pool = self._open()
        notifier = _notifiers.get(pool) or _notifiers.setdefault(pool, Notifier(pool))
        notifier.tell(session, version)

    # This machine

    @property
    def _holding(self) -> frozenset[str]:
        return getattr(self._held, "names", frozenset())

    def _is_holding(self, session: str) -> bool:
        return bool(self._holding & {PROJECT, session})

    def _keep_lines(self, session: str, after: Cursor, lines: Sequence[bytes], end: Cursor) -> None:
        if not local_journal.add_lines(self._root, session, after, lines, end):
            local_journal.catch_up(self._root, session, lambda cursor: self._lines(session, cursor), end)

    def _lines(self, session: str, after: Cursor) -> local_journal.Lines:
        rows, more = self._rows(session, after, _AT_ONCE)
        lines = [bytes(line) for _, _, line in rows]
        end = Cursor(rows[-1][0], rows[-1][1], after.hint + sum(map(len, lines))) if rows else after
        return lines, end, more

    def _keep_files(self, documents: Iterable[tuple[str, bytes]], executable: Iterable[str] = ()) -> None:
        """Write the files of documents: views, and those shared ones that programs of this machine read."""
        for name, data in documents:
            kind = shared_kind(name)
            if kind is None or kind.is_file_too:
                self.local.put(name, data)
                if name in executable:
                    os.chmod(self.local.location(name), 0o700)

    def _remove_file(self, name: str) -> None:
        kind = shared_kind(name)
        if kind is not None and kind.is_file_too:
            self.local.delete(name)

    def _keep_markers(self, shared: Sequence[str], local: Sequence[str]) -> None:
        """Bring the marker files that hooks read in line, while no other command of this machine does."""
        if PROJECT not in self._holding or list(shared) == list(local):
            return
        for name in {*local} - {*shared}:
            self.local.delete(name)
        for name in {*shared} - {*local}:
            self.local.put(name, self.get(name) or b"")

    def _prepare_directory(self) -> None:
        if not os.path.isdir(self._root):
            # A clone is used without `detent init`.
            top = self._registration.state if self._registration is not None else self._root
            is_new = not os.path.isdir(top)
            with disk.failing_as("create", self._root):
                disk.make_directory(self._root)
                if is_new:
                    disk.replace(os.path.join(top, ".gitignore"), b"*\n")
        if self._registration is not None:
            self._registration.register()

    def _lock_file(self, session: str) -> tuple[int, threading.Lock]:
        with self._guard:
            if self._process != os.getpid():
                # A forked child shares the parent's descriptors and with them its locks: open its own.
                self._locks, self._process = {}, os.getpid()
            if session not in self._locks:
                directory = self.local.directory(_LOCKS)
                with disk.failing_as("lock", directory):
                    disk.make_directory(directory)
                    self._locks[session] = (disk.open_lock(os.path.join(directory, session)), threading.Lock())
            return self._locks[session]
