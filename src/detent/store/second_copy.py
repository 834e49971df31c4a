"""The second copies of a store's journals, in the user's state directory.

An agent's `>>`, `rm` and `sed -i` in the project do not reach them by accident. A copy holds the same bytes as the
journal, up to its head: the last line that was written to it. It may be behind, but a head that the journal does not
hold means that the journal was changed.

A commit leaves its line in memory, and `write` adds all lines that wait, in one `write` without a sync: with the
documents, before an agent or a check starts, and before the process ends. The lines come from memory: whatever became
of the journal meanwhile, the copy has them. Only a kill in between leaves the copy behind.

Nothing here stops a commit: a directory that cannot be written, as in an agent's sandbox, leaves the copies behind
until a command that can write there catches up.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from detent.store import disk
from detent.store.journal_tail import head, is_at
from detent.store.line import GENESIS
from detent.store.state_home import (
    COPY,
    PROJECT_ID,
    copied_sessions,
    copies_directory,
    index_file,
    inode,
    is_id,
    is_same_directory,
    new_id,
    read_entry,
    read_text,
    recorded_sessions,
)

if TYPE_CHECKING:
    from detent.store.port import Cursor

#: Lines that wait for their copy, and the bytes of a line that does not wait: they are kept in memory.
MAX_WAITING, MAX_WAITING_LINE = 1_000, 64 * 1024


class Registration:
    """The id of the project at a path. Reading writes nothing; `register` makes the entries that are missing."""

    def __init__(self, home: str, root: str, state: str) -> None:
        """`home` is empty if the user has no state directory."""
        self.home, self.root, self.state = home, root, state
        #: What happened to the project, in one line: it was moved or copied.
        self.note = ""
        #: Why there is no second copy; empty if there can be one.
        self.problem = "" if home else "neither XDG_STATE_HOME nor HOME names a directory"
        self._known: str | None = None
        self._is_registered = self._is_read = False

    @property
    def id(self) -> str | None:
        """The project's id; None before it has one."""
        if not self._is_read:
            self._is_read, self._known = True, self._read()
        return self._known

    def register(self) -> str | None:
        """The project's id, with its entries in the state directory; None if they cannot be written."""
        if self.id is None:
            # Another process may have been faster.
            self._is_read = False
        if self._is_registered or not self.home:
            return self.id
        known = self.id or new_id()
        before = read_text(f"{self.home}/{known}/path").rstrip("\n")
        try:
            for directory in (self.home, f"{self.home}/index", f"{self.home}/{known}"):
                disk.make_directory(directory)
            _write(f"{self.home}/{known}/path", f"{self.root}\n")
            _write(index_file(self.home, self.root), f"{known}\n{inode(self.root)}\n{self.root}\n")
            if read_text(self._id_file).strip() != known:
                _write(self._id_file, f"{known}\n")
            if before and before != self.root:
                with suppress(FileNotFoundError):
                    os.unlink(index_file(self.home, before))
        except OSError as error:
            self.problem = f"could not write {self.home}: {error.strerror or error}"
            return None
        self._known, self._is_registered = known, True
        return known

    def forget(self) -> list[str]:
        """Remove the project from the state directory; returns the sessions that had a copy."""
        import shutil  # noqa: PLC0415 - slow to load

        sessions = recorded_sessions(self.home, self.id) if self.id is not None else []
        if self.id is not None:
            shutil.rmtree(f"{self.home}/{self.id}", ignore_errors=True)
            with suppress(OSError):
                os.unlink(index_file(self.home, self.root))
        with suppress(OSError):
            os.unlink(self._id_file)
        self._known, self._is_registered, self._is_read = None, False, True
        return sessions

    @property
    def _id_file(self) -> str:
        return f"{self.state}/{PROJECT_ID}"

    def _read(self) -> str | None:
        if not self.home:
            return None
        entry = read_entry(self.home, self.root)
        stated = read_text(self._id_file).strip()
        stated = stated if is_id(stated) else ""
        elsewhere = read_text(f"{self.home}/{stated}/path").rstrip("\n") if stated else ""
        if entry is not None and entry.id == stated:
            self._is_registered = entry.inode == inode(self.root)
            return stated
        # Whatever id stands in it, the project is the one that was here, unless another directory has taken the path.
        if entry is not None and is_same_directory(self.home, entry):
            return entry.id
        if elsewhere and elsewhere != self.root:
            theirs = elsewhere + self.state.removeprefix(self.root)
            if read_text(f"{theirs}/{PROJECT_ID}").strip() == stated:
                self.note = f"this project is a copy of {elsewhere}; it is recorded as a project of its own"
                return None
            self.note = f"this project was moved here from {elsewhere}"
            return stated
        if entry is not None:
            kept = f"{self.home}/{entry.id}"
            self.note = f"another project was at this path before; the second copies of its journals are in {kept}"
        return stated or None


class _Copy(NamedTuple):
    fd: int
    #: The sum and the size of the journal after the last line that this process knows to be in the copy.
    sum: str
    size: int
    #: False if something unfinished stands behind that line.
    is_whole: bool = True


class _Waiting:
    """Lines that were committed and are not in the copy yet."""

    def __init__(self, after: "Cursor") -> None:
        #: The positions before and behind the lines.
        self.after = self.end = after
        self.lines: list[bytes] = []
        #: False if another process committed in between: then the copy is caught up from the journal.
        self.is_whole = True


class SecondCopies:
    """The copies of the journals of one store; `part` is empty, or `projects/<id>` for a package of a monorepo."""

    def __init__(self, registration: Registration, part: str = "") -> None:
        self.registration = registration
        self._part = part
        self._open: dict[str, _Copy] = {}
        self._waiting: dict[str, _Waiting] = {}

    def reopen(self) -> "SecondCopies":
        return SecondCopies(self.registration, self._part)

    @property
    def waiting(self) -> list[str]:
        """The sessions with lines that are not in their copies yet."""
        return list(self._waiting)

    def close(self) -> None:
        """Close all copies. Lines that wait are left to the next command, which catches up."""
        self._waiting.clear()
        while self._open:
            os.close(self._open.popitem()[1].fd)

    @property
    def directory(self) -> str | None:
        known = self.registration.id
        return copies_directory(self.registration.home, known, self._part) if known else None

    def sessions(self) -> list[str]:
        directory = self.directory
        return copied_sessions(directory) if directory else []

    def path(self, session: str) -> str | None:
        directory = self.directory
        return f"{directory}/{session}{COPY}" if directory else None

    def size(self, session: str) -> int:
        """The size of the copy; 0 if there is none."""
        path = self.path(session)
        try:
            return os.stat(path).st_size if path else 0
        except OSError:
            return 0

    def read(self, session: str) -> bytes | None:
        path = self.path(session)
        try:
            if path:
                with open(path, "rb") as file:
                    return file.read()
        except OSError:
            return None
        return None

    def is_held(self, session: str, journal: int) -> bool:
        """Whether the open journal holds the head of its copy. True if there is no copy."""
        self.drop(session)
        copy = self._opened(session)
        # The copy was read first: meanwhile the journal can only have grown.
        return copy is None or is_at(journal, copy.sum, copy.size)

    def append(self, session: str, after: "Cursor", line: bytes, end: "Cursor", journal: int) -> None:
        """Take the line that was just committed. `after` and `end` are the positions around it.

        The caller holds the session's lock.
        """
        waiting = self._waiting.get(session)
        if waiting is None:
            waiting = self._waiting[session] = _Waiting(after)
        elif waiting.end != after:
            waiting.is_whole = False
        waiting.lines.append(line)
        waiting.end = end
        if len(waiting.lines) >= MAX_WAITING or len(line) >= MAX_WAITING_LINE:
            self.write(session, journal)

    def write(self, session: str, journal: int | None) -> None:
        """Add the lines that wait. The caller holds the session's lock, unless the journal is gone."""
        waiting = self._waiting.pop(session, None)
        copy = self._open.get(session)
        if waiting is None:
            return
        if copy is not None and copy.is_whole and waiting.is_whole and (copy.sum, copy.size) == waiting.after[1:]:
            lines = b"".join(waiting.lines)
            try:
                # Another process may have caught up.
                written = os.write(copy.fd, lines) if os.fstat(copy.fd).st_size == copy.size else 0
            except OSError:
                written = 0
            if written == len(lines):
                self._open[session] = _Copy(copy.fd, *waiting.end[1:])
                return
        if journal is not None:
            self.catch_up(session, journal)

    def catch_up(self, session: str, journal: int, *, verify: bool = False) -> bool:
        """Add what the copy lacks. The caller holds the session's lock. False if it could not be written."""
        from detent.store import recovery  # noqa: PLC0415 - a copy is rarely behind

        if self.registration.register() is None:
            return False
        path = str(self.path(session))
        self.drop(session)
        try:
            disk.make_directory(os.path.dirname(path))
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, disk.PRIVATE_FILE)
            try:
                total, size = self._agreed(fd, journal, verify=verify)
                if os.fstat(fd).st_size != size:
                    os.ftruncate(fd, size)
                missing = recovery.following(_read_from(journal, size), total)
                disk.write_all(fd, missing)
                total, size = head(fd)
            except BaseException:
                os.close(fd)
                raise
        except OSError as error:
            self.registration.problem = f"could not write {path}: {error.strerror or error}"
            return False
        self._open[session] = _Copy(fd, total, size)
        return True

    def remove(self, session: str) -> None:
        self._waiting.pop(session, None)
        self.drop(session)
        path = self.path(session)
        if path:
            with suppress(FileNotFoundError):
                os.unlink(path)

    def put(self, session: str, journal: bytes) -> None:
        """Make the copy of a journal that was mended; a failure leaves the old one to the next command."""
        if not journal:
            return self.remove(session)
        self.drop(session)
        path = self.path(session)
        if path:
            with suppress(OSError):
                _write(path, journal)
        return None

    def keep_beside(self, session: str, name: str, data: bytes) -> None:
        """Keep bytes that were taken out of a journal; a failure leaves them to the project's own directory."""
        directory = self.directory
        if directory:
            with suppress(OSError):
                _write(f"{directory}/{name}.{session}", data)

    def _agreed(self, fd: int, journal: int, *, verify: bool) -> tuple[str, int]:
        """The last sum of the copy that the journal has at the same place, and the position behind it."""
        from detent.store import recovery  # noqa: PLC0415

        total, size = head(fd)
        if is_at(journal, total, size) and not verify:
            return total or GENESIS, size
        # Some of the copy is damaged. What the journal lacks must not be cut off.
        copy = _read_from(fd, 0)
        if recovery.examine(_read_from(journal, 0), copy).condition is not recovery.Condition.SOUND:
            raise OSError("the journal does not hold what its second copy holds")
        chain = recovery.verify(copy)
        return (chain.sums[-1] if chain.sums else GENESIS), chain.size

    def _opened(self, session: str) -> _Copy | None:
        path = self.path(session)
        if path is None:
            return None
        for flags in (os.O_RDWR | os.O_APPEND, os.O_RDONLY):
            try:
                fd = os.open(path, flags | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            except OSError:
                continue
            total, size = head(fd)
            is_whole = size == os.fstat(fd).st_size
            self._open[session] = _Copy(fd, total, size, is_whole)
            return self._open[session]
        return None

    def drop(self, session: str) -> None:
        """Close the copy; it is compared again when it is next used."""
        copy = self._open.pop(session, None)
        if copy is not None:
            os.close(copy.fd)


def _read_from(fd: int, position: int) -> bytes:
    return os.pread(fd, max(0, os.fstat(fd).st_size - position), position)


def _write(path: str, content: str | bytes) -> None:
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    disk.replace(path, data, suffix=f".{os.getpid()}{disk.TEMPORARY}")
