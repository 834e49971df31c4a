"""The protected files of a session: the tests and the runner's settings as they were when it began.

They are found by the naming rules of the runners (`core/testrun/runner_files.py`), and by the patterns of the gates.
Nothing is run. The contents are one document of the session, named by its digest and verified whenever it is read.
"""

import hashlib
import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from detent.core.path_text import from_text, to_text
from detent.core.testrun.runner_files import Role, roles
from detent.core.testrun.runner_part import runner_part, with_runner_part
from detent.engine.gates.copy import Copied
from detent.engine.gates.inputs import matcher
from detent.engine.gates.stored import content_name
from detent.errors import Corrupt
from detent.objects.universe import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.config.place import Place
    from detent.objects.universe import Moment


#: The files of a package that the interpreter runs.
_PACKAGE_FILES = ("/__init__.py", "/__init__.pyc", "/__main__.py")


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file as it was. Of a link it is the content that it leads to."""

    digest: str
    #: None for a file that git ignores: it may hold what must not be copied.
    content: bytes | None = None
    is_executable: bool = False


class Changes(NamedTuple):
    """The differences between the protected files and the present ones, each sorted by path."""

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    #: Shared files whose runner's part cannot be separated from the rest.
    unclear: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(map(len, self))


class ProtectedFiles:
    """The files by path, as they were when they were taken."""

    def __init__(self, files: dict[str, Kept]) -> None:
        self.files = files

    @classmethod
    def take(cls, moment: "Moment", patterns: Iterable[str]) -> "ProtectedFiles":
        """The protected files as they are now."""
        present, kept = _Present(moment, tuple(patterns)), {}
        for path in present.roles():
            file = _read(os.path.join(moment.universe.scope.base, path))
            if file is not None:
                kept[path] = file if path in present.there else replace(file, content=None)
        return cls(kept)

    def encode(self) -> tuple[str, bytes]:
        """The digest and the data that `decode` reads."""
        data = msgspec.json.encode({to_text(path): self.files[path] for path in sorted(self.files)})
        return content_name(data), data

    @classmethod
    def decode(cls, data: bytes) -> "ProtectedFiles":
        return cls({from_text(path): kept for path, kept in msgspec.json.decode(data, type=dict[str, Kept]).items()})

    def changes(
        self,
        moment: "Moment",
        patterns: Iterable[str] = (),
        *,
        accepted: Collection[str] = (),
        only: Collection[Role] = tuple(Role),
    ) -> Changes:
        """The differences to the present files of these roles, except for those that a person accepted."""
        base = moment.universe.scope.base
        there = _Present(moment, tuple(patterns)).roles(self.files)

        def is_shared(path: str) -> bool:
            return there.get(path) is Role.SHARED

        changed: list[str] = []
        deleted: list[str] = []
        added: list[str] = []
        unclear: list[str] = []
        for path in sorted(there.keys() | self.files.keys()):
            if path in accepted or there.get(path, Role.TEST) not in only:
                continue
            before, now = self.files.get(path), _read(os.path.join(base, path))
            if _is_same(before, now) or (there.get(path) is Role.STAND_IN and before is not None):
                continue
            old, new = _part(path, before), _part(path, now)
            if (before is not None and before.content is None) or (is_shared(path) and (old is None or new is None)):
                unclear.append(path)
            elif not is_shared(path) or old != new:
                (added if before is None else deleted if now is None else changed).append(path)
        return Changes(tuple(changed), tuple(deleted), tuple(added), tuple(unclear))

    def has_tests(self) -> bool:
        """Whether there were tests at all; without any there is nothing that must still pass."""
        by_path = roles(self.files)
        return any(by_path.get(path, Role.TEST) is Role.TEST for path in self.files)

    def copied(self, place: "Place", moment: "Moment", changes: Changes) -> Copied:
        """The present project with the protected files as they were."""
        look = moment.look(Request())
        shared = {path for path, role in roles((*changes.changed, *changes.added)).items() if role is Role.SHARED}
        replaced: dict[str, tuple[bytes, bool]] = {}
        for path in (*changes.changed, *changes.deleted, *changes.added):
            kept = self.files.get(path)
            if path in shared:
                now = _read(os.path.join(place.base, path))
                merged = with_runner_part(path, now.content or b"", kept.content if kept else None) if now else None
                if merged is None:
                    raise Corrupt(f"the runner's part of {path} cannot be put back")
                replaced[path] = merged, False
            elif kept is not None and kept.content is not None:
                replaced[path] = kept.content, kept.is_executable
        files = frozenset(path for path in look.rows if look.has(path))
        without = tuple(path for path in changes.added if path not in replaced)
        return Copied(root=place.root, base=place.base, files=files, without=without, replaced=replaced)


class _Present:
    """The files of the project that may be protected."""

    def __init__(self, moment: "Moment", patterns: tuple[str, ...]) -> None:
        self._base = moment.universe.scope.base
        self._matches: Callable[[str], bool] = matcher(patterns) if patterns else lambda _: False
        #: A pattern of a gate finds ignored files too.
        self._named = frozenset(filter(self._matches, moment.universe.all_files())) if patterns else frozenset()
        look = moment.look(Request(named=self._named))
        #: Without those that git ignores.
        self.there = {path for path in look.rows if look.has(path)} | self._named

    def roles(self, also: Iterable[str] = ()) -> dict[str, Role]:
        """The protected files among the present ones and `also`, which may be gone."""
        known = {*self.there, *also}
        known |= ignored_beside(self._base, known)
        by_path = roles(known)
        return by_path | {path: Role.TEST for path in known if path not in by_path and self._matches(path)}


def ignored_beside(base: str, there: Collection[str]) -> set[str]:
    """Files beside those that are there, which an ignore rule hides: a program reads them all the same.

    An ignored directory is not entered, but if it is a package it may stand in for one of the runner.
    """
    hidden: set[str] = set()
    for directory in {path.rpartition("/")[0] for path in there} | {""}:
        start = f"{directory}/" if directory else ""
        try:
            with os.scandir(os.path.join(base, directory)) as scan:
                for entry in scan:
                    inner = _PACKAGE_FILES if entry.is_dir() else ("",)
                    hidden.update(start + entry.name + each for each in inner)
        except OSError:
            continue
    return {path for path in hidden.difference(there) if os.path.isfile(os.path.join(base, path))}


def _is_same(before: Kept | None, now: Kept | None) -> bool:
    if before is None or now is None:
        return before is now
    return before.digest == now.digest and before.is_executable == now.is_executable


def _part(path: str, kept: Kept | None) -> dict[str, str] | None:
    return runner_part(path, kept.content if kept is not None else None)


def _read(path: str) -> Kept | None:
    """The file at the path, or what a link at the path leads to; None if there is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        if not os.path.isfile(path):
            return None
        content = file.read()
        is_executable = bool(os.fstat(fd).st_mode & 0o100)
        return Kept(digest=hashlib.sha256(content).hexdigest(), content=content, is_executable=is_executable)
