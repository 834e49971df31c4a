"""Checks run with the programs of the session's start, whatever the shell has in which they are run."""

import os
import shutil
import sys

import msgspec
import pytest

from detent.engine.gates import checks
from detent.engine.gates.environment import environment_of
from tests.support.command import DETENT, Tool
from tests.support.gated import WITHOUT_PLUGINS, started
from tests.support.project import build_project, write

SUITE = "def test_one():\n    assert True\n\n\ndef test_two():\n    assert False\n"
PYTEST = f"{sys.executable} -m pytest -q {WITHOUT_PLUGINS}"
#: Marks an agent's shell.
AGENT = {"DETENT_PHASE": "work"}


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def project(root, command, *, kind="tests", more=""):
    """A tool in a project whose only phase has one gate, called `check`."""
    gate = f'{{ kind = "{kind}", name = "check", command = "{command}"{more} }}'
    build_project(root, f'[workflows.short]\nphases = [{{ key = "work", gates = [{gate}] }}, "after"]\n')
    return Tool(root)


def verdict(tool, **environment):
    """Run the check; its verdict and its reason."""
    answer = tool("gate", "run", "check", "--json", **environment)
    assert answer.code in (0, 3), answer.err
    [judged] = answer.json()["gates"]["work"]
    return judged["verdict"], judged["reason"]


def with_path(*directories):
    return {"PATH": ":".join((*map(str, directories), os.environ["PATH"]))}


# What an agent puts into its shell has no effect


def poisons(root):
    # Detent is a Python program too, and goes on.
    passes = "import os, sys\nif 'pytest' in sys.orig_argv:\n    os.write(1, b'2 passed in 0.1s')\n    os._exit(0)\n"
    write(root, "evil/sitecustomize.py", passes)
    write(root, "plugins/plugin.py", passes)
    write(root, "evil/profile.sh", "echo '2 passed in 0.1s'; exit 0\n")
    site = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages/usercustomize.py"
    write(root, f"evil/.local/{site}", passes)
    for name in ("python3", "python", "pytest", "bash", "sh"):
        program(root / "evil" / name, "echo '2 passed in 0.1s'")
    evil = str(root / "evil")
    return {
        "PYTEST_ADDOPTS": {"PYTEST_ADDOPTS": "-k one"},
        "PYTEST_PLUGINS": {"PYTEST_PLUGINS": "plugin", "PYTHONPATH": str(root / "plugins")},
        "PYTHONPATH": {"PYTHONPATH": evil},
        "HOME": {"HOME": evil},
        "PATH": {"PATH": f"{evil}:{os.environ['PATH']}"},
        "BASH_ENV": {"BASH_ENV": f"{evil}/profile.sh", "ENV": f"{evil}/profile.sh"},
        "function": {"BASH_FUNC_python3%%": "() { echo '2 passed in 0.1s'; }"},
    }


@pytest.fixture(scope="module")
def red(tmp_path_factory):
    """A project with a red suite, whose tests are run by a program on PATH."""
    root = tmp_path_factory.mktemp("red")
    tools = tmp_path_factory.mktemp("tools")
    program(tools / "python3", f'exec {sys.executable} "$@"')
    write(root, "test_suite.py", SUITE)
    tool = project(root, f"python3 -m pytest -q {WITHOUT_PLUGINS}")
    tool.environment |= with_path(tools)
    tool("start", "short", "try it").ok()
    return root, tool, poisons(root)


@pytest.mark.parametrize(
    "how", ["PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONPATH", "HOME", "PATH", "BASH_ENV", "function"]
)
def test_a_poisoned_shell_does_not_make_a_red_suite_green(red, how):
    _, tool, poison = red

    assert verdict(tool, **poison[how])[0] == "FAIL"


def test_the_environment_is_made_of_the_list_and_of_what_the_gate_declares(tmp_path, monkeypatch):
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "NODE_OPTIONS", "VIRTUAL_ENV", "GIT_DIR", "SECRET", "GIVEN"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LANG", "C.UTF-8")
    environment = tmp_path / "seen"
    gate = f'{{ kind = "command", command = "env > {environment}", env = ["GIVEN", "PYTHONPATH=src"] }}'
    _, handle = started(tmp_path / "project", gate)

    handle.gates.check("command", phase="work", env={"DETENT_RUN": "r1"})

    seen = dict(line.split("=", 1) for line in environment.read_text().splitlines())
    assert seen.keys().isdisjoint({"LD_LIBRARY_PATH", "NODE_OPTIONS", "VIRTUAL_ENV", "GIT_DIR", "SECRET"})
    expected = {"GIVEN": "x", "PYTHONPATH": "src", "LANG": "C.UTF-8", "DETENT_RUN": "r1"}
    assert seen.items() >= expected.items()


def test_what_a_check_runs_is_no_person(tmp_path):
    tool = project(tmp_path, f"{DETENT} skip after --reason no", kind="command")
    tool("start", "short", "try it").ok()

    verdict_, reason = verdict(tool)

    assert verdict_ == "FAIL", reason
    assert "pending" in str(tool("status", "--json").json())
    assert "skipped" not in str(tool("status", "--json").json()["phases"])


# What people have on their machines works


def test_the_programs_of_an_activated_virtualenv_are_found(tmp_path):
    program(tmp_path / ".venv/bin/checker", "exit 0")
    tool = project(tmp_path, "checker", kind="command")
    person = {**with_path(tmp_path / ".venv/bin"), "VIRTUAL_ENV": str(tmp_path / ".venv")}

    tool("start", "short", "try it", **person).ok()

    assert verdict(tool, **person)[0] == "PASS"
    # Another shell, in which it is not activated.
    assert verdict(tool)[0] == "PASS"


def test_a_virtualenv_that_an_agent_had_on_its_path_is_not_trusted_and_is_named(tmp_path):
    program(tmp_path / ".venv/bin/checker", "exit 0")
    tool = project(tmp_path, "checker", kind="command")
    agent = {**with_path(tmp_path / ".venv/bin"), **AGENT}

    tool("start", "short", "try it", **agent).ok()

    kind, reason = verdict(tool, **agent)
    assert kind == "ERROR"
    assert f"PATH lacked {tmp_path}/.venv/bin" in reason


@pytest.mark.parametrize("manager", ["pyenv", "asdf", "direnv"])
def test_version_managers_find_their_programs(tmp_path, manager):
    home = tmp_path / "home"
    root = tmp_path / "project"
    program(home / "versions/3.11/bin/checker", "exit 0")
    match manager:
        case "pyenv":
            shim = program(home / "shims/checker", 'exec "$PYENV_ROOT/versions/$PYENV_VERSION/bin/checker"')
            person = {"PYENV_ROOT": str(home), "PYENV_VERSION": "3.11"}
        case "asdf":
            shim = program(home / "shims/checker", 'exec "$ASDF_DATA_DIR/versions/3.11/bin/checker"')
            person = {"ASDF_DATA_DIR": str(home)}
        case _:
            shim = program(root / ".direnv/python-3.11/bin/checker", "exit 0")
            person = {"DIRENV_DIR": f"-{root}"}
    tool = project(root, "checker", kind="command")
    person |= with_path(shim.parent)

    tool("start", "short", "try it", **person).ok()

    assert verdict(tool, **person)[0] == "PASS"


def test_npm_runs_the_tests_of_a_package(tmp_path):
    person = {}
    if shutil.which("npm") is None:
        program(tmp_path / "tools/npm", 'test "$1" = test && exec sh check.sh')
        person = with_path(tmp_path / "tools")
    root = tmp_path / "project"
    write(root, "package.json", '{"name": "calc", "version": "1.0.0", "scripts": {"test": "sh check.sh"}}')
    write(root, "check.sh", "echo '3 passed in 0.1s'\n")
    tool = project(root, "npm test")
    tool.environment["HOME"] = str(tmp_path)

    tool("start", "short", "try it", **person).ok()

    assert verdict(tool, **person)[0] == "PASS"


def test_a_declared_pythonpath_leads_to_the_code(tmp_path):
    write(tmp_path, "src/calc.py", "ONE = 1\n")
    write(tmp_path, "test_calc.py", "from calc import ONE\n\n\ndef test_one():\n    assert ONE == 1\n")
    tool = project(tmp_path, PYTEST, more=', env = ["PYTHONPATH=src"]')
    tool("start", "short", "try it").ok()

    assert verdict(tool)[0] == "PASS"


# The program

FAKES = {"its file": "tools/checker", "an earlier entry": "first/checker"}


@pytest.mark.parametrize("where", FAKES)
def test_another_program_than_at_the_start_is_named_and_opens_nothing(tmp_path, where):
    program(tmp_path / "tools/checker", "exit 1")
    (tmp_path / "first").mkdir()
    tool = project(tmp_path / "project", "checker", kind="command")
    tool.environment |= with_path(tmp_path / "first", tmp_path / "tools")
    tool("start", "short", "try it").ok()
    fake = program(tmp_path / FAKES[where], "exit 0")

    kind, reason = verdict(tool)

    assert kind == "FAIL"
    assert "checker is another program than before" in reason
    assert str(fake) in reason
    assert "detent gate accept check program:checker:" in reason


def test_a_program_that_puts_the_real_one_back_is_named_all_the_same(tmp_path):
    real = program(tmp_path / "tools/checker", "exit 1")
    shutil.copy(real, tmp_path / "kept")
    tool = project(tmp_path / "project", "checker", kind="command")
    tool.environment |= with_path(tmp_path / "tools")
    tool("start", "short", "try it").ok()
    program(real, f"cp {tmp_path}/kept {real}.new && mv {real}.new {real}; exit 0")

    kind, reason = verdict(tool)

    assert (kind, "checker is another program than before" in reason) == ("FAIL", True)
    assert real.read_text() == (tmp_path / "kept").read_text()


def test_a_script_of_the_project_is_a_program_too(tmp_path):
    script = program(tmp_path / "check.sh", "exit 0")
    tool = project(tmp_path, "./check.sh", kind="command")
    tool("start", "short", "try it").ok()
    assert verdict(tool)[0] == "PASS"

    program(script, "exit 0 # nothing")

    assert verdict(tool)[0] == "FAIL"


# Not found


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("no-such-program --run", "the command was not found"),
        ("make -s", "a program was not found"),
        ("sh run.sh", "a program was not found"),
    ],
)
def test_a_missing_program_is_an_error_that_lists_what_was_left_out(tmp_path, command, sentence):
    write(tmp_path, "Makefile", "all:\n\tno-such-program\n")
    write(tmp_path, "run.sh", "no-such-program\nexit 1\n")
    tool = project(tmp_path, command)
    tool("start", "short", "try it").ok()

    kind, reason = verdict(tool, DATABASE_URL="x", **with_path(tmp_path / "bin"))

    assert kind == "ERROR"
    assert sentence in reason
    assert f"PATH lacked {tmp_path}/bin" in reason
    assert "DATABASE_URL" in reason
    assert "env = [" in reason


def test_a_missing_program_of_a_constitution_is_no_violation(tmp_path):
    gate = '{ kind = "constitution", articles = ["I"], checks = { I = "no-such-program" } }'
    _, handle = started(tmp_path, gate)

    handle.gates.run("constitution")

    [judged] = handle.gates.judgements()["work"]
    assert (judged.verdict, "the command was not found" in judged.reason) == ("ERROR", True)


def test_a_check_that_was_ended_lists_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "TIMEOUT_S", 0.1)
    _, handle = started(tmp_path, '{ kind = "command", command = "sleep 30" }')

    handle.gates.run("command")

    [judged] = handle.gates.judgements()["work"]
    assert judged.reason == "the check could not run: ended after 0.1 s"


def test_a_suite_that_prints_such_a_line_and_fails_has_failed(tmp_path):
    write(tmp_path, "test_a.py", "def test_a():\n    print('sh: x: not found')\n    assert False\n")
    tool = project(tmp_path, PYTEST)
    tool("start", "short", "try it").ok()

    assert verdict(tool)[0] == "FAIL"


def test_a_session_without_a_toolchain_trusts_nobodys_path(tmp_path, monkeypatch):
    program(tmp_path / "bin/checker", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    opened, handle = started(tmp_path, '{ kind = "command", command = "checker" }')
    session = msgspec.structs.replace(handle.state, toolchain=None)

    environment = environment_of(session, session.workflow.by_key["work"].gates[0], opened.place, os.environ, {})

    assert f"{tmp_path}/bin" not in environment.variables["PATH"].split(":")
    assert "/usr/bin" in environment.variables["PATH"].split(":")
