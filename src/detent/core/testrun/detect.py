"""Test detection: the test runner that a simple command calls, by its words. Quotes are already removed."""

import re
from collections.abc import Callable, Collection

from detent.core.guard.shell.prefixes import command_start

Words = list[str]
Detector = Callable[[Words], str | None]


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*|py")


def runner(words: Words) -> str | None:
    """The name of the runner; None for a command that runs no tests, even if it names a runner or asks it for help."""
    words = behind_prefixes(words)
    if not words or not _ASKS.isdisjoint(words):
        return None
    tool = tool_name(words[0])
    if tool in _PLAIN:
        return _PLAIN[tool]
    return _TOOLS[tool](words[1:]) if tool in _TOOLS else None


def behind_prefixes(words: Words) -> Words:
    while words:
        start = 1 if _ASSIGNMENT.match(words[0]) else command_start(tool_name(words[0]), words)[0]
        if not start:
            break
        words = words[start:]
    return words


def tool_name(word: str) -> str:
    """The name of a program without its directory and version; every Python is `python`."""
    name = re.split(r"[/\\]", word)[-1].removesuffix(".exe").removesuffix(".cmd")
    return "python" if _PYTHON.fullmatch(name) else name


def after_options(words: Words, valued: Collection[str] = ()) -> Words:
    """The words from the first that is neither an option nor the value of an option."""
    index = 0
    while index < len(words) and words[index].startswith(("-", "+")):
        if words[index] == "--":
            return words[index + 1 :]
        index += 2 if words[index] in valued else 1
    return words[index:]


#: Options with which a runner prints information and runs no test.
_ASKS = frozenset(
    (
        *("--help", "-h", "--version", "--dry-run", "--just-print"),
        *("--collect-only", "--co", "--fixtures", "--markers", "--setup-plan"),
        *("--list", "--listTests", "--list-tests", "--no-run", "--showConfig"),
    )
)

#: Programs that run tests whatever they are told.
_PLAIN: dict[str, str] = {
    "ava": "ava",
    "bats": "bats",
    "behave": "behave",
    "busted": "busted",
    "cargo-nextest": "nextest",
    "ctest": "ctest",
    "cucumber": "cucumber",
    "ginkgo": "go",
    "gotestsum": "go",
    "jasmine": "jasmine",
    "jest": "jest",
    "karma": "karma",
    "mocha": "mocha",
    "nose2": "unittest",
    "nosetests": "unittest",
    "nox": "nox",
    "paratest": "phpunit",
    "pest": "phpunit",
    "phpunit": "phpunit",
    "prove": "prove",
    "py.test": "pytest",
    "pytest": "pytest",
    "pytest-3": "pytest",
    "rspec": "rspec",
    "tap": "tap",
    "tape": "tape",
    "tox": "tox",
    "vitest": "vitest",
}


def _verb(names: dict[str, str], valued: Collection[str] = ()) -> Detector:
    """A tool whose first word that is no option says what it does."""

    def find(words: Words) -> str | None:
        verb = after_options(words, valued)[:1]
        return names.get(verb[0]) if verb else None

    return find


def _target(name: str, pattern: str) -> Detector:
    """A tool that is given any number of targets, one of which runs tests."""
    is_test = re.compile(pattern)
    return lambda words: name if any(is_test.fullmatch(word) for word in words) else None


_SCRIPT_VALUED = ("-w", "--workspace", "--prefix", "-C", "--dir", "--filter", "-F", "--cwd")


def _script(name: str) -> Detector:
    """npm and its kin: `test`, or `run` and a script that is named for tests. yarn and pnpm also run a program so."""

    def find(words: Words) -> str | None:
        words = after_options(words, _SCRIPT_VALUED)
        if words and words[0] in ("run", "run-script"):
            words = after_options(words[1:], _SCRIPT_VALUED)
        elif words and name != "npm" and words[0] in _PLAIN:
            return _PLAIN[words[0]]
        elif name == "npm" and words[:1] in (["t"], ["tst"]):
            return name
        return name if words and re.fullmatch(r"tests?(?:[:_-].*)?", words[0]) else None

    return find


_MODULES = {"pytest", "unittest", "nose2", "tox", "nox", "behave", "doctest"}


def _python(words: Words) -> str | None:
    while words and words[0].startswith("-") and words[0] != "-m":
        if words[0] == "-c":
            return None
        words = words[2:] if words[0] in ("-W", "-X") else words[1:]
    if words[:1] == ["-m"]:
        module = words[1] if len(words) > 1 else ""
        return _coverage(words[2:]) if module == "coverage" else module if module in _MODULES else None
    if words[1:2] == ["test"] and tool_name(words[0]) == "manage.py":
        return "django"
    return _PLAIN.get(tool_name(words[0])) if words else None


_COVERAGE_VALUED = ("--source", "--rcfile", "--omit", "--include", "--data-file")


def _coverage(words: Words) -> str | None:
    if words[:1] != ["run"]:
        return None
    words = words[1:]
    while words and words[0].startswith("-") and words[0] != "-m":
        words = words[2:] if words[0] in _COVERAGE_VALUED else words[1:]
    return _python(words)


_NODE_VALUED = ("-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file")


def _node(words: Words) -> str | None:
    script = after_options(words, _NODE_VALUED)
    if "--test" in words[: len(words) - len(script)]:
        return "node"
    return _PLAIN.get(tool_name(script[0]).removesuffix(".js").removesuffix(".mjs")) if script else None


def _go(words: Words) -> str | None:
    # With -c and -list the tests are only compiled or named.
    return None if {"-c", "-list"} & set(words) else _verb({"test": "go"}, ("-C",))(words)


_TARGET = r"(?:tests?|check|unit-?tests?)(?:[-_:].*)?"
_MAVEN = _target("maven", r"test|verify|integration-test|(?:.*:)?(?:surefire|failsafe)(?:-maven-plugin)?:\S+")
_GRADLE = _target("gradle", r"(?:[\w.:-]*:)?(?:check|test|(?!assemble|compile|clean)\w+Test)")

_TOOLS: dict[str, Detector] = {
    "artisan": _verb({"test": "phpunit"}),
    "bun": _verb({"test": "bun"}),
    "cargo": _verb(
        {"test": "cargo", "t": "cargo", "nextest": "nextest", "tarpaulin": "cargo", "llvm-cov": "cargo"},
        ("--manifest-path", "--config", "-C", "--color", "-Z"),
    ),
    "coverage": _coverage,
    "cypress": _verb({"run": "cypress"}),
    "dart": _verb({"test": "dart"}),
    "deno": _verb({"test": "deno"}),
    "dotnet": _verb({"test": "dotnet", "vstest": "dotnet"}),
    "flutter": _verb({"test": "flutter"}),
    "gmake": _target("make", _TARGET),
    "go": _go,
    "gradle": _GRADLE,
    "gradlew": _GRADLE,
    "hatch": _verb({"test": "pytest"}),
    "just": _target("just", _TARGET),
    "lein": _verb({"test": "lein"}),
    "make": _target("make", _TARGET),
    "manage.py": _verb({"test": "django"}),
    "mix": _verb({"test": "exunit"}),
    "mvn": _MAVEN,
    "mvnw": _MAVEN,
    "node": _node,
    "npm": _script("npm"),
    "playwright": _verb({"test": "playwright"}),
    "pnpm": _script("pnpm"),
    "python": _python,
    "rails": _verb({"test": "minitest", "spec": "rspec"}),
    "rake": _target("rake", r"test(?::.*)?|spec"),
    "sbt": _target("sbt", r"(?:\w+/)?test(?:Only|Quick)?(?: .*)?"),
    "swift": _verb({"test": "swift"}),
    "task": _target("task", _TARGET),
    "tsx": _node,
    "yarn": _script("yarn"),
    "zig": _verb({"test": "zig"}),
}
