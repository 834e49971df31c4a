"""Detent in Codex: hooks in the project's `.codex/hooks.json`, and instructions.

Codex runs only hooks that a person approved in its own configuration. Detent reads that file to report a missing
approval, and never writes it.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from detent.clients.installing.files import resolve
from detent.clients.installing.hook_settings import EVERY, HookSettings, own_invocation
from detent.clients.installing.installation import Checked, JsonInstallation

_TOOLS = "^(Bash|write_stdin|apply_patch|(multi_agent_v1)?(spawn_agent|send_input|wait_agent)|mcp__.*)$"
_CONFIG = "config.toml"
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

_HOOKS = HookSettings(
    client="codex",
    path=".codex/hooks.json",
    events={
        "SessionStart": EVERY,
        "UserPromptSubmit": EVERY,
        "PreToolUse": (_TOOLS,),
        "PostToolUse": (_TOOLS,),
        "PreCompact": EVERY,
        "SubagentStart": EVERY,
        "SubagentStop": EVERY,
        "Stop": EVERY,
        "SessionEnd": EVERY,
    },
    session_end_timeout_s=3,
)


def _home(environment: Mapping[str, str]) -> str | None:
    """The directory of Codex's own configuration."""
    home = environment.get("HOME")
    return environment.get("CODEX_HOME") or (os.path.join(home, ".codex") if home else None)


def _switches(checked: Checked) -> Iterator[tuple[str, str]]:
    project = os.path.join(checked.root, os.path.dirname(checked.form.path))
    home = _home(checked.environment)
    for directory in (project, *([] if home is None else [home])):
        path = os.path.join(directory, _CONFIG)
        if _table(_toml(path), "features").get("hooks") is False:
            yield os.path.relpath(path, checked.root) if directory == project else path, "features.hooks"


def _approvals(checked: Checked) -> Iterator[tuple[str, str]]:
    home = _home(checked.environment)
    events = [] if home is None else _untrusted(checked, home)
    if events:
        message = f"Codex silently skips the hooks for {', '.join(events)}, because no person has approved them"
        yield message, "start codex and approve them under /hooks"


def _untrusted(checked: Checked, home: str) -> list[str]:
    """The events whose hook has no approval. Only Codex knows whether an approval is for the present text."""
    approved = _approved(os.path.join(home, _CONFIG))
    path = os.path.join(checked.root, resolve(checked.root, checked.form.path))
    return [
        event
        for event, groups in checked.content.get("hooks", {}).items()
        for g, group in enumerate(groups if isinstance(groups, list) else ())
        for h, handler in enumerate(group.get("hooks", ()) if isinstance(group, dict) else ())
        if own_invocation(handler) and (path, f"{_HUMP.sub('_', event).lower()}:{g}:{h}") not in approved
    ]


def _approved(path: str) -> set[tuple[str, str]]:
    """File and position of each approval: it is recorded under `<file>:<event>:<group>:<handler>`."""
    approved = set()
    for key, value in _table(_table(_toml(path), "hooks"), "state").items():
        if isinstance(value, dict) and value.get("trusted_hash") and value.get("enabled") is not False:
            file, *position = key.rsplit(":", 3)
            approved.add((os.path.realpath(file), ":".join(position)))
    return approved


def _toml(path: str) -> dict[str, Any]:
    """A configuration that is absent or cannot be read switches nothing off and approves nothing."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


INSTALLATION = JsonInstallation(
    hooks=_HOOKS, instructions="AGENTS.md", oldest=(0, 166, 0), switches=_switches, problems=_approvals
)
