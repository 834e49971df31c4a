"""The reports of every pytest that a command runs.

All of them are given the same path. It is a named pipe, so that the second does not write over the report of the first.
"""

import os
import select
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from detent.core.testrun.junit import MAX_BYTES
from detent.engine.gates.scratch import scratch_directory

_CHUNK = 64 * 1024


@contextmanager
def collected_reports() -> Iterator["Reports"]:
    """The reports that are written while the context is open; their path is outside of the project."""
    with scratch_directory("report") as directory:
        reports = Reports(os.path.join(directory, "junit.xml"))
        try:
            yield reports
        finally:
            reports.end()


class Reports:
    def __init__(self, path: str) -> None:
        self.path = path
        self._parts: list[bytes] = []
        self._size = 0
        self._thread: threading.Thread | None = None
        self._ended, self._end = os.pipe()
        with suppress(OSError):
            # Where there are no pipes the path is a plain file, with the last report.
            os.mkfifo(path, 0o600)
            # For writing too: otherwise there would be an end after each report.
            pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._collect, args=(pipe,), daemon=True)
            self._thread.start()

    def read(self) -> bytes | None:
        """Everything that was written, one report after the other; None if nothing was."""
        self.end()
        return b"".join(self._parts) or _file_content(self.path)

    def end(self) -> None:
        """Take what has been written so far, and no more."""
        if self._end < 0:
            return
        os.close(self._end)
        if self._thread is not None:
            self._thread.join()
        os.close(self._ended)
        self._end = -1

    def _collect(self, pipe: int) -> None:
        try:
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            poll.register(self._ended, select.POLLIN)
            is_ended = False
            while not is_ended:
                # What was written before the end is in the pipe by now; a process that still writes is not waited for.
                is_ended = any(fd == self._ended for fd, _ in poll.poll())
                while self._take(pipe) and not (is_ended and self._size > MAX_BYTES):
                    pass
        finally:
            os.close(pipe)

    def _take(self, pipe: int) -> bool:
        """Read a part; False if there is none. Beyond the limit of a report nothing is kept."""
        try:
            part = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        if self._size <= MAX_BYTES:
            self._parts.append(part)
        self._size += len(part)
        return True


def _file_content(path: str) -> bytes | None:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError:
        return None
