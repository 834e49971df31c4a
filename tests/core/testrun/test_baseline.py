"""The tests that stood at the start are not lost, and a part of the suite is not the whole."""

import re

import pytest

from detent.core.testrun.baseline import lost_tests, unaccepted
from detent.core.testrun.coverage_tool import TOOL_FILES, measures, measuring, settings_of
from detent.core.testrun.suite import Outcome, TestCase, suite_of
from detent.core.testrun.whole import selection


def test_a_test_is_lost_unless_it_passes():
    suite = suite_of(
        [
            TestCase("kept", Outcome.PASSED),
            TestCase("left out", Outcome.SKIPPED),
            TestCase("given up", Outcome.EXPECTED_FAIL),
            TestCase("broken", Outcome.FAILED),
            TestCase("new", Outcome.PASSED),
        ]
    )

    lost = lost_tests(["kept", "left out", "given up", "broken", "gone"], suite)

    assert lost == {
        "broken": Outcome.FAILED,
        "given up": Outcome.EXPECTED_FAIL,
        "gone": Outcome.MISSING,
        "left out": Outcome.SKIPPED,
    }
    assert list(unaccepted(lost, ["gone", "broken"])) == ["given up", "left out"]


def test_a_test_that_was_skipped_at_the_start_is_not_missed():
    before = suite_of([TestCase("a", Outcome.PASSED), TestCase("b", Outcome.SKIPPED), TestCase("c", Outcome.FAILED)])

    assert before.tried == {"a", "c"}


WHOLE = [
    "pytest",
    "pytest -q -ra --tb=short",
    "python -m pytest -vv",
    "uv run pytest -q",
    "PYTHONPATH=src pytest --cov=src --cov-report term",
    "timeout 60 pytest -n 4",
    "coverage run -m pytest -q",
    "cd /project && pytest -q | tail -3",
    "env -C /project pytest",
    "uv run --directory . pytest",
    "python -m unittest",
    "make test",
    "npm test",
    "npm test -- --coverage",
    "npx jest --ci --coverage",
    "npx vitest run",
    "go test ./... -race",
    "cargo test --workspace",
]
PARTS = {
    "pytest tests/test_a.py": "tests/test_a.py",
    "pytest -q tests": "tests",
    "pytest -k split": "-k",
    "pytest -m fast": "-m",
    "pytest --lf": "--lf",
    "pytest -x": "-x",
    "pytest --deselect a::b": "--deselect",
    "pytest --ignore=tests/test_b.py": "--ignore=tests/test_b.py",
    "pytest -p myplugin": "-p",
    "pytest -c other.ini": "-c",
    "pytest --some-unknown-option": "--some-unknown-option",
    "PYTEST_ADDOPTS='-k one' pytest": "PYTEST_ADDOPTS='-k",
    "cd sub && pytest": "cd sub",
    "pushd sub && pytest": "pushd sub",
    "builtin cd sub; pytest": "cd sub",
    "env -C sub pytest": "env -C sub",
    "env -Csub pytest": "env -Csub",
    "env --chdir=sub pytest": "env --chdir=sub",
    "uv run --directory sub pytest": "uv run --directory sub",
    "uv --directory sub run pytest -q": "uv --directory sub run",
    "poetry -C sub run pytest": "poetry -C sub run",
    "pnpm -C sub exec jest": "pnpm -C sub exec",
    "python -m unittest tests.test_a": "tests.test_a",
    "python -m unittest -k a": "-k",
    "npx jest a.test.js": "a.test.js",
    "npx jest -t adds": "-t",
    "npx vitest run src/a.test.ts": "src/a.test.ts",
    "npm test -- -t adds": "-t",
    "go test ./pkg": "./pkg",
    "go test ./... -run TestA": "-run",
    "cargo test adds": "adds",
    "make test ARGS=-k": "ARGS=-k",
    "tox -e py311": "-e",
}


@pytest.mark.parametrize("command", WHOLE)
def test_a_command_without_a_selection_runs_the_whole_suite(command):
    assert selection(command, "/project") is None


@pytest.mark.parametrize("command", PARTS)
def test_a_command_that_selects_runs_a_part(command):
    assert selection(command, "/project") == PARTS[command]


@pytest.mark.parametrize(
    ("file", "text", "is_tool"),
    [
        ("pyproject.toml", '[dependency-groups]\ndev = ["pytest-cov>=5"]', True),
        ("pyproject.toml", "[tool.coverage.run]\n", True),
        ("pyproject.toml", '[project]\ndependencies = ["discovery"]', False),
        ("requirements*.txt", "pytest\ncoverage==7\n", True),
        ("requirements*.txt", "# coverage is not used\npytest\n", False),
        ("package.json", '{"devDependencies": {"@vitest/coverage-v8": "1"}}', True),
        ("package.json", '{"devDependencies": {"vitest": "1"}}', False),
        ("package.json", '{"scripts": {"test": "jest --coverage"}}', True),
    ],
)
def test_a_coverage_tool_is_named_in_the_files_of_a_project(file, text, is_tool):
    assert bool(re.search(TOOL_FILES[file], text)) is is_tool


def test_a_runner_that_is_started_directly_has_settings_and_another_command_may_do_anything():
    assert "pyproject.toml" in settings_of(".venv/bin/python -m pytest -q")
    assert settings_of("go test ./...") == {}
    assert [settings_of(command) for command in ("make test", "npm test", "tox", None)] == [None] * 4


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("[pytest]\naddopts = -q --cov=x\n", True),
        ("[pytest]\naddopts =\n    -q\n    --cov\n", True),
        ('[tool.pytest.ini_options]\naddopts = ["-q", "--cov"]\n', True),
        ('addopts = """\n-q\n--cov\n"""\n', True),
        ("[pytest]\naddopts = -q\n[testenv]\ncommands =\n    pytest --cov {posargs}\n", False),
        ('addopts = ["-q"]\ncommand = "pytest --cov"\n', False),
    ],
)
def test_the_settings_of_pytest_ask_for_coverage_in_its_options_only(text, is_asked):
    assert bool(re.search(settings_of("pytest")["pyproject.toml"], text)) is is_asked


def test_a_command_may_measure_coverage_itself_and_another_is_named_that_would():
    assert [measures(line) for line in ("pytest --cov", "go test -cover ./...", "pytest -q", "make recover")] == [
        True,
        True,
        False,
        False,
    ]
    assert measuring("uv run pytest -q") == "`pytest --cov`"
    assert "such as" in measuring("make test")
