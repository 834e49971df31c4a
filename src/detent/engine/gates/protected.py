"""The protected files of a session: the tests and the runner's settings as they were when it began.

They are found by the naming rules of the runners (`core/testrun/runner_files.py`), and by the patterns of the gates.
The scripts that the test commands start are among them, and the data beside tests, which may hold what they expect.
Nothing is run. The contents are one document of the session, named by its digest and verified whenever it is read.
"""

import hashlib
import os
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from detent.core.path_text import from_text, to_text
from detent.core.testrun.runner_files import Role, is_test_data, roles, test_directory
from detent.core.testrun.runner_part import runner_part, with_runner_part
from detent.core.testrun.started_scripts import started_scripts
from detent.engine.gates.copy import Copied
from detent.engine.gates.inputs import matcher
from detent.engine.gates.stored import content_name
from detent.errors import Corrupt
from detent.objects.universe import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.config.place import Place
    from detent.objects.universe import Moment


#: The largest file of data that is kept, and the most of all of them.
MAX_DATA_FILE, MAX_DATA = 256 * 1024, 4 * 1024 * 1024
#: The files of a package that the interpreter runs.
_PACKAGE_FILES = ("/__init__.py", "/__init__.pyc", "/__main__.py")


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file as it was. Of a link it is the content that it leads to."""

    digest: str
    #: None for a file that git ignores: it may hold what must not be copied.
    content: bytes | None = None
    is_executable: bool = False
    #: Of a file that no naming rule tells: `settings` of a script, `test` of data.
    role: Role | None = None


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
    def take(cls, moment: "Moment", patterns: Iterable[str], commands: Iterable[str] = ()) -> "ProtectedFiles":
        """The protected files as they are now. `commands` are those of the gates that protect them."""
        base, present, kept = moment.universe.scope.base, _Present(moment, tuple(patterns)), {}
        for path in present.roles():
            file = _read(os.path.join(base, path))
            if file is not None:
                kept[path] = file if path in present.there else replace(file, content=None)
        others = present.there.difference(kept)
        for path in started_scripts(commands, present.there, lambda path: _text(os.path.join(base, path))) & others:
            if (file := _read(os.path.join(base, path))) is not None:
                kept[path] = replace(file, role=Role.SETTINGS)
        return cls(kept | _data(base, others.difference(kept), kept))

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
            if path in accepted or (there.get(path) or self._role(path)) not in only:
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
        return any(by_path.get(path, Role.TEST) is Role.TEST for path, kept in self.files.items() if kept.role is None)

    def _role(self, path: str) -> Role:
        kept = self.files.get(path)
        return Role.TEST if kept is None or kept.role is None else kept.role

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


def _data(base: str, paths: Iterable[str], kept: Collection[str]) -> dict[str, Kept]:
    """The files beside tests that are neither code nor hidden, up to the limits."""
    with_tests = {directory for path in kept if (directory := test_directory(path)) is not None}
    data, size = {}, 0
    for path in sorted(paths):
        if not is_test_data(path, with_tests):
            continue
        file = _read(os.path.join(base, path), MAX_DATA_FILE)
        length = len(file.content or b"") if file is not None else 0
        if file is not None and size + length <= MAX_DATA:
            data[path], size = replace(file, role=Role.TEST), size + length
    return data


def _text(path: str) -> str | None:
    file = _read(path, MAX_DATA_FILE)
    return (file.content or b"").decode("utf-8", "replace") if file is not None else None


def _is_same(before: Kept | None, now: Kept | None) -> bool:
    if before is None or now is None:
        return before is now
    return before.digest == now.digest and before.is_executable == now.is_executable


def _part(path: str, kept: Kept | None) -> dict[str, str] | None:
    return runner_part(path, kept.content if kept is not None else None)


def _read(path: str, most: int | None = None) -> Kept | None:
    """The file at the path, or what a link at the path leads to; None without a file of at most `most` bytes."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        if not os.path.isfile(path) or (most is not None and os.fstat(fd).st_size > most):
            return None
        content = file.read()
        is_executable = bool(os.fstat(fd).st_mode & 0o100)
        return Kept(digest=hashlib.sha256(content).hexdigest(), content=content, is_executable=is_executable)
