"""Looks at a directory before it becomes a project: how its tests are run, what they need, and whether it has CI.

Reads files only, and runs nothing.
"""

import glob
import json
import os
import re
import tomllib
from collections.abc import Iterator

import msgspec

_MAX_BYTES = 1024 * 1024
_MAKE_TEST = re.compile(r"^(test|check)\s*:(?!=)", re.MULTILINE)
_PYTEST = "pytest -q"
_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")
_PYTEST_SECTION = re.compile(r"^\[(tool:pytest|pytest)\]", re.MULTILINE)
_TEST_GLOBS = ("tests/**/test_*.py", "tests/**/*_test.py", "test/**/test_*.py", "test_*.py", "src/**/test_*.py")
#: Files that name the packages which the project needs.
_REQUIREMENTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "requirements-dev.txt", "tox.ini")
_MOST_READ = 50
#: The lock file of a package manager, and its command.
_NODE = {
    "pnpm-lock.yaml": "pnpm test",
    "yarn.lock": "yarn test",
    "bun.lockb": "bun run test",
    "bun.lock": "bun run test",
}
_NO_TEST = "no test specified"
_CI = (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile")
_ENV_EXAMPLES = (".env.example", ".env.sample", ".env.template")
_VARIABLE = re.compile(r"^(?:export\s+)?([A-Z][A-Z0-9_]*)=", re.MULTILINE)
_MOST_VARIABLES = 10


class TestCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A way to run the tests of the project, and the file that shows it."""

    command: str
    source: str


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    #: The most specific one first: its output is read best.
    tests: tuple[TestCommand, ...] = ()
    #: Variables that the tests need, as `NAME=value`.
    env: tuple[str, ...] = ()
    #: Names of variables that the project's example of an environment has.
    named: tuple[str, ...] = ()
    ci: tuple[str, ...] = ()


def discover(root: str) -> Discovered:
    tests = tuple(_tests(root))
    is_python = any("pytest" in each.command or "unittest" in each.command for each in tests)
    ci = tuple(path for pattern in _CI for path in _matching(root, pattern))
    return Discovered(
        tests=tests,
        env=("PYTHONPATH=src",) if is_python and _needs_source_path(root) else (),
        named=_named(root),
        ci=ci,
    )


def _tests(root: str) -> Iterator[TestCommand]:
    if (source := _pytest_source(root)) is not None:
        yield TestCommand(command=_module(root, _PYTEST), source=source)
    elif test_files := [path for pattern in _TEST_GLOBS for path in _matching(root, pattern)]:
        yield TestCommand(command=_python_tests(root, test_files[:_MOST_READ]), source=test_files[0])
    if _node_script(root):
        command = next((command for lock, command in _NODE.items() if _exists(root, lock)), "npm test")
        yield TestCommand(command=command, source="package.json")
    for file, command in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./...")):
        if _exists(root, file):
            yield TestCommand(command=command, source=file)
    for file in ("Makefile", "makefile", "GNUmakefile"):
        if (target := _MAKE_TEST.search(_text(root, file))) is not None:
            yield TestCommand(command=f"make {target[1]}", source=file)
            return


def _pytest_source(root: str) -> str | None:
    """The file that shows that the tests are run with pytest."""
    if (file := next((file for file in _PYTEST_FILES if _exists(root, file)), None)) is not None:
        return file
    if "pytest" in _table(root, "pyproject.toml").get("tool", {}):
        return "pyproject.toml"
    sections = (file for file in ("setup.cfg", "tox.ini") if _PYTEST_SECTION.search(_text(root, file)))
    return next(sections, None)


def _python_tests(root: str, test_files: list[str]) -> str:
    """pytest runs every test. Where nothing names it and all tests are unittest's, Python runs them itself."""
    texts = [_text(root, path) for path in test_files]
    needs_pytest = any("pytest" in _text(root, file) for file in _REQUIREMENTS) or not all(
        "unittest" in text and "pytest" not in text for text in texts
    )
    if needs_pytest or _matching(root, "*venv/lib/python*/site-packages/pytest"):
        return _module(root, _PYTEST)
    # unittest enters a package from the top, and no other directory.
    directory = test_files[0].partition("/")[0] if "/" in test_files[0] else ""
    is_entered = not directory or _exists(root, f"{directory}/__init__.py")
    return _module(root, "unittest" if is_entered else f"unittest discover -s {directory}")


def _module(root: str, module: str) -> str:
    """The command that runs a module of Python, with the project's own interpreter where it has one."""
    interpreters = (
        *((f"{directory}/bin/python", f"{directory}/bin/python") for directory in (".venv", "venv")),
        *((f"{tool}.lock", f"{tool} run python") for tool in ("uv", "poetry", "pdm")),
    )
    own = next((command for file, command in interpreters if _exists(root, file)), "python3")
    return f"{own} -m {module}"


def _needs_source_path(root: str) -> bool:
    """Whether the packages are in `src`, and neither pytest's settings nor an installation lead there."""
    if not _matching(root, "src/*/__init__.py"):
        return False
    if any("pythonpath" in _text(root, file) for file in ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini")):
        return False
    links = ("*.pth", "*.egg-link", "__editable__*")
    places = (f"{venv}/lib/python*/site-packages/{link}" for venv in (".venv", "venv") for link in links)
    return not any(_matching(root, place) for place in places)


def _node_script(root: str) -> bool:
    try:
        package = json.loads(_text(root, "package.json") or "{}")
    except (ValueError, RecursionError):
        return False
    scripts = package.get("scripts") if isinstance(package, dict) else None
    test = scripts.get("test") if isinstance(scripts, dict) else None
    return isinstance(test, str) and bool(test.strip()) and _NO_TEST not in test


def _named(root: str) -> tuple[str, ...]:
    names = (name for file in _ENV_EXAMPLES for name in _VARIABLE.findall(_text(root, file)))
    return tuple(dict.fromkeys(names))[:_MOST_VARIABLES]


def _table(root: str, file: str) -> dict[str, dict[str, object]]:
    try:
        return tomllib.loads(_text(root, file))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _exists(root: str, path: str) -> bool:
    return os.path.exists(os.path.join(root, path))


def _matching(root: str, pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, root_dir=root, recursive=True))


def _text(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return ""


def settings_text(tests: str | None, agent: str | None, discovered: Discovered) -> str:
    """A `detent.toml` with comments: what was chosen, and what can be changed."""
    named = ", ".join(json.dumps(name) for name in (*discovered.env, *discovered.named) or ("DATABASE_URL",))
    lines = [
        "# The settings of Detent. Every line may be left out.",
        "# detent schema detent.toml shows all settings.",
        "",
        "# A budget stops a run; light, standard or epic, or a table of limits.",
        '# budget = "standard"',
        "",
        "[run]",
        "# The command that decides whether the tests pass. Detent runs it itself.",
        f"tests = {json.dumps(tests)}" if tests else '# tests = "make test"',
        "# Variables of that command: NAME=value sets one, NAME passes it on.",
        "# Tests get no other variables of your shell.",
        f"env = [{', '.join(map(json.dumps, discovered.env))}]" if discovered.env else f"# env = [{named}]",
        *(
            [f"# Others that this project names: {', '.join(discovered.named)}"]
            if discovered.env and discovered.named
            else []
        ),
        "# The agent that detent run gives the work to.",
        f"agent = {json.dumps(agent)}" if agent else '# agent = "NAME"',
        "# The workflow of detent run; detent workflows lists them.",
        '# workflow = "feature"',
        '# "session" works in a git worktree, on a branch of its own.',
        '# isolation = "session"',
        "# Ignored files to which the worktree gets links.",
        '# link = [".venv", "node_modules"]',
        "",
        "# What a phase asks for. A person must agree before the review is finished:",
        "# [phases.08-code-review]",
        '# gates = [{ kind = "approval" }]',
        '# instructions = "What the agent of this phase should know."',
    ]
    return "\n".join(lines) + "\n"
