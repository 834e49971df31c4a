"""Coverage: whether a project has a tool that measures it, and which command would."""

import re

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


def names_tool(pattern: str, text: str) -> bool:
    """Whether a file that has a name of `TOOL_FILES` names a coverage tool."""
    return re.search(TOOL_FILES[pattern], text) is not None


def measures(command: str) -> bool:
    """Whether a test command asks for coverage itself."""
    return _IN_COMMAND.search(command) is not None


def measuring(command: str) -> str:
    """The command that would measure the coverage of these tests."""
    names = (runner(words) for words in simple_commands(command))
    known = next((_MEASURING[name] for name in names if name in _MEASURING), None)
    return f"`{known}`" if known else "a command that prints coverage, such as `pytest --cov`,"
