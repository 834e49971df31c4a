"""Claude Code: where it is, how it is run, what its tools and hooks are called."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.scripts import Call, Step, Turn, do, say

NAME = "claude-code"
PACKAGE = "@anthropic-ai/claude-code"
VERSION = "2.1.325"

PROJECT_SETTINGS = ".claude/settings.json"
HOOK_EVENTS = {
    name: name
    for name in (
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PreCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    )
}


def entry(prefix: Path) -> list[str]:
    """The platform's own package holds the program; the main package only links to it, by a script npm may not run."""
    return [str(next((prefix / "node_modules/@anthropic-ai").glob("claude-code-*/claude")))]


def prepare(home: Path, url: str) -> None:
    (home / ".claude").mkdir(parents=True, exist_ok=True)


def environment(home: Path, url: str) -> dict[str, str]:
    given = {
        "ANTHROPIC_API_KEY": "dummy",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }
    return {**given, "IS_SANDBOX": "1"} if os.getuid() == 0 else given  # root may skip permissions only in a sandbox


def arguments(prompt: str, *, url: str, resume: str | None, extra: Sequence[str]) -> list[str]:
    resumed = ["--resume", resume] if resume else []
    output = ["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]
    return ["-p", prompt, *output, *resumed, *extra]


def hook_settings(command: str) -> dict[str, Any]:
    """Settings that call `command` on every event."""
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}] for event in HOOK_EVENTS}}


def session_id(events: Sequence[dict[str, Any]]) -> str | None:
    return next((event["session_id"] for event in events if event.get("session_id")), None)


def write(path: str, content: str) -> Call:
    return Call("Write", {"file_path": path, "content": content})


def shell(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "scripted"})


def delegate(prompt: str, *, background: bool = False) -> list[Step]:
    """The steps that give work to a sub-agent."""
    asked = {"description": "scripted", "prompt": prompt, "subagent_type": "general-purpose"}
    return [do(Call("Agent", {**asked, "run_in_background": background}))]


def hand_back(text: str) -> Turn:
    """A sub-agent's last turn."""
    return say(text)


def deny(reason: str) -> str:
    """A hook's reply that keeps a tool from running."""
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}})


def block(reason: str) -> str:
    """A hook's reply that keeps the agent from stopping."""
    return json.dumps({"decision": "block", "reason": reason})
