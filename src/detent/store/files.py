"""The store on a file system: `.workflow/`, one directory per session.

Commit rule: append one line to `journal.jsonl` and sync it. All other files of the directory can be rebuilt from it.
"""

import errno
import os
import stat
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain
from typing import TYPE_CHECKING

from detent.core.session.events import Commit
from detent.errors import Conflict, Corrupt, LockTimeout, NotFound, StoreFailed
from detent.store import disk
from detent.store.journal_tail import JOURNAL, SUM_TAIL, is_at, sum_at_end
from detent.store.line import decode_line, encode_line, verified_sum
from detent.store.lock import exclusive
from detent.store.port import PROJECT, START, Changes, Cursor, SessionFile, Tail, displaced
from detent.store.second_copy import SecondCopies

if TYPE_CHECKING:
    from detent.store.feed_file import FeedFile, FeedFileReader
    from detent.store.repairs import Repairs

_LOCK_FILE = ".lock"
_UNFINISHED = ".new-"
#: Errors of a read that say that no readable file is in the place of a document.
_IN_THE_WAY = (errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.EACCES, errno.ENXIO)
_FIRST_CHUNK, _CHUNK = 1 << 14, 1 << 20
#: File systems store times in ticks: a file changed this long before a mark may carry the time of the mark.
_TICK_NS = 20_000_000


#: How often this process and its ancestors were forked. Cheaper than asking for the process id at every call.
_forks = 0


def _count_fork() -> None:
    global _forks  # noqa: PLW0603 - one process, one number
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class _Open:
    """An open file, with the lock that excludes the threads of this process."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.threads = allocate_lock()


class FileStore:
    """See `Store` for the contract."""

    def __init__(self, root: str, copies: SecondCopies | None = None) -> None:
        self.root = root
        self._copies = copies
        self._open: dict[str, _Open] = {}
        self._opening = allocate_lock()
        #: Journals that were replaced by another file, which is not yet compared with the commits read before.
        self._replaced: set[str] = set()
        self._forks = _forks
        #: For a person; none of them stopped anything.
        self.notices: list[str] = []
        #: Names of documents in whose place something else is.
        self._in_the_way: set[str] = set()

    def sessions(self) -> list[str]:
        try:
            entries = os.listdir(self.root)
        except FileNotFoundError:
            entries = []
        present = [name for name in entries if name.startswith("WFS-") and os.path.exists(self._path(name, JOURNAL))]
        # A session whose journal is gone is still a session: it can be brought back.
        return sorted({*present, *(self._copies.sessions() if self._copies else ())})

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
        path = self._path(session)
        exists = os.path.lexists(path) or (self._copies and session in self._copies.sessions())
        if exists or (seen is not None and seen != len(self.sessions())):
            raise Conflict(f"there is already a session {session}", way_out="choose another --name")
        written: list[str] = []
        try:
            for name, data in beside:
                written.append(name)
                self.put(name, data)
            return self._create(session, first, rest, files)
        except BaseException:
            for name in written:
                with suppress(StoreFailed):
                    self.delete(name)
            raise

    def _create(
        self, session: str, first: Commit, rest: Iterable[Commit], files: Iterable[tuple[SessionFile, bytes]]
    ) -> Cursor:
        path, unfinished = self._path(session), self._path(_UNFINISHED + session)
        with disk.failing_as("create", path):
            _remove_tree(unfinished)
            try:
                disk.make_directory(unfinished)
                end = _write_journal(os.path.join(unfinished, JOURNAL), chain((first,), rest))
                for file, data in files:
                    _write_file(os.path.join(unfinished, file.name), data, executable=file.executable)
                for directory, _, _ in os.walk(unfinished, topdown=False):
                    disk.sync_directory(directory)
                os.rename(unfinished, path)
                try:
                    disk.sync_directory(self.root)
                except OSError:
                    with suppress(OSError):
                        os.rename(path, unfinished)
                    raise
            except BaseException:
                _remove_tree(unfinished)
                raise
        if self._copies:
            self._copies.catch_up(session, self._journal(session).fd)
        return end

    def read(self, session: str, after: Cursor, limit: int = 5_000) -> Tail:
        file = self._open.get(session)
        if after.version and file is not None and self._forks == _forks:
            status = os.fstat(file.fd)
            if status.st_nlink == 0:
                self._forget_if_removed(session)
            elif (
                status.st_size == after.hint and session not in self._replaced and is_at(file.fd, after.sum, after.hint)
            ):
                # Nothing was written since. This is the fast path of most reads.
                return Tail([], after, 0, more=False)
        if after.version and session in self._replaced:
            self._reread(session, after)
        fd = self._journal(session).fd
        version, total, offset = after
        # The end of the previous line is read too: its sum shows that the cursor is a position of this journal.
        overlap = SUM_TAIL if version else 0
        # In most cases little is new, and a large buffer costs more than the read.
        chunk = os.pread(fd, _FIRST_CHUNK, offset - overlap)
        if len(chunk) == overlap - 1:
            # The last newline is missing; the next append writes it.
            chunk += b"\n"
        if version and sum_at_end(chunk[:overlap]) != total:
            raise displaced(session, after)
        chunk, pending = chunk[overlap:], b""
        if not chunk:
            return Tail([], after, 0, more=False)
        commits: list[Commit] = []
        while len(commits) < limit:
            if not chunk:
                if not verified_sum(pending + b"\n", total):
                    return Tail(commits, Cursor(version, total, offset), len(pending), more=False)
                # Only its newline is missing, so it was acknowledged.
                chunk = b"\n"
            *lines, pending = (pending + chunk).split(b"\n")
            for index, line in enumerate(lines):
                if len(commits) == limit:
                    pending = b"\n".join((*lines[index:], pending))
                    break
                commit, total = decode_line(line + b"\n", total, version + 1, session)
                commits.append(commit)
                version, offset = version + 1, offset + len(line) + 1
            chunk = os.pread(fd, _CHUNK, offset + len(pending))
        return Tail(commits, Cursor(version, total, offset), 0, more=True)

    def append(self, session: str, after: Cursor, commit: Commit) -> Cursor:
        journal = self._journal(session)
        fd = journal.fd
        line, total = encode_line(commit, after.sum)
        try:
            size = os.lseek(fd, 0, os.SEEK_END)
            if size != after.hint:
                size = self._cut_torn_tail(session, fd, after)
            try:
                # The newline of the last line may be missing.
                disk.write_all(fd, line if size == after.hint else b"\n" + line)
                disk.sync(fd)
            except OSError:
                # It is unknown what reached the disk. Cut it off, or a retry would follow garbage.
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
        except OSError as error:
            raise disk.failure("append to", journal.path, error) from error
        end = Cursor(commit.version, total, after.hint + len(line))
        if self._copies:
            self._copies.append(session, after, line, end, fd)
        return end

    def back_up(self, session: str) -> None:
        copies = self._copies
        if copies is None or self._forks != _forks:
            return
        is_waiting = session in copies.waiting
        if not is_waiting and copies.size(session) >= self._size(session):
            return
        try:
            lock, journal = self.lock(session), self._journal(session).fd
        except (NotFound, Corrupt):
            # The journal is gone, and no other process can write its copy.
            copies.write(session, None)
            return
        with lock:
            if is_waiting:
                copies.write(session, journal)
            else:
                # Another process was killed before it wrote its copy.
                copies.catch_up(session, journal)

    def positions(self) -> dict[str, int]:
        return {session: self._size(session) for session in self.sessions()}

    def may_have_news(self, session: str, version: int) -> bool:  # noqa: ARG002 - looking is as cheap as asking
        return True

    def waking(self, session: str, wake: Callable[[], object]) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    @property
    def is_shared(self) -> bool:
        return False

    def now(self) -> None:
        """The file system is of this machine."""
        return

    def lock(
        self, name: str, *, wait_s: float = 10.0, meanwhile: Callable[[], object] | None = None
    ) -> AbstractContextManager[None]:
        file = self._open.get(name)
        if file is None or self._forks != _forks or os.fstat(file.fd).st_nlink == 0:
            self._forget_if_removed(name)
            file = self._lock_file() if name == PROJECT else self._journal(name)
        return exclusive(file.fd, file.threads, wait_s=wait_s, what=name or "the project", meanwhile=meanwhile)

    def get(self, name: str) -> bytes | None:
        path = self._path(name)
        with disk.failing_as("read", path):
            try:
                return disk.read_file(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno not in _IN_THE_WAY or not os.path.lexists(path):
                    raise
                # No document is the truth: it counts as missing, and whatever is there is kept when it is written.
                self._in_the_way.add(name)
                return None

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        path = self._path(name)
        with disk.failing_as("write", path, way_out=disk.NOTHING_COMMITTED if durable else disk.REBUILDABLE):
            self._make_way(name)
            try:
                disk.replace(path, data, durable=durable)
            except (FileNotFoundError, NotADirectoryError):
                self._make_directory(os.path.dirname(name))
                disk.replace(path, data, durable=durable)

    def swap(self, name: str, before: bytes | None, after: bytes | None) -> bool:
        if self.get(name) != before:
            return False
        if after is None:
            self.delete(name)
        else:
            self.put(name, after)
        return True

    def delete(self, name: str) -> None:
        path = self._path(name)
        with disk.failing_as("remove", path, way_out=disk.REBUILDABLE), suppress(FileNotFoundError, NotADirectoryError):
            if os.path.isdir(path) and not os.path.islink(path):
                self._in_the_way.add(name)
            self._make_way(name)
            os.unlink(path)

    def names(self, prefix: str) -> list[str]:
        directory, start = os.path.split(prefix)
        try:
            entries = os.listdir(self._path(directory))
        except (FileNotFoundError, NotADirectoryError):
            return []
        matching = (entry for entry in entries if entry.startswith(start) and not entry.endswith(disk.TEMPORARY))
        return sorted(os.path.join(directory, entry) for entry in matching)

    def of_sessions(self, name: str) -> dict[str, bytes]:
        documents = ((session, self.get(f"{session}/{name}")) for session in self.sessions())
        return {session: data for session, data in documents if data is not None}

    def changed(self, prefix: str, since: int = 0) -> Changes:
        directory, start = os.path.split(prefix)
        names, mark = [], time.time_ns() - _TICK_NS
        try:
            with os.scandir(self._path(directory)) as entries:
                for entry in entries:
                    if not entry.name.startswith(start) or entry.name.endswith(disk.TEMPORARY):
                        continue
                    if since == 0 or _changed_ns(entry) >= since:
                        names.append(os.path.join(directory, entry.name))
        except (FileNotFoundError, NotADirectoryError):
            names = []
        return Changes(sorted(names), mark)

    def written(self, name: str) -> int:
        try:
            return max(os.stat(self._path(name)).st_mtime_ns, 1)
        except OSError:
            return 0

    def session_files(self, session: str) -> list[SessionFile]:
        top = self._path(session)
        files = []
        for directory, folders, names in os.walk(top):
            for entry in (*names, *(folder for folder in folders if os.path.islink(os.path.join(directory, folder)))):
                full = os.path.join(directory, entry)
                name = os.path.relpath(full, top)
                if name != JOURNAL and not entry.endswith(disk.TEMPORARY):
                    mode = os.lstat(full).st_mode
                    files.append(SessionFile(name, bool(mode & stat.S_IXUSR), stat.S_ISREG(mode)))
        return sorted(files)

    def directory(self, name: str) -> str:
        return self._path(name)

    def feed_writer(self, session: str) -> "FeedFile":
        from detent.store.feed_file import FeedFile, feed_path  # noqa: PLC0415 - only runs need it

        return FeedFile(feed_path(self, session))

    def feed_reader(self, session: str) -> "FeedFileReader":
        from detent.store.feed_file import FeedFileReader, feed_path  # noqa: PLC0415 - only followers need it

        return FeedFileReader(feed_path(self, session))

    def location(self, name: str) -> str:
        return self._path(name) if name else self.root

    @property
    def repairs(self) -> "Repairs":
        from detent.store.repairs import Repairs  # noqa: PLC0415 - only damage needs it

        return Repairs(self.root, self._copies, self._close, self.sessions)

    def warnings(self) -> list[tuple[str, str]]:
        return []

    def reopen(self) -> "FileStore":
        return FileStore(self.root, self._copies.reopen() if self._copies else None)

    def close(self) -> None:
        if self._copies:
            for session in self._copies.waiting:
                # What cannot be written now is left to the next command.
                with suppress(LockTimeout):
                    self.back_up(session)
            self._copies.close()
        while self._open:
            os.close(self._open.popitem()[1].fd)

    def _size(self, session: str) -> int:
        """The size of the journal; 0 if it is gone."""
        try:
            return os.stat(self._path(session, JOURNAL)).st_size
        except OSError:
            return 0

    def _path(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def _make_way(self, name: str) -> None:
        """Rename what is in the place of a document; a pipe or a broken link holds nothing and is replaced."""
        if name in self._in_the_way:
            self._in_the_way.discard(name)
            path = self._path(name)
            if os.path.isdir(path) or os.path.isfile(path):
                self.notices.append(f"{name} could not be read and is kept as {os.path.basename(disk.set_aside(path))}")

    def _make_directory(self, name: str) -> None:
        """Make a directory of documents; a file in its place is renamed."""
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            path = self._path(*parts[:depth])
            if os.path.lexists(path) and not os.path.isdir(path):
                kept = os.path.basename(disk.set_aside(path))
                self.notices.append(f"{'/'.join(parts[:depth])} is no directory and is kept as {kept}")
        disk.make_directory(self._path(name))

    def _journal(self, session: str) -> _Open:
        file = self._open.get(session)
        if file is not None and self._forks == _forks:
            return file
        try:
            return self._keep_open(session, (session, JOURNAL))
        except (FileNotFoundError, NotADirectoryError):
            if self._copies and session in self._copies.sessions():
                from detent.store.recovery import changed_outside  # noqa: PLC0415

                raise changed_outside(session, self.repairs.examine(session)) from None
            raise NotFound(f"there is no session {session}", way_out="detent history lists ended sessions") from None

    def _lock_file(self) -> _Open:
        with disk.failing_as("lock", self.root):
            try:
                return self._keep_open(PROJECT, (_LOCK_FILE,))
            except FileNotFoundError:
                # A package of a monorepo has no directory until its first use.
                disk.make_directory(self.root)
                return self._keep_open(PROJECT, (_LOCK_FILE,))

    def _close_to_others(self) -> None:
        """Take the directory from other accounts: a clone or a copy of a project may have opened it."""
        with suppress(OSError):
            mode = os.stat(self.root).st_mode
            if mode & 0o077:
                os.chmod(self.root, stat.S_IMODE(mode) & disk.PRIVATE_DIRECTORY)

    def _keep_open(self, name: str, path: tuple[str, ...]) -> _Open:
        if self._forks != _forks:
            # A forked child shares the parent's descriptors and with them its locks: open its own.
            self._open, self._opening, self._forks = {}, allocate_lock(), _forks
            if self._copies:
                self._copies = self._copies.reopen()
        file = self._open.get(name)
        if file is None:
            with self._opening:
                file = self._open.get(name)
                if file is None:
                    full = self._path(*path)
                    fd = disk.open_lock(full) if name == PROJECT else _open_journal(full)
                    if name == PROJECT:
                        self._close_to_others()
                    try:
                        self._compare(name, fd)
                    except BaseException:
                        os.close(fd)
                        raise
                    file = self._open[name] = _Open(full, fd)
        return file

    def _compare(self, name: str, fd: int) -> None:
        """Refuse a journal that does not hold what its second copy holds, before anything is made of it."""
        if name == PROJECT or self._copies is None or self._copies.is_held(name, fd):
            return
        examined = self.repairs.examine(name)
        if not examined.is_held:
            from detent.store.recovery import changed_outside  # noqa: PLC0415

            raise changed_outside(name, examined)

    def _close(self, name: str) -> None:
        with self._opening:
            file = self._open.pop(name, None)
            if file is not None:
                os.close(file.fd)

    def _forget_if_removed(self, name: str) -> None:
        """Close a removed file: another may have its name, and a lock on the old one excludes no process."""
        file = self._open.get(name)
        if file is not None and self._forks == _forks and os.fstat(file.fd).st_nlink == 0:
            with self._opening:
                os.close(self._open.pop(name).fd)
            if name != PROJECT:
                self._replaced.add(name)

    def _reread(self, session: str, after: Cursor) -> None:
        """Check that the file that replaced a journal holds the same commits up to `after`."""
        self._replaced.discard(session)
        cursor = START
        try:
            while cursor.version < after.version:
                tail = self.read(session, cursor, limit=min(5_000, after.version - cursor.version))
                if tail.end == cursor:
                    break
                cursor = tail.end
            if cursor != after:
                raise displaced(session, after)
        except BaseException:
            # The next thread that reads it must not take it for the same journal either.
            self._replaced.add(session)
            raise

    def _cut_torn_tail(self, session: str, fd: int, after: Cursor) -> int:
        """Cut off an unfinished write; returns the size of the journal after that."""
        tail = self.read(session, after, limit=1)
        if tail.commits:
            raise Conflict(
                f"{session} is at version {tail.end.version} or later, not at {after.version}",
                way_out="look at it again with detent status, then repeat the command",
            )
        size = min(os.fstat(fd).st_size, after.hint)
        os.ftruncate(fd, size)
        return size


def _write_journal(path: str, commits: Iterable[Commit]) -> Cursor:
    cursor = START
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, disk.PRIVATE_FILE)
    try:
        for commit in commits:
            line, total = encode_line(commit, cursor.sum)
            disk.write_all(fd, line)
            cursor = Cursor(commit.version, total, cursor.hint + len(line))
        disk.sync(fd)
    finally:
        os.close(fd)
    return cursor


def _write_file(path: str, data: bytes, *, executable: bool) -> None:
    disk.make_directory(os.path.dirname(path))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700 if executable else disk.PRIVATE_FILE)
    try:
        disk.write_all(fd, data)
        disk.sync(fd)
    finally:
        os.close(fd)


def _changed_ns(entry: "os.DirEntry[str]") -> int:
    """The time of the inode, since copying may set that of the content; 0 if the file was removed meanwhile."""
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns
    except FileNotFoundError:
        return 0


def _remove_tree(path: str) -> None:
    import shutil  # noqa: PLC0415 - slow to load, and only creating a session needs it

    shutil.rmtree(path, ignore_errors=True)


def _open_journal(path: str) -> int:
    if os.path.lexists(path) and not os.path.isfile(path):
        # Whatever is in its place, the journal is gone; its second copy can be put back.
        raise FileNotFoundError(path)
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError:
        # A read-only project can still be read; a write then fails with its own reason.
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
