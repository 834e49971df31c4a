"""A copy of the project's files in a temporary directory, for a run that must not see what changed in the tests.

Files of the universe are copied, by sharing their blocks where the file system can. They are never hard links: a test
that writes into one would change the file in use. What the rules of the universe leave out (installed packages, build
results, local settings) is a link to the original, and so is `.git`, so that programs that ask git get an answer.
Compiled Python is left out, because bytecode of edited tests could stand in for the old ones.
"""

import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from detent.core.gate.environment import is_below
from detent.store.scratch import scratch_directory

try:
    from fcntl import ioctl
except ImportError:  # pragma: no cover - not on this platform
    ioctl = None  # type: ignore[assignment]

#: The request that shares the blocks of one file with another, on Linux.
_FICLONE = 0x40049409
_CHUNK = 1024 * 1024
#: Not in the copy: Detent's state, and caches that may hold what was run before.
_LEFT_OUT = frozenset((".workflow", "__pycache__", ".pytest_cache"))
_LINKED = frozenset((".git",))


class Copied(NamedTuple):
    """The files that go into a copy."""

    #: Directory of the repository, and directory of the project in it.
    root: str
    base: str
    #: Files of the universe; the others are links.
    files: Collection[str]
    #: Files that are not in the copy.
    without: Collection[str] = ()
    #: Path to content and whether it is executable, in place of what the project has.
    replaced: dict[str, tuple[bytes, bool]] = {}  # noqa: RUF012 - a default that is never changed


@contextmanager
def project_copy(given: Copied) -> Iterator[str]:
    """The directory of the copy, which stands for the project's directory."""
    with scratch_directory("protected", _outside(given.root, given.base)) as directory:
        # pytest and others compare real paths.
        yield _Copy(given, os.path.realpath(directory)).make()


class _Copy:
    def __init__(self, given: Copied, directory: str) -> None:
        self._given = given
        is_package = is_below(given.base, given.root) and not _LEFT_OUT.intersection(_parts(given.base, given.root))
        self._root = given.root if is_package else given.base
        self._top = os.path.join(directory, os.path.basename(self._root) or "project")
        self._base = os.path.normpath(os.path.join(self._top, os.path.relpath(given.base, self._root)))
        #: Directories that have files of the copy; the others are links.
        self._directories = set(_directories((*given.files, *given.replaced, *given.without)))
        self._without = frozenset(given.without)
        self._clones = ioctl is not None

    def make(self) -> str:
        os.mkdir(self._top)
        at, there = self._root, self._top
        for part in _parts(self._given.base, self._root):
            # A package of a monorepo finds the packages beside it.
            self._link_all(at, there, but=part)
            at, there = os.path.join(at, part), os.path.join(there, part)
            os.mkdir(there)
        self._fill("")
        for path, (content, is_executable) in self._given.replaced.items():
            self._write(path, content, is_executable=is_executable)
        return self._base

    def _link_all(self, at: str, there: str, *, but: str) -> None:
        for entry in os.scandir(at):
            if entry.name != but and entry.name not in _LEFT_OUT:
                os.symlink(entry.path, os.path.join(there, entry.name))

    def _fill(self, directory: str) -> None:
        with os.scandir(os.path.join(self._given.base, directory)) as scan:
            entries = list(scan)
        for entry in entries:
            path = f"{directory}{entry.name}"
            if entry.name in _LEFT_OUT or path in self._without or path in self._given.replaced:
                continue
            target = os.path.join(self._base, path)
            if entry.is_symlink():
                self._link(entry.path, target)
            elif entry.name in _LINKED:
                os.symlink(entry.path, target)
            elif entry.is_dir(follow_symlinks=False):
                if path in self._directories:
                    os.mkdir(target)
                    self._fill(f"{path}/")
                else:
                    os.symlink(entry.path, target)
            elif path in self._given.files:
                self._copy(entry.path, target)
            elif entry.is_file(follow_symlinks=False):
                os.symlink(entry.path, target)

    def _link(self, source: str, target: str) -> None:
        """A link that leads to the copy of what it leads to, so that nothing is written through it into the project."""
        real = os.path.realpath(source)
        if is_below(real, self._given.base):
            real = os.path.join(self._base, os.path.relpath(real, self._given.base))
        os.symlink(real, target)

    def _copy(self, source: str, target: str) -> None:
        try:
            fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            # It went, or cannot be read: the run sees what it would see in the project.
            return
        try:
            status = os.fstat(fd)
            mode = stat.S_IMODE(status.st_mode)
            copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            try:
                if status.st_size and not self._clone(fd, copy):
                    left = status.st_size
                    while left > 0 and (data := os.read(fd, _CHUNK)):
                        left -= os.write(copy, data)
                os.fchmod(copy, mode)
                # Builds compare times.
                os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
            finally:
                os.close(copy)
        finally:
            os.close(fd)

    def _clone(self, source: int, target: int) -> bool:
        if not self._clones:
            return False
        try:
            ioctl(target, _FICLONE, source)
        except OSError:
            # Another file system, or one without shared blocks; the next file is no different.
            self._clones = False
        return self._clones

    def _write(self, path: str, content: bytes, *, is_executable: bool) -> None:
        *above, name = path.split("/")
        directory = self._base
        for part in above:
            directory = os.path.join(directory, part)
            if os.path.islink(directory) or not os.path.isdir(directory):
                # A link, or a file in place of the directory, would lead elsewhere.
                if os.path.lexists(directory):
                    os.unlink(directory)
                os.mkdir(directory)
        target = os.path.join(directory, name)
        if os.path.isdir(target) and not os.path.islink(target):
            os.rename(target, f"{target}.directory")
        elif os.path.lexists(target):
            os.unlink(target)
        with open(target, "xb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o755 if is_executable else 0o644)


def _parts(path: str, above: str) -> list[str]:
    return [part for part in os.path.relpath(path, above).split("/") if part != "."]


def _directories(paths: Iterable[str]) -> Iterator[str]:
    seen = set()
    for path in paths:
        at = path.rpartition("/")[0]
        while at and at not in seen:
            seen.add(at)
            yield at
            at = at.rpartition("/")[0]


def _outside(*roots: str) -> str | None:
    """A directory for temporary files outside of the project: runners look for settings in the directories above."""
    candidates = (tempfile.gettempdir(), "/tmp", "/var/tmp", os.path.expanduser("~"))  # noqa: S108
    usable = (os.path.realpath(each) for each in candidates if os.path.isdir(each) and os.access(each, os.W_OK))
    return next((each for each in usable if not any(is_below(each, os.path.realpath(root)) for root in roots)), None)
