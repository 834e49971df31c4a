"""The commands that a runner carries out for an agent in a sandbox."""

import os
import posix
import socket
import sys
from contextlib import suppress

import pytest

from detent.config.place import at_root
from detent.config.settings import SandboxSettings
from detent.engine.agents import forward
from detent.engine.sandbox import RunSandbox
from detent.run.socket import ALLOWED, Refusal, opened, outside_command

OPEN = [
    ["ask", "Which?"],
    ["note", "-", "--kind", "ideas"],
    ["finish", "-m", "done", "--json"],
    ["--json", "task", "next"],
    ["task", "add", "--file", "-"],
    ["task", "edit", "IMPL-1", "--set", "meta.agent=x"],
    ["gate", "run", "tests", "--", "pytest", "-C", "x"],
    ["mcp"],
]
CLOSED = [
    [],
    ["approve", "-m", "yes"],
    ["rollback", "X", "--yes"],
    ["run", "another"],
    ["export", "state"],
    ["doctor", "--fix"],
    ["task", "export", "--to", "markdown", "x"],
    ["task", "import", "--from", "markdown", "x"],
    ["task", "--project", "x", "export"],
    ["task", "edit", "IMPL-1"],
    ["task", "add", "--file", "/etc/passwd"],
    ["task", "add", "--file=/etc/passwd"],
    ["note", "x", "-C", "/"],
    ["note", "x", "-C/"],
    ["note", "x", "--directory=/"],
    ["checkpoint", "export", "x"],
    ["checkpoint", "gc", "--yes"],
    ["hook", "claude-code", "--module", "evil.py"],
    ["hook", "unknown"],
    ["hook", "codex", "--plugin", "--module", "evil.py"],
    ["mcp", "-C", "/"],
]


@pytest.mark.parametrize("arguments", OPEN, ids=" ".join)
def test_what_agents_need_is_carried_out(arguments):
    assert outside_command(arguments) == [sys.executable, "-P", "-m", "detent", *arguments]


@pytest.mark.parametrize("arguments", CLOSED, ids=" ".join)
def test_everything_else_is_refused(arguments):
    with pytest.raises(Refusal):
        outside_command(arguments)


def test_a_hook_is_answered_by_the_fast_script():
    assert outside_command(["hook", "codex"])[1:3] == ["-I", "-S"]
    assert outside_command(["hook", "codex", "--plugin"])[-2:] == ["codex", "--plugin"]


def test_every_verb_that_is_passed_on_is_carried_out():
    assert {*ALLOWED, "hook"} == forward.VERBS


def test_commands_of_the_runner_have_the_settings_that_the_run_began_with(tmp_path):
    settings = SandboxSettings(allow=("x",), network="off")
    sandbox = RunSandbox(at_root(str(tmp_path)), settings, "/private")
    (tmp_path / "detent.toml").write_text('[run.sandbox]\nallow = ["/"]\n')

    passed = RunSandbox.of_text(at_root(str(tmp_path)), sandbox.text)
    assert (passed.settings, passed.directory) == (settings, "/private")


@pytest.fixture
def asking(tmp_path, monkeypatch):
    """The socket of a runner, as a process in the sandbox has it."""
    (tmp_path / "project").mkdir()
    env = {"DETENT_PHASE": "a", "PYTHONPATH": os.pathsep.join(sys.path)}
    sandbox = RunSandbox(at_root(str(tmp_path / "project")), SandboxSettings(), str(tmp_path))
    with opened(env, [str(tmp_path / "project")], sandbox) as (directory, variable):
        assert variable == {"DETENT_SOCKET": "/run/detent/socket"}
        sandbox.for_check(sandbox.place)
        monkeypatch.setitem(posix.environ, forward.SOCKET, os.fsencode(os.path.join(directory, "socket")))
        yield tmp_path


def test_a_command_outside_of_the_project_is_refused(asking, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with open(tmp_path / "errors", "wb") as errors:
        code = forward.forward(["note", "x"], (0, 1, errors.fileno()))

    assert code == 2
    assert "is outside of the project" in (tmp_path / "errors").read_text()


def test_a_command_writes_to_the_streams_of_the_agent(asking, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path / "project")
    with open(os.devnull, "rb") as nothing, open(tmp_path / "said", "wb") as said:
        code = forward.forward(["task", "--help"], (nothing.fileno(), said.fileno(), said.fileno()))

    assert code == 0
    assert "Usage: detent task" in (tmp_path / "said").read_text()


def test_the_mcp_server_is_carried_out_over_the_pipes_of_the_agent(asking, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "asked").write_text('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
    with open(tmp_path / "asked", "rb") as asked, open(tmp_path / "said", "wb") as said:
        code = forward.forward(["mcp"], (asked.fileno(), said.fileno(), 2))

    assert code == 0
    assert '"serverInfo":{"name":"detent"' in (tmp_path / "said").read_text()


def test_settings_that_an_agent_made_are_moved_aside_before_a_command_is_carried_out(asking, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "project/detent.toml").write_text("[run]\nsandbox = 'off'\n")
    with open(os.devnull, "r+b") as nothing:
        forward.forward(["task", "--help"], (nothing.fileno(),) * 3)

    assert not (tmp_path / "project/detent.toml").exists()


def test_nonsense_on_the_socket_does_no_harm(asking, monkeypatch, tmp_path):
    path = os.fsdecode(posix.environ[forward.SOCKET])
    for data in (b"", b"x", b"\xff" * 100, (1 << 40).to_bytes(8, "big")):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    test_a_command_outside_of_the_project_is_refused(asking, monkeypatch, tmp_path)
