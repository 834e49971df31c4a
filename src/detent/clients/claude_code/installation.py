"""Detent in Claude Code: hooks and a status line in its settings, agent definitions, slash commands, instructions."""

from collections.abc import Iterator
from functools import cache

from detent.clients.claude_code.dialect import DIALECT
from detent.clients.installing import texts
from detent.clients.installing.files import read, resolve
from detent.clients.installing.hook_settings import EVERY, HookSettings, LeftOut
from detent.clients.installing.hook_settings import read as read_settings
from detent.clients.installing.installation import Checked, JsonInstallation
from detent.clients.installing.parts import sealed
from detent.errors import DetentError

_BEFORE = "Task|Agent|Workflow|SendMessage|Bash|Write|Edit|MultiEdit|NotebookEdit|Skill"
_SHELL = "Bash"
_AFTER = "Write|Edit|MultiEdit|NotebookEdit|Task|Agent|Workflow|SendMessage|TodoWrite|TaskCreate|TaskUpdate"
_MCP = "mcp__.*"
_PATH, _LOCAL = ".claude/settings.json", ".claude/settings.local.json"

_HOOKS = HookSettings(
    client="claude-code",
    path=_PATH,
    events={
        "SessionStart": EVERY,
        "UserPromptSubmit": EVERY,
        "PreToolUse": (_BEFORE, _MCP),
        "PostToolUse": (_SHELL, _AFTER, _MCP),
        "PostToolUseFailure": (_SHELL, _AFTER, _MCP),
        "SubagentStart": EVERY,
        "SubagentStop": EVERY,
        "TaskCreated": EVERY,
        "TaskCompleted": EVERY,
        "PreCompact": EVERY,
        "Stop": EVERY,
        "SessionEnd": EVERY,
    },
    session_end_timeout_s=5,
    exec_form=True,
    has_status_line=True,
    left_out=LeftOut(matcher=_SHELL, variable=DIALECT.PROJECT_VARIABLE, settings=(".claude", _PATH, _LOCAL)),
)


@cache
def _files() -> dict[str, bytes]:
    """Agent definitions and slash commands by path."""
    agents = {f".claude/agents/{name}.md": sealed(text) for name, text in texts.agents().items()}
    return agents | {
        f".claude/commands/detent-{name}.md": sealed(_command(command) + "\n")
        for name, command in texts.commands("$ARGUMENTS").items()
    }


def _command(command: texts.Command) -> str:
    fields = {
        "description": f'"{command.description}"',
        "argument-hint": f'"{command.hint}"' if command.hint else "",
        "allowed-tools": command.allowed,
    }
    head = "".join(f"{name}: {value}\n" for name, value in fields.items() if value)
    return f"---\n{head}---\n{command.prompt}"


def _switches(checked: Checked) -> Iterator[tuple[str, str]]:
    try:
        local = read_settings(read(checked.root, resolve(checked.root, _LOCAL)), checked.form)
    except DetentError:
        local = {}
    for path, content in ((checked.form.path, checked.content), (_LOCAL, local)):
        if content.get("disableAllHooks") is True:
            yield path, "disableAllHooks"


INSTALLATION = JsonInstallation(
    hooks=_HOOKS, instructions="CLAUDE.md", oldest=(2, 1, 197), files=_files, switches=_switches
)
