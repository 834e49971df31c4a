"""The copy of a journal on this machine: the lines that commands here have seen, byte for byte.

Hooks compare the state document with it in a bare interpreter, and people read it. No command decides by it: the
database holds the journal. A copy that is behind, gone or changed is made again from there.
"""

import os
import threading
from collections.abc import Callable, Sequence

import msgspec

from detent.errors import Corrupt, LockTimeout
from detent.store import disk
from detent.store.journal_tail import JOURNAL, SUM_TAIL, is_at, sum_at_end
from detent.store.lock import exclusive
from detent.store.port import START, Cursor

#: Lines behind a position as they are in the database, the position behind them, and whether more follow.
Lines = tuple[Sequence[bytes], Cursor, bool]
#: The last line is looked for in this many bytes first.
_TAIL = 1 << 16
_WAIT_S = 1.0


class _Head(msgspec.Struct):
    version: int


_decode = msgspec.json.Decoder(_Head).decode
#: Excludes the threads of this process, which have descriptors of their own.
_threads = threading.Lock()


def add_lines(root: str, session: str, after: Cursor, lines: Sequence[bytes], end: Cursor) -> bool:
    """Write lines behind `after`; False if the copy does not end there.

    Nothing here stops a commit: a copy that cannot be written stays behind until a command can write it.
    """
    try:
        with _Copy(root, session) as copy:
            if not copy.ends_with(after):
                return copy.ends_with(end)
            copy.write(lines)
    except (OSError, LockTimeout):
        return True
    return True


def catch_up(root: str, session: str, read: Callable[[Cursor], Lines], end: Cursor) -> None:
    """Bring the copy to `end`: from its own end if that is a position of the journal, else from the start."""
    try:
        with _Copy(root, session) as copy:
            if copy.ends_with(end):
                return
            cursor = copy.end()
            is_other = cursor.version == end.version and cursor.hint != end.hint
            if not is_other and cursor.version <= end.version:
                is_other = not copy.continue_from(cursor, read)
            if is_other or not copy.holds(end):
                copy.clear()
                copy.continue_from(START, read)
    except (OSError, LockTimeout):
        return


class _Copy:
    """The open file, locked among processes and threads."""

    def __init__(self, root: str, session: str) -> None:
        path = os.path.join(root, session, JOURNAL)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, disk.PRIVATE_FILE)
        except FileNotFoundError:
            disk.make_directory(os.path.dirname(path))
            self._fd = os.open(path, flags, disk.PRIVATE_FILE)
        self._lock = exclusive(self._fd, _threads, wait_s=_WAIT_S, what=path)

    def __enter__(self) -> "_Copy":
        try:
            self._lock.__enter__()
        except BaseException:
            os.close(self._fd)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(None, None, None)
        os.close(self._fd)

    def ends_with(self, position: Cursor) -> bool:
        size = os.fstat(self._fd).st_size
        if size != position.hint:
            return False
        return not size or sum_at_end(os.pread(self._fd, SUM_TAIL, max(0, size - SUM_TAIL))) == position.sum

    def holds(self, position: Cursor) -> bool:
        return is_at(self._fd, position.sum, position.hint)

    def continue_from(self, cursor: Cursor, read: Callable[[Cursor], Lines]) -> bool:
        """Write the lines behind the end of the copy; False if that is no position of the journal."""
        more = True
        while more:
            try:
                lines, cursor, more = read(cursor)
            except Corrupt:
                if cursor == START:
                    raise
                return False
            self.write(lines)
        return True

    def end(self) -> Cursor:
        """The position behind the last line; the start if that cannot be read."""
        size = os.fstat(self._fd).st_size
        chunk = os.pread(self._fd, _TAIL, max(0, size - _TAIL))
        if size > _TAIL and b"\n" not in chunk[:-1]:
            chunk = os.pread(self._fd, size, 0)
        line = chunk[chunk[:-1].rfind(b"\n") + 1 :]
        try:
            version = _decode(line).version
        except msgspec.MsgspecError:
            return START
        return Cursor(version, sum_at_end(line), size)

    def write(self, lines: Sequence[bytes]) -> None:
        disk.write_all(self._fd, b"".join(lines))

    def clear(self) -> None:
        os.ftruncate(self._fd, 0)
