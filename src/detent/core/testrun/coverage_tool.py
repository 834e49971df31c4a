"""Coverage: whether a project has a tool that measures it, and which command would."""

import re
from collections.abc import Mapping

from detent.core.guard.shell.walk import simple_commands
from detent.core.testrun.detect import runner

#: Name of a file, as a pattern, to the words in it that name a coverage tool.
TOOL_FILES = {
    "pyproject.toml": r"\bpytest[-_]cov\b|\bcoverage\b",
    "setup.cfg": r"\bpytest[-_]cov\b|\bcoverage\b",
    "setup.py": r"\bpytest[-_]cov\b|\bcoverage\b",
    "tox.ini": r"\bpytest[-_]cov\b|\bcoverage\b",
    "requirements*.txt": r"(?m)^(?:pytest[-_]cov|coverage)\b",
    "requirements/*.txt": r"(?m)^(?:pytest[-_]cov|coverage)\b",
    "poetry.lock": r'"(?:pytest[-_]cov|coverage)"',
    "uv.lock": r'"(?:pytest[-_]cov|coverage)"',
    "Pipfile": r"\bpytest[-_]cov\b|\bcoverage\b",
    "package.json": r'"(?:@vitest/coverage-\w+|nyc|c8)"|--coverage\b|"collectCoverage"\s*:\s*true',
    "pom.xml": r"jacoco",
    "build.gradle*": r"jacoco|kover",
}
#: The options that pytest always gets, as text or as a list, on one line or on several.
_ADDED = r'\baddopts\s*=\s*(?:\[[^\]]*|"""[^"]*|[^\n]*(?:\n[ \t]+[^\n]*)*?)--cov\b'
#: Runner to the settings, by name of the file, with which it measures coverage without being asked in the command.
_SETTINGS = {
    "pytest": dict.fromkeys(("pyproject.toml", "pytest.ini", ".pytest.ini", "setup.cfg", "tox.ini"), _ADDED),
    "jest": dict.fromkeys(("package.json", "jest.config.*"), r"collectCoverage\b"),
    "vitest": dict.fromkeys(("vitest.config.*", "vite.config.*"), r"\bcoverage\b"),
}
_IN_COMMAND = re.compile(r"--?cov(?:er(?:age)?)?\b|\bcoverage\b|\btarpaulin\b|\bllvm-cov\b|\bnyc\b|\bc8\b")
_MEASURING = {
    "pytest": "pytest --cov",
    "unittest": "coverage run -m unittest && coverage report",
    "jest": "jest --coverage",
    "vitest": "vitest run --coverage",
    "go": "go test -cover ./...",
    "cargo": "cargo llvm-cov",
    "node": "node --test --experimental-test-coverage",
}


def settings_of(command: str | None) -> Mapping[str, str] | None:
    """The settings in which the runner of the command may be asked for coverage; None if it is not started directly."""
    started = (runner(words) for words in simple_commands(command or ""))
    known = next((name for name in started if name in _MEASURING), None)
    return None if known is None else _SETTINGS.get(known, {})


def measures(command: str) -> bool:
    """Whether a test command asks for coverage itself."""
    return _IN_COMMAND.search(command) is not None


def measuring(command: str) -> str:
    """The command that would measure the coverage of these tests."""
    names = (runner(words) for words in simple_commands(command))
    known = next((_MEASURING[name] for name in names if name in _MEASURING), None)
    return f"`{known}`" if known else "a command that prints coverage, such as `pytest --cov`,"
