"""Damaged journals of the file store: how far each verifies, and putting it together again with its second copy."""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from detent.errors import NotFound
from detent.sha256 import sha256
from detent.store import disk
from detent.store.journal_tail import JOURNAL
from detent.store.second_copy import SecondCopies

if TYPE_CHECKING:
    from detent.store.recovery import Condition, Examined

_SET_ASIDE = "set-aside-"
_SHORT = 8


class SetAside(NamedTuple):
    """The result of a repair: lines that left the journal, and commits that came from the copy."""

    reason: str
    commits: int
    restored: int
    bytes: int
    digest: str
    #: The file beside the journal that keeps the lines; empty if there are none.
    kept: str


class Repairs:
    def __init__(
        self,
        root: str,
        copies: SecondCopies | None,
        close: Callable[[str], None],
        sessions: Callable[[], list[str]],
    ) -> None:
        """`close` makes the store open the journal again, and `sessions` are those of the store."""
        self._root, self._copies, self._close, self._sessions = root, copies, close, sessions

    @property
    def problem(self) -> str:
        """Why no second copy can be written; empty if it can."""
        if self._copies is None:
            return ""
        directory = self._copies.registration.home
        while directory and not os.path.exists(directory):
            directory = os.path.dirname(directory)
        if directory and not os.access(directory, os.W_OK | os.X_OK):
            return f"{directory} cannot be written"
        return self._copies.registration.problem

    @property
    def place(self) -> str:
        """The directory of the second copies; empty before there is one."""
        return (self._copies.directory or "") if self._copies else ""

    def lost(self) -> list[str]:
        """The sessions whose journal is gone or shorter than its second copy. Reads no file."""
        if self._copies is None:
            return []
        # The copy first: meanwhile the journal can only have grown. Its last newline may be missing.
        sizes = [(name, self._copies.size(name)) for name in self._copies.sessions()]
        return [name for name, size in sizes if _size(self._journal(name)) < size - 1]

    def catch_up(self) -> str:
        """Bring the copies up to their journals; returns what happened to the project, if it was moved or copied."""
        copies = self._copies
        if copies is None:
            return ""
        sessions = self._sessions()
        note = copies.registration.note
        for name in sessions:
            if note or copies.size(name) < _size(self._journal(name)):
                self.refresh(name)
        copies.registration.note = ""
        return note

    def refresh(self, session: str, *, verify: bool = False) -> None:
        """Make the copy agree with its journal, if the journal holds what the copy holds.

        With `verify` every line of the copy is verified, otherwise only the last.
        """
        if self._copies is None:
            return
        with suppress(OSError):
            fd = os.open(self._journal(session), os.O_RDONLY | os.O_CLOEXEC)
            try:
                # A process that holds the lock writes the copy itself.
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._copies.catch_up(session, fd, verify=verify)
            finally:
                os.close(fd)

    def examine(self, session: str, *, follow: bool = False) -> "Examined":
        """Examine how far the journal and its copy verify; with `follow` also whether each commit can follow."""
        from detent.store import recovery  # noqa: PLC0415 - sound journals never need it

        path, copy = self._journal(session), self._copied(session)
        # Anything but a file in its place holds no commit.
        journal = disk.read_if_there(path) if os.path.isfile(path) else None
        if journal is None and copy is None:
            raise NotFound(f"there is no session {session}", way_out="detent sessions --all")
        return recovery.examine(journal, copy, follow=follow)

    def mend(self, session: str) -> SetAside | None:
        """Put the journal together from all lines that verify, here and in the copy; None if nothing is wrong.

        Commits that verified are kept, and all other lines are set aside. A session of which no commit is left is set
        aside as a whole.
        """
        from detent.store.recovery import Condition  # noqa: PLC0415

        examined = self.examine(session, follow=True)
        if examined.condition is Condition.SOUND:
            return None
        path = self._journal(session)
        self._close(session)
        with disk.failing_as("mend", path):
            _make_way(os.path.dirname(path), os.path.isdir)
            disk.make_directory(os.path.dirname(path))
            _make_way(path, os.path.isfile)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, disk.PRIVATE_FILE)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                return self._mend(session, fd, examined.condition)
            finally:
                os.close(fd)

    def forget(self, session: str) -> None:
        """Remove the copy of a session: its journal counts as it stands."""
        if self._copies is not None:
            self._copies.remove(session)
        self._close(session)

    def forget_all(self) -> list[str]:
        """Remove the project from the state directory; returns the sessions that had a copy, of all packages."""
        if self._copies is None:
            return []
        self._copies.close()
        return self._copies.registration.forget()

    def _mend(self, session: str, fd: int, condition: "Condition") -> SetAside:
        from detent.store import recovery  # noqa: PLC0415

        journal = os.pread(fd, os.fstat(fd).st_size, 0)
        mended = recovery.mend(journal, self._copied(session))
        digest = sha256(mended.set_aside).hexdigest()[:32]
        kept = f"{_SET_ASIDE}{digest[:_SHORT]}.jsonl" if mended.set_aside else ""
        if kept:
            disk.replace(os.path.join(self._root, session, kept), mended.set_aside, durable=True)
            if self._copies is not None:
                self._copies.keep_beside(session, kept, mended.set_aside)
        if mended.journal.startswith(journal):
            disk.write_all(fd, mended.journal[len(journal) :])
        elif journal.startswith(mended.journal):
            os.ftruncate(fd, len(mended.journal))
        else:
            # Lines in the middle change, and a kill must not lose those behind them.
            disk.replace(self._journal(session), mended.journal, durable=True)
        disk.sync(fd)
        disk.sync_directory(os.path.join(self._root, session))
        if not mended.commits:
            os.rename(
                os.path.join(self._root, session), os.path.join(self._root, f"{_SET_ASIDE}{session}-{digest[:_SHORT]}")
            )
        if self._copies is not None:
            self._copies.put(session, mended.journal)
        return SetAside(condition.value, mended.commits, mended.restored, len(mended.set_aside), digest, kept)

    def _journal(self, session: str) -> str:
        return os.path.join(self._root, session, JOURNAL)

    def _copied(self, session: str) -> bytes | None:
        return self._copies.read(session) if self._copies is not None else None


def _make_way(path: str, is_right: Callable[[str], bool]) -> None:
    """Rename what is in the place of a journal or of its directory."""
    if os.path.lexists(path) and not is_right(path):
        disk.set_aside(path)


def _size(path: str) -> int:
    """The size of a file; -1 if there is none."""
    try:
        return os.stat(path).st_size if os.path.isfile(path) else -1
    except OSError:
        return -1
