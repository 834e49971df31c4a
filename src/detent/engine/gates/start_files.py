"""The files of a session's start, from its first checkpoint: a copy of them, and which tests are new since."""

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from detent.core.checkpoint.manifest import Entry
from detent.core.testrun.runner_files import Role, roles, test_directory
from detent.engine.gates.changed import UNCHANGED, Before
from detent.engine.gates.copy import Copied
from detent.objects.universe import Request

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.objects.universe import Moment


class StartFiles:
    def __init__(self, files: Mapping[str, Entry], read: Callable[[str], bytes]) -> None:
        """`read` gives the content of a digest; it raises `Corrupt` if that is gone or damaged."""
        self._files, self._read = files, read

    def copied(self, place: "Place", moment: "Moment", *, tests_of_now: bool = True) -> Copied:
        """The project as it was; `tests_of_now`: with the tests of now and the settings and data that they use.

        A link that was changed since is as it is now.
        """
        present = present_files(moment)
        tests = _tests(present) if tests_of_now else frozenset()
        without = tuple(path for path in present if path not in self._files and path not in tests)
        replaced = {
            path: (self._read(entry.digest), entry.kind == "x")
            for path, entry in self._files.items()
            if entry.kind != "l" and entry != present.get(path) and path not in tests
        }
        return Copied(root=place.root, base=place.base, files=frozenset(present), without=without, replaced=replaced)

    def stood(self, test: str) -> bool:
        """Whether the file of the test had a test of that name; any test file, if the name has no file of the start."""
        path, _, rest = test.partition("::")
        function = (rest or path).rpartition("::")[2].partition("[")[0]
        is_named = re.compile(rb"\b" + re.escape(function.encode()) + rb"\b").search
        if path.endswith(".py") and path not in self._files:
            return False
        files = (path,) if path in self._files else tuple(roles(self._files))
        return any(is_named(self._read(self._files[each].digest)) for each in files)

    def content(self, path: str, now: Entry) -> "Before":
        """The content of a file as it was. A file that has not changed is not read."""
        entry = self._files.get(path)
        if entry is None or entry.kind == "l":
            return Before(None)
        return UNCHANGED if entry.digest == now.digest else Before(self._read(entry.digest))

    def changed(self, present: Mapping[str, Entry], patterns: Sequence[str]) -> tuple[str, ...]:
        """The files of these names that were added, changed or removed."""
        names = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))
        return tuple(
            path
            for path in sorted({*present, *self._files})
            if (names.match(path) or names.match(path.rpartition("/")[2]))
            and present.get(path) != self._files.get(path)
        )

    def has_new_tests(self, moment: "Moment") -> bool:
        present = present_files(moment)
        by_role = roles(present)
        return any(by_role.get(path) is Role.TEST and entry != self._files.get(path) for path, entry in present.items())


def present_files(moment: "Moment") -> dict[str, Entry]:
    look = moment.look(Request())
    return {path: row.entry for path, row in look.rows.items() if look.has(path)}


def _tests(present: Mapping[str, Entry]) -> frozenset[str]:
    """The files that tests are made of. A file with other settings than those of the runner is none of them."""
    by_role = roles(present)
    return frozenset(
        path
        for path in present
        if by_role.get(path) in (Role.TEST, Role.SETTINGS)
        or (test_directory(path) is not None and by_role.get(path) is None)
    )
