"""How agents are called, one module for each kind. What is not in this table does not exist."""

import shutil
from collections.abc import Callable

from detent.config.settings import AgentSettings
from detent.run.adapters import claude_code, codex, command, gemini, manual
from detent.run.agent import Agent

ADAPTERS: dict[str, Callable[[AgentSettings], Agent]] = {
    "claude-code": claude_code.claude_code,
    "codex": codex.codex,
    "gemini": gemini.gemini,
    "command": command.command,
    "manual": manual.manual,
}

#: The agents that can be named without any settings.
DEFAULTS: dict[str, AgentSettings] = {
    "claude-code": AgentSettings(adapter="claude-code"),
    "codex": AgentSettings(adapter="codex"),
    "gemini": AgentSettings(adapter="gemini"),
    "manual": AgentSettings(adapter="manual"),
}

_PROGRAMS = {"claude-code": claude_code.PROGRAM, "codex": codex.PROGRAM, "gemini": gemini.PROGRAM}


def agent(settings: AgentSettings) -> Agent:
    return ADAPTERS[settings.adapter](settings)


def installed() -> list[str]:
    """The clients that are on the path, in the order in which one is chosen."""
    return [name for name, program in _PROGRAMS.items() if shutil.which(program)]
