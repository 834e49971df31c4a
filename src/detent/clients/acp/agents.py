"""Facts about the agents that speak ACP, by the name that they give themselves."""

import os
import shlex
from enum import StrEnum

import msgspec

from detent.clients.registry import CLIENTS
from detent.config.settings import AgentSettings
from detent.core.session.phase_state import Tokens


class Live(StrEnum):
    """The way in which an agent tells the tokens of a turn before the turn ends."""

    #: Each `usage_update` follows one request, and has the tokens of that request.
    REQUESTS = "requests"
    #: The messages of the Claude SDK, which its adapter passes on.
    MESSAGES = "messages"
    #: It tells none. Its own record of the conversation is read after each tool call.
    RECORD = "record"
    NONE = "none"


class AcpAgent(msgspec.Struct, frozen=True, kw_only=True):
    #: The client in the registry; empty if it is none of them.
    client: str = ""
    #: The mode in which every write asks for permission, and every shell call that can write.
    asks: str = ""
    #: The mode inside of Detent's sandbox, if it is another one: a sandbox of its own does not work in there.
    inside: str = ""
    live: Live = Live.NONE
    #: Whether a message without an id is not the model's: it tells why the turn failed.
    has_notices: bool = False
    #: Whether it runs the hooks that Detent installed in it, also when it is driven by this protocol.
    fires_hooks: bool = False
    #: Names of tools for titles of calls that have no name.
    tools: dict[str, str] = {}
    #: Extensions of the protocol that are asked for when a conversation begins.
    meta: dict[str, object] = {}
    #: Variables that it is started with, unless they are set already.
    env: dict[str, str] = {}


UNKNOWN = AcpAgent()
#: The extension of the adapter of Claude Code: options of its SDK, and the messages of it.
CLAUDE_META = "claudeCode"
#: By a word in the agent's own name.
AGENTS = {
    "claude": AcpAgent(
        client="claude-code",
        asks="default",
        live=Live.MESSAGES,
        fires_hooks=True,
        meta={
            CLAUDE_META: {
                "emitRawSDKMessages": [{"type": "assistant"}, {"type": "result"}],
                # A request after the end of each turn, which no one would read.
                "options": {"promptSuggestions": False},
            }
        },
    ),
    # A shell call that does not ask runs in a sandbox of Codex in which nothing can be written.
    "codex": AcpAgent(
        client="codex",
        asks="read-only",
        inside="agent-full-access",
        live=Live.REQUESTS,
        has_notices=True,
        tools={"spawnAgent": "spawn_agent", "sendInput": "send_input", "wait": "wait_agent"},
        # A login shell resets PATH, and `detent` would not be on it.
        env={"CODEX_CONFIG": '{"allow_login_shell": false}'},
    ),
    # Commands that Gemini CLI knows to read only do not ask. Its sub-agents are not available.
    "gemini": AcpAgent(client="gemini", asks="default", live=Live.RECORD),
}


def known_agent(name: str, settings: AgentSettings) -> AcpAgent:
    """The agent that gives itself this name, or that the settings say it is."""
    return next((agent for word, agent in AGENTS.items() if word in name.lower()), _by_client(settings))


def _by_client(settings: AgentSettings) -> AcpAgent:
    return next((agent for agent in AGENTS.values() if agent.client == client_of(settings)), UNKNOWN)


def has_asking_mode(settings: AgentSettings) -> bool:
    """Whether the mode in which the agent asks is known before it is started."""
    return bool(settings.mode or _by_client(settings).asks)


def started_with(settings: AgentSettings) -> dict[str, str]:
    """The variables for the agent of the settings that are not set already."""
    agent = _by_client(settings)
    return {name: value for name, value in agent.env.items() if name not in {**os.environ, **settings.env}}


def client_of(settings: AgentSettings) -> str:
    """The client whose files an agent uses: that of the settings, or of the program in its command."""
    if settings.adapter != "acp":
        return settings.adapter
    if settings.client in CLIENTS:
        return settings.client
    programs = [os.path.basename(word).lower() for word in command_words(settings)]
    return next((agent.client for word, agent in AGENTS.items() if any(word in each for each in programs)), "acp")


def command_words(settings: AgentSettings) -> list[str]:
    try:
        words = shlex.split(settings.command or "")
    except ValueError:
        words = (settings.command or "").split()
    return [os.path.expanduser(word) for word in (*words, *settings.args)]


def recorded_tokens(settings: AgentSettings, conversation: str, since_s: float = 0.0) -> Tokens:
    """The tokens in the client's own record of a conversation; none if it keeps none that can be read."""
    client = CLIENTS[client_of(settings)]
    recorded = getattr(client.load("adapter"), "recorded_usage", None) if client.name != "acp" else None
    tokens: Tokens = recorded(settings, conversation, since_s) if recorded is not None else Tokens()
    return tokens
