"""Carrying out a plan: all of it or nothing.

Everything is checked and every new content is on disk under a temporary name before the first file is replaced. If a
replacement fails after all, those before it are taken back.
"""

import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress

from detent.clients.installing.files import missing_directories, read
from detent.errors import Conflict, StoreFailed
from detent.install.change import RECORDS, Change, Plan
from detent.store import disk

_PRIVATE = 0o600


def apply(plan: Plan) -> None:
    for change in plan.changes:
        _check(plan.root, change)
    with ExitStack() as undo:
        staged = [_stage(plan.root, change, undo) for change in plan.changes]
        for change, temporary in zip(plan.changes, staged, strict=True):
            full = os.path.join(plan.root, change.path)
            with disk.failing_as("write", full):
                _put(full, temporary)
            undo.callback(_put_back, full, change)
        undo.pop_all()
    for directory in plan.directories:
        with suppress(OSError):
            os.rmdir(os.path.join(plan.root, directory))


def _check(root: str, change: Change) -> None:
    full = os.path.join(root, change.path)
    if read(root, change.path) != change.before:
        raise Conflict(f"{change.path} was changed by somebody else just now", way_out="nothing was changed; try again")
    missing = missing_directories(root, change.path)
    directory = os.path.join(root, os.path.dirname(missing[0] if missing else change.path))
    for path in (directory, *([full] if change.before is not None else [])):
        # The mode says what a person meant, also to a user who may write everywhere.
        if not os.stat(path).st_mode & 0o222 or not os.access(path, os.W_OK):
            raise StoreFailed(
                f"{path} is read-only", way_out=f"nothing was changed; make {path} writable and try again"
            )


def _stage(root: str, change: Change, undo: ExitStack) -> str | None:
    """The new content beside its place; none if the file is to be removed."""
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
            # A rename can reach the disk before the content: what replaces something must be there first.
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


def _put_back(full: str, change: Change) -> None:
    with suppress(OSError):
        if change.before is None:
            os.unlink(full)
        else:
            disk.replace(full, change.before)


def _quietly(operation: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        operation(path)
