"""Renders the installed texts from `data/`: instructions, agent definitions, slash commands."""

import tomllib
from functools import cache
from importlib import resources
from string import Template
from typing import NamedTuple

from detent.core.workflow.roles import PHASE_AGENTS, normalize_agent_name


class Command(NamedTuple):
    """A slash command."""

    description: str
    hint: str
    #: The tools that it may use without a permission prompt.
    allowed: str
    prompt: str


@cache
def instructions() -> bytes:
    return _read("block.md").encode()


def agents() -> dict[str, str]:
    """The definition of each agent, in Markdown with front matter."""
    fields, template = _roles(), Template(_read("agent.md"))
    names = dict.fromkeys(PHASE_AGENTS.values())
    return {name: template.substitute(fields[name], name=name) + "\n" for name in names}


@cache
def _roles() -> dict[str, dict[str, str]]:
    return tomllib.loads(_read("agents.toml"))


def role_text(agent: str) -> str:
    """The work, the results and the limits of a role, as a text for its agent; empty for an unknown role."""
    role = _roles().get(normalize_agent_name(agent))
    if role is None:
        return ""
    return f"{role['role']}\n\nYou produce {role['produces']}\n\nYou must not {role['never']}"


def commands(arguments: str) -> dict[str, Command]:
    """The slash commands; `arguments` is the client's placeholder for the words behind the command."""
    return {
        name: Command(**{**fields, "prompt": fields["prompt"].replace("{arguments}", arguments)})
        for name, fields in tomllib.loads(_read("commands.toml")).items()
    }


def _read(name: str) -> str:
    return (resources.files("detent.clients.installing") / "data" / name).read_text("utf-8")
