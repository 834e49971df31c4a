"""The files that test runners read: tests, helpers and snapshots beside them, and the runner's settings, by path.

They are found by the naming rules of the runners, without running anything. All runners count at once: a project may
use several, and a name that means something to one of them is rarely used for anything else. Data files below a test
directory have no role: a new test may bring its own. Those of the start are protected all the same.
"""

import re
import sys
from collections.abc import Collection, Iterable
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    #: A test, a helper or a snapshot.
    TEST = "test"
    #: A file that only steers a runner.
    SETTINGS = "settings"
    #: A file with a part that steers a runner.
    SHARED = "shared"
    #: A module that a runner loads in place of another one. It counts only if it is new: a project that had it before
    #: was tested with it.
    STAND_IN = "stand-in"


class Rules(NamedTuple):
    """The naming rules of one runner, as expressions for whole file names."""

    tests: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


_SCRIPT = r"[cm]?[jt]sx?"
RUNNERS: dict[str, Rules] = {
    "pytest": Rules(
        tests=(r"test_.*\.pyi?", r".*_test\.py"),
        settings=(r"conftest\.py", r"\.?pytest\.(?:ini|toml)", r"\.coveragerc", r"(?:site|user)customize\.py"),
    ),
    "unittest": Rules(tests=(r"test.*\.py",)),
    "tox": Rules(settings=(r"tox\.toml", r"noxfile\.py")),
    "jest": Rules(
        tests=(rf".*\.(?:test|spec)\.{_SCRIPT}", r".*\.snap"),
        settings=(r"jest[.-](?:config|setup)\..*", rf"setupTests\.{_SCRIPT}", r"\.npmrc", r"\.yarnrc(?:\.yml)?"),
    ),
    "vitest": Rules(settings=(r"vitest[.-](?:config|setup|workspace)\..*",)),
    "mocha": Rules(settings=(r"\.mocharc(?:\..*)?", r"mocha\.opts", r"\.(?:nyc|c8)rc(?:\..*)?", r"nyc\.config\..*")),
    "others": Rules(settings=(r"(?:playwright|cypress|ava|karma|wdio)[.-]conf(?:ig)?\..*", r"bunfig\.toml")),
    "make": Rules(settings=(r"(?:GNUm|[Mm])akefile", r"[Jj]ustfile", r"Taskfile\.ya?ml")),
    "cargo": Rules(settings=(r"nextest\.toml",)),
    "go": Rules(tests=(r".*_test\.go",)),
    "maven": Rules(
        tests=(r".*(?:Test|Tests|IT)\.(?:java|kt|groovy|scala)",), settings=(r"junit-platform\.properties",)
    ),
}
#: Settings that count only at their place.
_SETTINGS_PATHS = (
    r"(?:.*/)?\.cargo/config(?:\.toml)?",
    r"(?:.*/)?\.mvn/(?:maven|jvm)\.config",
    r"(?:.*/)?\.mvn/extensions\.xml",
    # An installed package at the top of the project brings plugins into the runner.
    r"(?:src/)?[^/]+\.(?:dist|egg)-info/entry_points\.txt",
)
#: A module of this name at the top of the project takes the place of the runner's own.
_SHADOWS = (
    r"(?:src/)?(?:_?pytest|pluggy|iniconfig|unittest|coverage|pytest_\w+|xdist|nose2)(?:\.pyc?|\.(?:.+\.)?so|/.*)"
)
#: Libraries of the runners. They and the standard library come after the top of the project on Python's path.
_LIBRARIES = ("colorama", "exceptiongroup", "execnet", "packaging", "py", "pygments", "tomli")
_LOADED = "|".join((*sorted(sys.stdlib_module_names - {"test"}), *_LIBRARIES))
_STAND_INS = rf"(?:src/)?(?:{_LOADED})(?:/__init__)?\.(?:pyc?|(?:.+\.)?so)"
_SHARED = (
    r"pyproject\.toml|setup\.cfg|tox\.ini|package\.json|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|vite\.config\..*"
)
#: Directories of tests. Code in them that is no test by name is a helper, if a test stands beside it or below.
_TEST_DIRECTORY = r"tests?|__tests__|__mocks__|__snapshots__|spec"
#: Where tests of Go keep their data.
_GO_DATA = "testdata"
_ALWAYS_TESTS = frozenset(("__tests__", "__mocks__", "__snapshots__"))
_CODE = rf"pyi?|{_SCRIPT}|rs|go|java|kts?|groovy|scala|rb|php|sh|bats"
is_code_name = re.compile(rf".*\.(?:{_CODE})").fullmatch
#: Code without its source stands in for a module as well.
_is_helper_name = re.compile(rf".*\.(?:{_CODE}|pyc|so|snap|feature|ambr)").fullmatch

_is_test_name = re.compile("|".join(f"(?:{rule})" for rules in RUNNERS.values() for rule in rules.tests)).fullmatch
_is_settings_name = re.compile(
    "|".join(f"(?:{rule})" for rules in RUNNERS.values() for rule in rules.settings)
).fullmatch
_is_settings_path = re.compile("|".join((*_SETTINGS_PATHS, _SHADOWS))).fullmatch
_is_stand_in = re.compile(_STAND_INS).fullmatch
_is_shared_name = re.compile(_SHARED).fullmatch
_is_test_directory = re.compile(_TEST_DIRECTORY).fullmatch


def roles(paths: Iterable[str]) -> dict[str, Role]:
    """The files among the paths that a runner reads, with their roles."""
    by_path: dict[str, Role] = {}
    helpers: list[tuple[str, str]] = []
    with_tests: set[str] = set()
    for path in paths:
        *directories, name = path.split("/")
        directory = test_directory(path)
        if _is_settings_name(name) or _is_settings_path(path):
            by_path[path] = Role.SETTINGS
        elif _is_shared_name(name):
            by_path[path] = Role.SHARED
        elif _is_test_name(name) or not _ALWAYS_TESTS.isdisjoint(directories):
            if directory is not None:
                with_tests.add(directory)
            if _is_helper_name(name) or not _ALWAYS_TESTS.isdisjoint(directories):
                by_path[path] = Role.TEST
        elif _is_stand_in(path):
            by_path[path] = Role.STAND_IN
        elif directory is not None and _is_helper_name(name) and directories[-1] != "__pycache__":
            helpers.append((path, directory))
            if _names_no_tests(name):
                with_tests.add(directory)
    by_path |= {path: Role.TEST for path, directory in helpers if directory in with_tests}
    return by_path


def test_directory(path: str) -> str | None:
    """The outermost directory of tests that the path is in."""
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if _is_test_directory(part):
            return "/".join(parts[: index + 1])
    return None


def is_test_data(path: str, with_tests: Collection[str]) -> bool:
    """Whether the file is data of tests. `with_tests` are the directories of tests that have any."""
    *directories, name = path.split("/")
    if is_code_name(name) or any(part.startswith((".", "__pycache__")) for part in (*directories, name)):
        return False
    return _GO_DATA in directories or test_directory(path) in with_tests


# pytest would take the name for a test.
test_directory.__test__ = False  # type: ignore[attr-defined]


def _names_no_tests(name: str) -> bool:
    """Whether tests of this language are known by their directory alone: cargo takes every file, mocha too."""
    return name.endswith((".rs", ".js", ".mjs", ".cjs", ".ts", ".java", ".kt", ".bats"))
