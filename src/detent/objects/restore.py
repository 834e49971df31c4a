"""Restores files: all of them, or none.

All new contents are first written into a staging directory, so that a full disk changes nothing. Then the files are
moved into place, which needs no space. A file that changed since the steps were planned is not touched. A step can be
undone, because the content that it replaces is stored too.
"""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from detent.core.checkpoint.manifest import Entry
from detent.errors import Conflict
from detent.objects.pack import Objects
from detent.objects.stat_cache import Key, Row, key_of
from detent.objects.universe import kind_of, private_mode
from detent.objects.walk import UNFINISHED, leads_through_link
from detent.store import disk

_CHUNK = 1 << 20
_PROGRESS_EVERY = 100
_WAY_OUT = "nothing was changed; look at the file, then retry"
#: Name in the staging directory of the file that is being replaced.
_OLD = "old"


class Step(NamedTuple):
    """The change of one path from `before` to `after`; None is no file."""

    path: str
    before: Entry | None
    after: Entry | None


class Restore:
    """`staging` is a directory for this object alone, on the file system of the tree if possible."""

    def __init__(self, base: str, objects: Objects, staging: str) -> None:
        self._base = base
        self._objects = objects
        self._staging = staging
        #: Whether the tree is as before or as planned, and not in between.
        self.is_whole = True

    def apply(
        self,
        steps: Sequence[Step],
        rows: Mapping[str, Row] | None = None,
        contents: Mapping[str, bytes] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Execute all steps, or none: if one fails, the others are undone.

        `rows` holds the stat of the files when the steps were planned. Without it contents are compared, and steps that
        were executed before are left out. `contents` holds verified objects.
        """
        todo = ordered(steps if rows is not None else [step for step in steps if self._is_open(step)])
        self.clear()
        if not todo:
            return
        staged = self._stage(todo, contents or {})
        done: list[Step] = []
        self.is_whole = False
        try:
            for number, step in enumerate(todo):
                if progress is not None and number % _PROGRESS_EVERY == 0:
                    progress(number, len(todo))
                if rows is not None and not self._is_unchanged(step, rows):
                    raise _changed(step.path)
                done.append(step)
                self._execute(step, staged.get(step.path), rows)
        except BaseException:
            self.undo(done)
            raise
        self.clear()
        self.is_whole = True

    def undo(self, steps: Iterable[Step]) -> list[str]:
        """Undo steps. Returns the paths that were changed meanwhile, which are left alone."""
        self.is_whole = False
        self.clear()
        back = [Step(path, after, before) for path, before, after in steps]
        leaving = {step.path for step in back if step.after is None}
        todo, foreign = [], []
        for step in ordered(back):
            present = self.present(step.path)
            if self._is_occupied(step.path, leaving):
                foreign.append(step.path)
            elif present == step.before or (present is None and step.after is not None):
                todo.append(step)
            elif present != step.after:
                foreign.append(step.path)
        staged = self._stage(todo, {})
        for step in todo:
            self._execute(step, staged.get(step.path))
        self.clear()
        self.is_whole = True
        return foreign

    def clear(self) -> None:
        """Remove the files of an interrupted restore."""
        if os.path.lexists(self._staging):
            shutil.rmtree(self._staging, ignore_errors=True)

    def present(self, path: str) -> Entry | None:
        """The entry of the present file; None if there is no file."""
        full = os.path.join(self._base, path)
        try:
            status = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if leads_through_link(self._base, path):
            return None
        if stat.S_ISLNK(status.st_mode):
            target = os.fsencode(os.readlink(full))
            return Entry("l", hashlib.sha256(target).hexdigest(), len(target))
        if not stat.S_ISREG(status.st_mode):
            # A directory is no file; it may have to be removed.
            return None if stat.S_ISDIR(status.st_mode) else Entry("?", "", 0)
        digest, size = hashlib.sha256(), 0
        with open(full, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
        return Entry(kind_of(status), digest.hexdigest(), size, private_mode(status))

    def _is_occupied(self, path: str, leaving: set[str]) -> bool:
        """Whether the path became a directory with files that are not in `leaving`."""
        full = os.path.join(self._base, path)
        if os.path.islink(full) or not os.path.isdir(full):
            return False
        return any(
            os.path.relpath(os.path.join(directory, name), self._base) not in leaving
            for directory, _, names in os.walk(full)
            for name in names
        )

    def _is_open(self, step: Step) -> bool:
        present = self.present(step.path)
        if present == step.after:
            return False
        # A kill between removing the old file and moving the new one there leaves no file.
        if present not in (step.before, None):
            raise _changed(step.path)
        return True

    def _is_unchanged(self, step: Step, rows: Mapping[str, Row]) -> bool:
        row = rows.get(step.path) if step.before is not None else None
        if self._key(step.path) == (row.key if row is not None else None):
            return True
        # Two hard links of one file: restoring one changed the stat of the other.
        return step.before is not None and self.present(step.path) == step.before

    def _key(self, path: str) -> Key | None:
        try:
            status = os.lstat(os.path.join(self._base, path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(status.st_mode) or leads_through_link(self._base, path):
            return None
        return key_of(status)

    def _stage(self, steps: Iterable[Step], contents: Mapping[str, bytes]) -> dict[str, str]:
        """Write the new contents into the staging directory; returns their paths there."""
        staged: dict[str, str] = {}
        try:
            with disk.failing_as("restore into", self._staging, way_out=_WAY_OUT):
                os.makedirs(self._staging, exist_ok=True)
                for number, (path, before, after) in enumerate(steps):
                    full = os.path.join(self._base, path)
                    if after is not None and not (_only_mode(before, after) and os.path.lexists(full)):
                        staged[path] = os.path.join(self._staging, str(number))
                        self._write(staged[path], full, before, after, contents)
        except BaseException:
            self.clear()
            raise
        return staged

    def _write(self, target: str, full: str, before: Entry | None, after: Entry, contents: Mapping[str, bytes]) -> None:
        content = contents.get(after.digest)
        if after.kind == "l":
            os.symlink(self._objects.read(after.digest) if content is None else content, os.fsencode(target))
            return
        permissions = after.mode or (0o777 if after.kind == "x" else 0o666)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions)
        try:
            if content is None:
                self._objects.copy_to(after.digest, fd)
            else:
                disk.write_all(fd, content)
            present = os.fstat(fd)
            if before is not None and before.kind != "l":
                with suppress(FileNotFoundError):
                    present = os.lstat(full)
            os.fchmod(fd, _mode(present.st_mode, after))
        finally:
            os.close(fd)

    def _execute(self, step: Step, staged: str | None, rows: Mapping[str, Row] | None = None) -> None:
        full = os.path.join(self._base, step.path)
        with disk.failing_as("restore", full, way_out=_WAY_OUT):
            if step.after is None:
                self._take_away(step, full, rows)
                self._remove_empty(full)
            elif staged is None:
                os.chmod(full, _mode(os.lstat(full).st_mode, step.after))
            else:
                if step.before is None:
                    self._make_room(full)
                else:
                    self._take_away(step, full, rows)
                self._move(staged, full, step)

    def _take_away(self, step: Step, full: str, rows: Mapping[str, Row] | None) -> None:
        """Remove the old file, unless it was saved after it was looked at.

        It is moved first: what is saved until then is seen at its new place, and what is saved later has its own file.
        """
        aside = os.path.join(self._staging, _OLD)
        try:
            os.rename(full, aside)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # The tree spans more than one file system.
            os.unlink(full)
            return
        row = rows.get(step.path) if rows is not None else None
        if row is not None and _content_key(os.lstat(aside)) != row.key[:2]:
            if not os.path.lexists(full):
                os.rename(aside, full)
            raise _changed(step.path)
        os.unlink(aside)

    def _move(self, staged: str, full: str, step: Step) -> None:
        try:
            if os.path.islink(staged):
                os.rename(staged, full)
            else:
                # Unlike a rename, a link does not replace a file that was saved meanwhile.
                os.link(staged, full)
                os.unlink(staged)
        except FileExistsError:
            raise _changed(step.path) from None
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                os.rename(staged, full)
                return
            if error.errno != errno.EXDEV:
                raise
            # The tree spans more than one file system.
            beside = os.path.join(os.path.dirname(full), UNFINISHED + os.path.basename(staged))
            if not os.path.islink(staged):
                # The copy gets its permissions last; until then it is for its owner alone.
                os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, disk.PRIVATE_FILE))
            shutil.copy2(staged, beside, follow_symlinks=False)
            os.rename(beside, full)

    def _make_room(self, full: str) -> None:
        """Make the directory of a new file, and remove empty directories in its place."""
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if os.path.isdir(full) and not os.path.islink(full):
            for directory, _, _ in os.walk(full, topdown=False):
                os.rmdir(directory)

    def _remove_empty(self, full: str) -> None:
        directory = os.path.dirname(full)
        # A directory is removed with its last file, as git does.
        with suppress(OSError):
            while directory != self._base:
                os.rmdir(directory)
                directory = os.path.dirname(directory)


def _content_key(status: os.stat_result) -> tuple[int, int]:
    """Size and time of the content; moving a file changes the time of its inode."""
    return key_of(status)[:2]


def ordered(steps: Iterable[Step]) -> list[Step]:
    """Removals first, so that a directory can become a file and a file a directory."""
    return sorted(steps, key=lambda step: (step.after is not None, step.path))


def _only_mode(before: Entry | None, after: Entry) -> bool:
    return before is not None and before[1:3] == after[1:3] and "l" not in (before.kind, after.kind)


def _mode(mode: int, entry: Entry) -> int:
    """The permissions of the file: those of the entry, or its own if every account may read both."""
    if entry.mode:
        return entry.mode
    plain = stat.S_IMODE(mode) & ~0o111 | 0o444
    return plain | (plain >> 2 & 0o111) if entry.kind == "x" else plain


def _changed(path: str) -> Conflict:
    return Conflict(f"{path} was changed while it was being restored", way_out=_WAY_OUT)
