"""The texts that are installed, rendered from `data/`: instructions, agent definitions, slash commands."""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from string import Template
from typing import Any

from detent.core.agents import PHASE_AGENTS
from detent.install.whole import sealed


@cache
def instructions() -> bytes:
    return _read("block.md").encode()


@cache
def claude_files() -> dict[str, bytes]:
    """Agent definitions and slash commands by path."""
    agents, template = tomllib.loads(_read("agents.toml")), Template(_read("agent.md"))
    return {
        f".claude/agents/{name}.md": sealed(template.substitute(agents[name], name=name) + "\n")
        for name in dict.fromkeys(PHASE_AGENTS.values())
    } | {f".claude/commands/detent-{name}.md": sealed(_claude_command(command) + "\n") for name, command in _commands()}


@cache
def gemini_files() -> dict[str, bytes]:
    """Slash commands by path; `detent/status.toml` is `/detent:status` there."""
    return {
        f".gemini/commands/detent/{name}.toml": sealed(_gemini_command(command), comment=("# ", ""))
        for name, command in _commands()
    }


def _claude_command(command: dict[str, str]) -> str:
    fields = {
        "description": f'"{command["description"]}"',
        "argument-hint": f'"{command["hint"]}"' if command["hint"] else "",
        "allowed-tools": command["allowed"],
    }
    head = "".join(f"{name}: {value}\n" for name, value in fields.items() if value)
    return f"---\n{head}---\n{_prompt(command, '$ARGUMENTS')}"


def _gemini_command(command: dict[str, str]) -> str:
    return f"description = '{command['description']}'\nprompt = '''\n{_prompt(command, '{{args}}')}'''\n"


def _prompt(command: dict[str, str], arguments: str) -> str:
    return command["prompt"].replace("{arguments}", arguments)


def _commands() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from tomllib.loads(_read("commands.toml")).items()


def _read(name: str) -> str:
    return (resources.files("detent.install") / "data" / name).read_text("utf-8")
