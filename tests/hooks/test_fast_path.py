"""What a call that is let through costs: almost nothing beyond starting the interpreter, because nothing is loaded."""

import json
import os
import subprocess
import sys

import pytest

from detent.core.testrun import detect
from detent.hooks.answer import may_test
from tests.support.hook_calls import BASH, READ, SLOW, WRITE
from tests.support.hooked_project import FAST, Place
from tests.support.test_commands import RUNS

SETTINGS = '[workflows.row]\nphases = [{ key = "06-implementation", gates = [{ kind = "tests" }] }, "08-code-review"]\n'


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("busy"), settings=SETTINGS)
    place.detent("start", "row", "Add search")
    return place


def loaded(place, event, client="claude-code", **fields):
    """The modules that the hook process imported, and what it said."""
    payload = {"session_id": "s-1", "cwd": str(place.root), "hook_event_name": event, **fields}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", str(FAST), client],
        cwd=place.root,
        env={"PATH": os.environ["PATH"]},
        input=json.dumps(payload).encode(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}, done.stdout.decode()


EDIT = {"tool_name": "Edit", "tool_input": {"file_path": "src/a.py", "old_string": "1", "new_string": "2"}}
MCP = {"tool_name": "mcp__demo__ping", "tool_input": {"msg": "hey"}}
AGENT = {"tool_name": "Agent", "tool_input": {"subagent_type": "software-developer", "prompt": "go"}}
DENIED = {"tool_name": "Bash", "tool_input": {"command": "rm -rf .workflow"}}


@pytest.mark.parametrize("call", [BASH, READ, WRITE, EDIT, MCP, AGENT], ids=lambda call: call["tool_name"])
def test_before_a_call_that_is_let_through_nothing_slow_is_loaded(busy, call):
    modules, said = loaded(busy, "PreToolUse", **call)

    assert said == ""
    assert "detent.core.guard.rules" in modules  # it was looked at
    assert modules & SLOW == set()


@pytest.mark.parametrize("call", [BASH, READ, WRITE, EDIT, MCP], ids=lambda call: call["tool_name"])
def test_after_an_ordinary_call_nothing_slow_is_loaded(busy, call):
    modules, said = loaded(busy, "PostToolUse", **call, tool_response={"stdout": "ok"})

    assert said == ""
    assert modules & SLOW == set()


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreCompact", "SessionEnd", "TaskCreated", "Notification"])
def test_at_an_event_that_means_nothing_here_nothing_slow_is_loaded(busy, event):
    modules, said = loaded(busy, event, prompt="hello")

    assert said == ""
    assert modules & SLOW == set()


@pytest.mark.parametrize(
    ("client", "event", "tool"), [("codex", "PreToolUse", "Bash"), ("gemini", "BeforeTool", "run_shell_command")]
)
@pytest.mark.parametrize("command", ["ls -la src", "rm -rf .workflow"])
def test_no_client_loads_anything_slow_or_another_client(busy, client, event, tool, command):
    modules, said = loaded(busy, event, client, tool_name=tool, tool_input={"command": command})

    assert ("deny" in said) == command.startswith("rm")
    assert modules & SLOW == set()
    rooms = {name for name in modules if name.startswith("detent.clients.")}
    assert rooms == {
        "detent.clients.registry",
        "detent.clients.dialect",
        f"detent.clients.{client}",
        f"detent.clients.{client}.dialect",
    }


def test_a_denial_is_not_slow_either(busy):
    modules, said = loaded(busy, "PreToolUse", **DENIED)

    assert '"permissionDecision":"deny"' in said
    assert modules & SLOW == set()


def test_the_measure_measures(busy):
    """A new conversation is told everything, and that takes all of it."""
    modules, said = loaded(busy, "SessionStart")

    assert "06-implementation" in said
    assert {"re", "msgspec", "typing"} <= modules


def test_the_client_does_not_wait_until_a_test_run_is_recorded(busy):
    run = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": "1 passed in 0.1s"}}

    modules, said = loaded(busy, "PostToolUse", **run)

    assert said == ""
    assert not modules & {"msgspec", "typing", "detent.hooks.handlers"}


def test_outside_of_a_project_not_even_the_rules_are_loaded(busy, tmp_path):
    modules, said = loaded(busy, "PreToolUse", **{**BASH, "cwd": str(tmp_path)})

    assert said == ""
    assert "detent.core.guard.rules" not in modules


@pytest.mark.parametrize(
    "command",
    [
        *(*RUNS, *detect._PLAIN),
        *("ls; pytest", "cat x | pytest", "ls\npytest", "cd tests && pytest", "X=1 pytest", "echo `pytest`"),
        *('cat "$(pytest)"', "ls &pytest", "PYTEST=1 ./cat pytest"),
    ],
)
def test_no_test_run_is_taken_for_an_ordinary_command(command):
    assert may_test(command)


@pytest.mark.parametrize(
    "command",
    [
        *("ls -la", "git diff", "python app.py", "make build", "go vet ./...", "sed -i s/a/b/ x"),
        *("cat tests/test_a.py", "ls tests | head -3", "grep -rn test_it src 2>/dev/null; wc -l test_a.py"),
    ],
)
def test_ordinary_commands_are_told_by_their_words(command):
    assert not may_test(command)


def test_the_script_that_python_compiles_at_every_call_is_short():
    """It costs 2 ms for 270 lines; everything else is imported from the cache."""
    assert len(FAST.read_text().splitlines()) < 30
