"""What differs between the coding agents: files, events, matchers, units, and how a hook's command is written.

Only tools that can change something have a hook, so that reading costs nothing. MCP tools are all included: what one of
them does cannot be told from its name.
"""

import shlex
from typing import Any, NamedTuple

CLAUDE_CODE, CODEX, GEMINI = "claude-code", "codex", "gemini"

#: How the hook's path ends wherever Detent is installed; an entry that runs it is ours.
HOOK_TAIL = "/detent/hooks/fast.py"
STATUS_LINE = "statusline"

_EVERY: tuple[str | None, ...] = (None,)
_TIMEOUT_S = 10
_CLAUDE_WRITES = "Task|Agent|Bash|Write|Edit|MultiEdit|NotebookEdit|Skill"
_CLAUDE_WROTE = "Bash|Write|Edit|MultiEdit|NotebookEdit|Task|Agent|TodoWrite|TaskCreate|TaskUpdate"
_CLAUDE_MCP = "mcp__.*"
_CODEX_WRITES = "^(Bash|apply_patch|spawn_agent|mcp__.*)$"
_GEMINI_WRITES = "^(run_shell_command|write_file|replace|invoke_agent|mcp_.*)$"
_GEMINI_WROTE = "^(run_shell_command|write_file|replace|invoke_agent|write_todos|mcp_.*)$"


class Client(NamedTuple):
    name: str
    title: str
    settings: str
    instructions: str
    #: The matchers of each event, one group each; none stands for every occurrence.
    events: dict[str, tuple[str | None, ...]]
    session_end_timeout_s: int
    #: Units of the timeout in a second.
    timeout_units: int = 1
    #: Whether a command may be given as `command` and `args`, without a shell.
    exec_form: bool = False
    #: What every handler carries besides.
    extra: tuple[tuple[str, str], ...] = ()
    #: The oldest version that Detent was tried with.
    oldest: tuple[int, ...] = ()


CLIENT_TABLE: dict[str, Client] = {
    CLAUDE_CODE: Client(
        name=CLAUDE_CODE,
        title="Claude Code",
        settings=".claude/settings.json",
        instructions="CLAUDE.md",
        events={
            "SessionStart": _EVERY,
            "UserPromptSubmit": _EVERY,
            "PreToolUse": (_CLAUDE_WRITES, _CLAUDE_MCP),
            "PostToolUse": (_CLAUDE_WROTE, _CLAUDE_MCP),
            "PostToolUseFailure": (_CLAUDE_WROTE, _CLAUDE_MCP),
            "SubagentStart": _EVERY,
            "SubagentStop": _EVERY,
            "TaskCreated": _EVERY,
            "TaskCompleted": _EVERY,
            "PreCompact": _EVERY,
            "Stop": _EVERY,
            "SessionEnd": _EVERY,
        },
        session_end_timeout_s=5,
        exec_form=True,
        oldest=(2, 1, 197),
    ),
    CODEX: Client(
        name=CODEX,
        title="Codex",
        settings=".codex/hooks.json",
        instructions="AGENTS.md",
        events={
            "SessionStart": _EVERY,
            "UserPromptSubmit": _EVERY,
            "PreToolUse": (_CODEX_WRITES,),
            "PostToolUse": (_CODEX_WRITES,),
            "PreCompact": _EVERY,
            "SubagentStart": _EVERY,
            "SubagentStop": _EVERY,
            "Stop": _EVERY,
            "SessionEnd": _EVERY,
        },
        session_end_timeout_s=3,
        oldest=(0, 166, 0),
    ),
    GEMINI: Client(
        name=GEMINI,
        title="Gemini CLI",
        settings=".gemini/settings.json",
        instructions="GEMINI.md",
        events={
            "SessionStart": _EVERY,
            "BeforeAgent": _EVERY,
            "BeforeTool": (_GEMINI_WRITES,),
            "AfterTool": (_GEMINI_WROTE,),
            "AfterAgent": _EVERY,
            "SessionEnd": _EVERY,
        },
        session_end_timeout_s=5,
        timeout_units=1000,
        extra=(("name", "detent"),),
        oldest=(0, 61, 0),
    ),
}

CLIENTS = tuple(CLIENT_TABLE)


class Invocation(NamedTuple):
    """How the hook is started: isolated, without site-packages, by the interpreter that Detent runs with."""

    python: str
    hook: str

    def argv(self, argument: str) -> list[str]:
        return [self.python, "-I", "-S", self.hook, argument]


def wanted_groups(client: Client, invocation: Invocation) -> dict[str, list[dict[str, Any]]]:
    """The groups of each event as the client's settings should hold them."""
    return {
        event: [
            ({} if matcher is None else {"matcher": matcher}) | {"hooks": [_handler(client, invocation, event)]}
            for matcher in matchers
        ]
        for event, matchers in client.events.items()
    }


def status_line(invocation: Invocation) -> dict[str, Any]:
    return {"type": "command", "command": shlex.join(invocation.argv(STATUS_LINE))}


def own_invocation(handler: object) -> Invocation | None:
    """Interpreter and hook that an entry starts, if it is one of ours."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return None
    arguments = handler.get("args")
    try:
        argv = [handler["command"], *arguments] if isinstance(arguments, list) else shlex.split(handler["command"])
    except ValueError:
        return None
    hook = next((word for word in argv[1:] if isinstance(word, str) and word.endswith(HOOK_TAIL)), None)
    return None if hook is None else Invocation(argv[0], hook)


def _handler(client: Client, invocation: Invocation, event: str) -> dict[str, Any]:
    argv = invocation.argv(client.name)
    timeout_s = client.session_end_timeout_s if event == "SessionEnd" else _TIMEOUT_S
    command: dict[str, Any] = (
        {"command": argv[0], "args": argv[1:]} if client.exec_form else {"command": shlex.join(argv)}
    )
    return {"type": "command", **dict(client.extra), **command, "timeout": timeout_s * client.timeout_units}
