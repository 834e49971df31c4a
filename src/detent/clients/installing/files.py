"""Changes to files of a project: a plan as a value, its diff, and its application as a whole or not at all.

`apply` checks everything and stages every new content under a temporary name before it replaces the first file. If a
replacement fails, it undoes those before it.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

import msgspec

from detent.config.place import STATE
from detent.errors import Conflict, Invalid, StoreFailed
from detent.store import disk

#: Detent's own records of an installation; the diff leaves them out.
RECORDS = f"{STATE}/install"
_PRIVATE = 0o600


def resolve(root: str, path: str) -> str:
    """The real path of `path`, relative to `root`.

    A link out of the project is refused: several projects may share its target, and it may be there to mislead.
    """
    real = os.path.relpath(os.path.realpath(os.path.join(root, path)), root)
    if real == os.pardir or real.startswith(os.pardir + os.sep):
        raise Invalid(
            f"{path} is a link to {os.path.normpath(os.path.join(root, real))}, outside {root}",
            way_out=f"nothing was changed; replace the link {path} with a file",
        )
    return real


def read(root: str, path: str) -> bytes | None:
    full = os.path.join(root, path)
    with disk.failing_as("read", full):
        try:
            return disk.read_file(full)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.ENOTDIR, errno.EINVAL, errno.ELOOP):
                raise
            raise Invalid(f"{full} cannot be a file: {error.strerror}", way_out="move it away, then retry") from error


def missing_directories(root: str, path: str) -> list[str]:
    """The directories above `path` that do not exist, outermost first."""
    missing: list[str] = []
    directory = os.path.dirname(path)
    while directory and not os.path.isdir(os.path.join(root, directory)):
        missing.insert(0, directory)
        directory = os.path.dirname(directory)
    return missing


class Change(NamedTuple):
    """A new content of one file."""

    #: Relative to the root, links resolved.
    path: str
    #: Content of the file; None for no file.
    before: bytes | None
    after: bytes | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of an installation or a removal."""

    root: str
    #: In the order of their application.
    changes: tuple[Change, ...] = ()
    #: Files that stay unchanged, and why.
    notes: tuple[str, ...] = ()
    #: Directories to remove afterwards if they are empty.
    directories: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def is_empty(self) -> bool:
        return not self.changes

    def diff(self) -> str:
        """A unified diff for `git apply` and `patch -p1`."""
        return "".join(_diff(change) for change in self.changes if not change.path.startswith(RECORDS + "/"))


def _diff(change: Change) -> str:
    import difflib  # noqa: PLC0415 - only a dry run needs it

    before, after = _lines(change.before), _lines(change.after)
    old = "/dev/null" if change.before is None else f"a/{change.path}"
    new = "/dev/null" if change.after is None else f"b/{change.path}"
    # An empty file that is created or removed has no hunk; the header shows it.
    header = f"diff --git a/{change.path} b/{change.path}\n"
    if change.before is None:
        header += "new file mode 100644\n"
    if change.after is None:
        header += "deleted file mode 100644\n"
    hunks = difflib.unified_diff(before, after, old, new)
    return header + "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunks
    )


def _lines(content: bytes | None) -> Sequence[str]:
    """Split at newlines only: `splitlines` also splits where `patch` does not."""
    text = (content or b"").decode(errors="replace")
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])


def apply(plan: Plan) -> None:
    """Make all changes of the plan, or none."""
    for change in plan.changes:
        _check(plan.root, change)
    with ExitStack() as undo:
        staged = [_stage(plan.root, change, undo) for change in plan.changes]
        for change, temporary in zip(plan.changes, staged, strict=True):
            full = os.path.join(plan.root, change.path)
            with disk.failing_as("write", full):
                mode = 0 if change.before is None else stat.S_IMODE(os.stat(full).st_mode)
                _put(full, temporary)
            undo.callback(_put_back, full, change, mode)
        undo.pop_all()
    for directory in plan.directories:
        with suppress(OSError):
            os.rmdir(os.path.join(plan.root, directory))


def _check(root: str, change: Change) -> None:
    full = os.path.join(root, change.path)
    if read(root, change.path) != change.before:
        raise Conflict(f"another program changed {change.path} just now", way_out="nothing was changed; retry")
    missing = missing_directories(root, change.path)
    directory = os.path.join(root, os.path.dirname(missing[0] if missing else change.path))
    for path in (directory, *([full] if change.before is not None else [])):
        # A read-only mode is respected, also for a user who may write everywhere.
        if not os.stat(path).st_mode & 0o222 or not os.access(path, os.W_OK):
            raise StoreFailed(f"{path} is read-only", way_out=f"nothing was changed; make {path} writable and retry")


def _stage(root: str, change: Change, undo: ExitStack) -> str | None:
    """Write the new content to a temporary file beside the target; None if the file is to be removed."""
    if change.after is None:
        return None
    full = os.path.join(root, change.path)
    temporary = f"{full}.detent-{os.getpid()}"
    with disk.failing_as("write", full):
        for directory in missing_directories(root, change.path):
            os.mkdir(os.path.join(root, directory))
            undo.callback(_quietly, os.rmdir, os.path.join(root, directory))
        private = change.path.startswith(RECORDS + "/")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE if private else 0o666)
        undo.callback(_quietly, os.unlink, temporary)
        try:
            if change.before is not None:
                _keep_owner_and_mode(fd, full)
            disk.write_all(fd, change.after)
            # A rename can reach the disk before the content, so the content is synced first.
            if change.before is not None or private:
                disk.sync(fd)
        finally:
            os.close(fd)
    return temporary


def _keep_owner_and_mode(fd: int, full: str) -> None:
    present = os.stat(full)
    with suppress(PermissionError):
        os.fchown(fd, present.st_uid, present.st_gid)
    os.fchmod(fd, stat.S_IMODE(present.st_mode))


def _put(full: str, temporary: str | None) -> None:
    if temporary is None:
        os.unlink(full)
    else:
        os.replace(temporary, full)


def _put_back(full: str, change: Change, mode: int) -> None:
    with suppress(OSError):
        if change.before is None:
            os.unlink(full)
        else:
            disk.replace(full, change.before, mode=mode)


def _quietly(operation: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        operation(path)
