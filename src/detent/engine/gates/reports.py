"""The reports that the runners of a command write: those that Detent asks for, and the files that a gate declares.

Every pytest is given the same path. It is a named pipe, so that the second does not write over the report of the first.
Other runners write files beside it, in a directory of this run. A declared file counts only if the run wrote it: it is
not the one that was there before.
"""

import glob
import itertools
import os
import select
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from detent.core.reports.limits import MAX_BYTES, MAX_FILES, ReportFile
from detent.store.scratch import scratch_directory

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
        self.path, self.directory = path, os.path.dirname(path)
        self._prepared: set[str] = set()
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

    def read(self) -> tuple[bytes, ...]:
        """The reports that were written: those of all pytest runs as one, and the files beside the pipe."""
        self.end()
        piped = b"".join(self._parts)
        with os.scandir(self.directory) as entries:
            names = sorted(entry.name for entry in entries if entry.name not in self._prepared)
        written = (_content(os.path.join(self.directory, name)) for name in names[:MAX_FILES])
        return tuple(report for report in (piped, *written) if report)

    def prepare(self, files: Mapping[str, str]) -> None:
        """Write files that a runner needs to be asked."""
        for name, text in files.items():
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write(text)
            self._prepared.add(name)

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


def _content(path: str) -> bytes | None:
    """The content of a regular file, up to one byte beyond the limit: its reader refuses that. None without a file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        state = os.fstat(fd)
        return file.read(MAX_BYTES + 1) if stat.S_ISREG(state.st_mode) else None


class DeclaredFiles:
    """The report files of a gate in the directory of one run, as they are before it."""

    def __init__(self, directory: str, patterns: Sequence[str]) -> None:
        self._directory, self._patterns = directory, tuple(patterns)
        self._before = {path: _state(os.path.join(directory, path)) for _, path in self._matching()}

    def _matching(self) -> list[tuple[str, str]]:
        matches = (
            (pattern, path)
            for pattern in self._patterns
            for path in glob.iglob(pattern, root_dir=self._directory, recursive=True, include_hidden=True)
        )
        return sorted(itertools.islice(matches, MAX_FILES + 1))

    def read(self) -> tuple[tuple[ReportFile, ...], dict[str, str]]:
        """The files that the run wrote, and by pattern why its files do not count.

        A file of an earlier run is left aside if this run wrote others of the pattern.
        """
        matching = self._matching()
        if len(matching) > MAX_FILES:
            return (), dict.fromkeys(self._patterns, f"more than {MAX_FILES} files match")
        files: list[ReportFile] = []
        problems: dict[str, str] = {}
        stale: dict[str, str] = {}
        left = MAX_BYTES
        for pattern, path in matching:
            full = os.path.join(self._directory, path)
            now = _state(full)
            if now is None:
                continue
            if now == self._before.get(path):
                stale[pattern] = f"{path} is older than the run"
            elif now[-1] > left:
                problems[pattern] = f"{path} has {now[-1]} bytes; the limit of all reports is {MAX_BYTES}"
            elif (data := _content(full)) is not None and len(data) <= left:
                left -= len(data)
                files.append(ReportFile(pattern, path, data))
            else:
                problems[pattern] = f"{path} cannot be read"
        for pattern in {*self._patterns} - {file.pattern for file in files} - problems.keys():
            problems[pattern] = stale.get(pattern, f"no file matches {pattern}")
        return tuple(files), problems


def _state(path: str) -> tuple[int, ...] | None:
    """Changes whenever the file is written or replaced: no program can set the time of the last change of an inode.

    In a copy of the project an ignored file is a link to the one of the project.
    """
    try:
        state = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(state.st_mode):
        return None
    return state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns, state.st_size
