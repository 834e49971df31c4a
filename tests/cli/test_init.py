"""`detent init` looks at the directory, asks three questions at a terminal, and writes settings that can be used."""

import re

import pytest

from detent.config.discovery import Discovered, discover, settings_text
from detent.config.settings import parse_settings
from detent.core.gate import gate_name
from detent.engine.project import open_project
from tests.support.command import Tool
from tests.support.project import write
from tests.support.typed_terminal import Terminal

PACKAGE = '{"scripts": {"test": "vitest run"}}'
UNITTEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self): pass\n"


@pytest.fixture
def tool(tmp_path):
    made = Tool(tmp_path / "shop")
    made.directory.mkdir()
    return made


def files(root, **named):
    for path, text in named.items():
        write(root, path, text)


@pytest.mark.parametrize(
    ("given", "commands"),
    [
        ({}, []),
        ({"pytest.ini": ""}, ["python3 -m pytest -q"]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["python3 -m pytest -q"]),
        ({"setup.cfg": "[tool:pytest]\n"}, ["python3 -m pytest -q"]),
        ({"tests/test_a.py": ""}, ["python3 -m pytest -q"]),
        ({"tests/test_a.py": "", ".venv/bin/python": ""}, [".venv/bin/python -m pytest -q"]),
        ({"tests/test_a.py": "", "uv.lock": ""}, ["uv run python -m pytest -q"]),
        ({"test_a.py": UNITTEST}, ["python3 -m unittest"]),
        ({"tests/test_a.py": UNITTEST}, ["python3 -m unittest discover -s tests"]),
        ({"tests/test_a.py": UNITTEST, "tests/__init__.py": ""}, ["python3 -m unittest"]),
        ({"tests/test_a.py": UNITTEST, "tests/test_b.py": "def test_b(): pass\n"}, ["python3 -m pytest -q"]),
        ({"tests/test_a.py": UNITTEST, "requirements.txt": "pytest\n"}, ["python3 -m pytest -q"]),
        ({"package.json": PACKAGE}, ["npm test"]),
        ({"package.json": PACKAGE, "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"package.json": "not json"}, []),
        ({"Cargo.toml": ""}, ["cargo test"]),
        ({"go.mod": ""}, ["go test ./..."]),
        ({"Makefile": "all:\n\ntest: all\n\tpytest\n"}, ["make test"]),
        ({"Makefile": "TEST := 1\ncheck:\n\ttrue\n"}, ["make check"]),
        ({"Makefile": "test:\n", "pytest.ini": ""}, ["python3 -m pytest -q", "make test"]),
    ],
)
def test_the_tests_are_found(tmp_path, given, commands):
    files(tmp_path, **given)

    assert [each.command for each in discover(str(tmp_path)).tests] == commands


@pytest.mark.parametrize(
    ("more", "env"),
    [
        ({}, ("PYTHONPATH=src",)),
        ({"pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n'}, ()),
        ({".venv/lib/python3.11/site-packages/__editable__.shop.pth": ""}, ()),
    ],
)
def test_packages_in_src_need_a_path_unless_something_leads_there(tmp_path, more, env):
    files(tmp_path, **{"src/shop/__init__.py": "", "tests/test_shop.py": "", **more})

    assert discover(str(tmp_path)).env == env


def test_ci_and_named_variables_are_found(tmp_path):
    files(tmp_path, **{".github/workflows/test.yml": "", ".env.example": "DATABASE_URL=\n# no\nexport REDIS_URL=x\n"})

    found = discover(str(tmp_path))

    assert found.ci == (".github/workflows/test.yml",)
    assert found.named == ("DATABASE_URL", "REDIS_URL")


@pytest.mark.parametrize("env", [(), ("PYTHONPATH=src",)])
def test_every_line_of_the_settings_can_be_used(env):
    found = Discovered(env=env, named=("DATABASE_URL",))
    text = settings_text("pytest -q", "codex", found)
    settings = parse_settings(text, "detent.toml")

    assert (settings.run.tests, settings.run.agent, settings.run.env) == ("pytest -q", "codex", env)
    whole = re.sub(r"^# (?=\[|[a-z]+ = )", "", text, flags=re.MULTILINE)
    assert parse_settings(whole, "detent.toml").run.isolation == "session"
    assert parse_settings(settings_text(None, None, Discovered()), "detent.toml").run.tests is None


def test_without_a_terminal_it_says_what_it_found_and_writes_nothing_but_the_state(tool):
    files(tool.directory, **{"pytest.ini": "", "Makefile": "test:\n"})

    said = tool("init").ok().out

    assert "tests: python3 -m pytest -q (pytest.ini)" in said
    assert "tests: make test (Makefile)" in said
    assert "detent init --yes" in said
    assert not (tool.directory / "detent.toml").exists()


def test_with_yes_it_writes_what_it_found_and_a_session_uses_it(tool):
    files(tool.directory, **{"src/shop/__init__.py": "", "tests/test_shop.py": "def test_it(): pass\n"})

    answer = tool("init", "--yes", "--json").ok().json()

    assert answer["changed"] == ["detent.toml"]
    assert answer["found"]["env"] == ["PYTHONPATH=src"]
    with open_project(tool.directory) as project:
        session = project.start("fix", "Mend it").state
    gates = {gate_name(gate): gate for gate in session.workflow.by_key["06-implementation"].gates}
    assert gates["tests"].runnable() == "python3 -m pytest -q"
    assert gates["tests"].env == ("PYTHONPATH=src",)


@pytest.mark.parametrize(("settings", "workflow"), [("[run]\nworkflow = 'fix'\n", "fix"), ("", "feature")])
def test_the_session_that_it_proposes_has_the_workflow_of_the_settings(tool, settings, workflow):
    files(tool.directory, **{"detent.toml": settings})

    assert f'detent start {workflow} "TASK"' in tool("init").out


def test_settings_that_are_there_are_never_written_over(tool):
    files(tool.directory, **{"detent.toml": "# mine\n", "pytest.ini": ""})

    tool("init", "--yes").ok()

    assert (tool.directory / "detent.toml").read_text() == "# mine\n"


def test_at_a_terminal_three_questions_are_asked(tool):
    files(tool.directory, **{"pytest.ini": ""})
    with Terminal(tool.directory, tool.environment, "init") as terminal:
        terminal.expect("found: python3 -m pytest -q (pytest.ini)")
        terminal.type("pytest -x\n")
        terminal.expect("Which agent does the work of detent run: claude-code, codex, gemini?")
        terminal.type("codecks\n")
        terminal.expect("'codecks' is none of claude-code, codex, gemini")
        terminal.type("codex\n")
        terminal.expect("Install hooks, which hold your own conversations in Codex")
        terminal.type("\n")
        terminal.expect("tests: pytest -x")
        terminal.expect("agent: codex")
        terminal.expect("wrote detent.toml")
        assert terminal.process.wait(20) == 0

    settings = parse_settings((tool.directory / "detent.toml").read_text(), "detent.toml")
    assert (settings.run.tests, settings.run.agent) == ("pytest -x", "codex")
    assert (tool.directory / ".codex" / "hooks.json").exists()


def test_none_is_an_answer(tool):
    with Terminal(tool.directory, tool.environment | {"PATH": "/usr/bin:/bin"}, "init") as terminal:
        terminal.expect("Which command runs the tests?")
        terminal.type("-\n")
        terminal.expect("Which agent")
        terminal.type("-\n")
        terminal.expect("wrote detent.toml")

    text = (tool.directory / "detent.toml").read_text()
    assert '# tests = "make test"' in text
    assert '# agent = "NAME"' in text
