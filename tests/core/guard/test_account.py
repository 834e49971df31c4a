"""The files of the account in which clients keep their hooks and plugins: no agent writes them."""

import pytest

from detent.core.guard.rules import GuardInput, guard
from tests.support.guarding import denial

FILES = {
    "config": (".claude/settings.json",),
    "document": (),
    "account": ("/home/me/.claude/settings.json", "/home/me/.claude/plugins", "/home/me/.claude.json"),
}


def denied(**call):
    given = {"kind": "shell", "tool": "Bash", "command": "", "cwd": "/p", "home": "/home/me", "text": "", **call}
    return guard(GuardInput(None, given, "/p", lambda _: False, FILES))[0] is not None


@pytest.mark.parametrize(
    "command",
    [
        "echo x > ~/.claude/settings.json",
        "cp x /home/me/.claude/settings.json",
        "tee $HOME/.claude.json",
        "rm -r ~/.claude",
        "rm -rf ~/.claude/plugins",
        "sed -i s/a/b/ ~/.claude/plugins/cache/detent/launch.sh",
        "rm ~/.claude/*.json",
        "cd ~/.claude && rm settings.json",
    ],
)
def test_a_command_that_would_write_one_is_denied(command):
    assert denied(command=command)


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/.claude/settings.json",
        "ls -R ~/.claude",
        "echo x > ~/.claude/plans/a.md",
        "mkdir -p ~/.claude/skills/mine",
        "rm -r ~/.cache/x",
        "rm -r build",
    ],
)
def test_reading_them_and_writing_beside_them_is_free(command):
    assert not denied(command=command)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/me/.claude/settings.json", True),
        ("/home/me/.claude/plugins/cache/x/launch.sh", True),
        ("/home/me/.claude/settings.json.md", False),
        ("/home/me/.claude/plans/a.md", False),
    ],
)
def test_a_tool_that_would_write_one_is_denied(path, expected):
    assert denied(kind="write", tool="Write", paths=(path,)) is expected


@pytest.mark.parametrize(
    "command",
    [
        "claude plugin uninstall detent@detent",
        "claude plugin disable detent",
        "claude --debug plugins marketplace remove detent",
        "claude mcp add x -- ./server",
        "claude mcp add list -- ./server",
        "claude plugin marketplace add ./list",
        "codex plugin remove detent@detent",
        "codex features disable hooks",
        "codex -c a=b features disable hooks",
        "gemini extensions disable detent",
        "/opt/bin/gemini extension uninstall detent",
        "env A=1 claude plugin disable detent && ls",
        "sh -c 'codex features disable hooks'",
    ],
)
def test_a_clients_program_does_not_change_its_hooks_for_an_agent(command):
    assert "let a person do it in a terminal of their own" in str(denial(command, "/p", "/p", home="/home/me"))


@pytest.mark.parametrize(
    "command",
    [
        "claude plugin list",
        "claude plugin marketplace list",
        "claude plugin validate --strict .",
        "claude -p 'which plugin disables hooks'",
        "codex features list",
        "codex exec 'write a plugin'",
        "gemini extensions validate .",
        "gemini --help",
        "npm test -- plugin disable",
        "grep -r 'claude plugin disable' .",
    ],
)
def test_looking_at_them_is_free(command):
    assert denial(command, "/p", "/p", home="/home/me") is None
