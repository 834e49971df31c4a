"""Gemini CLI: where it is, how it is run, what its tools and hooks are called."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.scripts import Call, Step, Turn, do

NAME = "gemini"
PACKAGE = "@google/gemini-cli"
VERSION = "0.61.0"
MODEL = "gemini-2.5-pro"

PROJECT_SETTINGS = ".gemini/settings.json"
HOOK_EVENTS = {
    "SessionStart": "SessionStart",
    "UserPromptSubmit": "BeforeAgent",
    "PreToolUse": "BeforeTool",
    "PostToolUse": "AfterTool",
    "PreCompact": "PreCompress",
    "Stop": "AfterAgent",
    "SessionEnd": "SessionEnd",
}

USER_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


def entry(prefix: Path) -> list[str]:
    node = shutil.which("node")
    assert node is not None
    return [node, str(prefix / "node_modules/@google/gemini-cli/bundle/gemini.js")]


def prepare(home: Path, url: str) -> None:
    """What a test has put into the user's settings stays."""
    path = home / ".gemini/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    had = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**USER_SETTINGS, **had}))


def environment(home: Path, url: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_FORCE_FILE_STORAGE": "true",
    }


def arguments(prompt: str, *, url: str, resume: str | None, extra: Sequence[str]) -> list[str]:
    resumed = ["--resume", resume] if resume else []
    return ["-p", prompt, "--output-format", "stream-json", "--approval-mode", "yolo", "-m", MODEL, *resumed, *extra]


def hook_settings(command: str) -> dict[str, Any]:
    """Settings that call `command` on every event."""
    hook = {"type": "command", "command": command, "timeout": 30_000}
    return {"hooks": {event: [{"hooks": [hook]}] for event in HOOK_EVENTS.values()}}


def session_id(events: Sequence[dict[str, Any]]) -> str | None:
    return next((event["session_id"] for event in events if event.get("session_id")), None)


def write(path: str, content: str) -> Call:
    return Call("write_file", {"file_path": path, "content": content})


def shell(command: str) -> Call:
    return Call("run_shell_command", {"command": command, "description": "scripted"})


def delegate(prompt: str, *, background: bool = False) -> list[Step]:
    """The steps that give work to a sub-agent."""
    assert not background, "Gemini CLI waits for its sub-agents"
    return [do(Call("invoke_agent", {"agent_name": "generalist", "prompt": prompt}))]


def hand_back(text: str) -> Turn:
    """A sub-agent's last turn."""
    return do(Call("complete_task", {"result": {"response": text}}))


def deny(reason: str) -> str:
    """A hook's reply that keeps a tool from running."""
    return json.dumps({"decision": "deny", "reason": reason})


block = deny
