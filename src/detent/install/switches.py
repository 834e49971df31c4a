"""What keeps a client from running installed hooks: a switch in its settings, or an approval that is missing."""

import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from detent.errors import DetentError
from detent.install.clients import CLAUDE_CODE, CODEX, GEMINI, Client, own_invocation
from detent.install.files import read, resolve
from detent.install.hook_settings import read as read_settings

_CLAUDE_LOCAL = ".claude/settings.local.json"
_CODEX_CONFIG = "config.toml"
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def off(root: str, client: Client, settings: dict[str, Any], codex_home: str | None) -> Iterator[tuple[str, str]]:
    """File and switch, for each switch that is set against hooks."""
    if client.name == CLAUDE_CODE:
        for path, content in ((client.settings, settings), (_CLAUDE_LOCAL, _local(root, client))):
            if content.get("disableAllHooks") is True:
                yield path, "disableAllHooks"
    elif client.name == GEMINI:
        config = _table(settings, "hooksConfig")
        if config.get("enabled") is False:
            yield client.settings, "hooksConfig.enabled"
        disabled = config.get("disabled")
        if isinstance(disabled, list) and dict(client.extra)["name"] in disabled:
            yield client.settings, "hooksConfig.disabled"
    elif client.name == CODEX:
        project = os.path.join(root, os.path.dirname(client.settings))
        for directory in (project, *([] if codex_home is None else [codex_home])):
            path = os.path.join(directory, _CODEX_CONFIG)
            if _table(_toml(path), "features").get("hooks") is False:
                yield os.path.relpath(path, root) if directory == project else path, "features.hooks"


def untrusted(root: str, client: Client, settings: dict[str, Any], codex_home: str) -> list[str]:
    """The events whose hook nobody approved in Codex. Whether an approval is of the present text, only Codex knows."""
    approved = _approved(os.path.join(codex_home, _CODEX_CONFIG))
    path = os.path.join(root, resolve(root, client.settings))
    return [
        event
        for event, groups in settings.get("hooks", {}).items()
        for g, group in enumerate(groups if isinstance(groups, list) else ())
        for h, handler in enumerate(group.get("hooks", ()) if isinstance(group, dict) else ())
        if own_invocation(handler) and (path, f"{_HUMP.sub('_', event).lower()}:{g}:{h}") not in approved
    ]


def _approved(path: str) -> set[tuple[str, str]]:
    """File and position of each approval: one is recorded under `<file>:<event>:<group>:<handler>`."""
    found = set()
    for key, value in _table(_table(_toml(path), "hooks"), "state").items():
        if isinstance(value, dict) and value.get("trusted_hash") and value.get("enabled") is not False:
            file, *position = key.rsplit(":", 3)
            found.add((os.path.realpath(file), ":".join(position)))
    return found


def _toml(path: str) -> dict[str, Any]:
    """A configuration that is absent or cannot be read switches nothing off and approves nothing."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}


def _local(root: str, client: Client) -> dict[str, Any]:
    try:
        return read_settings(read(root, resolve(root, _CLAUDE_LOCAL)), client)
    except DetentError:
        return {}


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}
