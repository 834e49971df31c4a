"""Codex CLI: where it is, how it is run, what its tools and hooks are called."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients import claude_code
from tests.clients.scripts import Call, Request, Step, Turn, do, say

NAME = "codex"
PACKAGE = "@openai/codex"
VERSION = "0.166.0"
MODEL = "gpt-5.5"

PROJECT_SETTINGS = ".codex/hooks.json"
HOOK_EVENTS = {
    name: name
    for name in (
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PreCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    )
}

CONFIG = """\
model = "{model}"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false

[features]
apps = false
plugins = false
"""

deny = claude_code.deny
block = claude_code.block


def entry(prefix: Path) -> list[str]:
    node = shutil.which("node")
    assert node is not None
    return [node, str(prefix / "node_modules/@openai/codex/bin/codex.js")]


def prepare(home: Path, url: str) -> None:
    """Codex notes in its configuration which projects it trusts, so what is there stays."""
    path = home / ".codex/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(CONFIG.format(model=MODEL, url=url))


def environment(home: Path, url: str) -> dict[str, str]:
    return {"CODEX_HOME": str(home / ".codex"), "SCRIPTED_KEY": "dummy"}


def arguments(prompt: str, *, url: str, resume: str | None, extra: Sequence[str]) -> list[str]:
    given = ["--json", "-c", f'model_providers.scripted.base_url="{url}/v1"', *extra]
    trusted = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"]
    if resume:
        return ["exec", "resume", *given, *trusted, resume, prompt]
    return ["exec", *given, *trusted, prompt]


def hook_settings(command: str) -> dict[str, Any]:
    """Settings that call `command` on every event."""
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}] for event in HOOK_EVENTS}}


def session_id(events: Sequence[dict[str, Any]]) -> str | None:
    return next((event["thread_id"] for event in events if event["type"] == "thread.started"), None)


def write(path: str, content: str) -> Call:
    added = "".join(f"+{line}\n" for line in content.splitlines())
    return Call("apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n")


def shell(command: str) -> Call:
    return Call("exec_command", {"cmd": command})


def delegate(prompt: str, *, background: bool = False) -> list[Step]:
    """The steps that give work to a sub-agent. They run beside the session; to wait for one is a call of its own."""
    started = do(Call("multi_agent_v1/spawn_agent", {"message": prompt}))
    return [started] if background else [started, _wait]


def hand_back(text: str) -> Turn:
    """A sub-agent's last turn."""
    return say(text)


def _wait(request: Request) -> Turn:
    agent = json.loads(request.results[-1].text)["agent_id"]
    return do(Call("multi_agent_v1/wait_agent", {"targets": [agent], "timeout_ms": 30_000}))
