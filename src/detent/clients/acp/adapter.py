"""Runs any agent that speaks the Agent Client Protocol: `gemini --acp`, `claude-agent-acp`, `codex-acp` and others."""

from functools import partial

from detent.clients.acp.agents import command_words, recorded_tokens, started_with
from detent.clients.acp.permission import check_allowed
from detent.clients.acp.reader import AcpReader
from detent.clients.adapter.agent import Turn
from detent.clients.adapter.driven import Driven, Launch
from detent.clients.registry import CLIENTS
from detent.config.settings import AgentSettings
from detent.errors import Invalid

recorded_usage = recorded_tokens


def adapter(settings: AgentSettings) -> Driven:
    words = command_words(settings)
    if not words:
        raise Invalid(
            'an agent with the adapter "acp" has no command',
            way_out='name it under [agents] in detent.toml: command = "gemini --acp"',
        )
    if settings.client is not None and settings.client not in CLIENTS:
        raise Invalid(
            f"there is no client {settings.client!r}; known: {', '.join(CLIENTS)}",
            way_out="correct client under [agents] in detent.toml",
        )
    check_allowed(settings.allow or (), words[0])

    def launch(turn: Turn) -> Launch:  # noqa: ARG001 - every turn has the same command
        return Launch(argv=tuple(words), env=started_with(settings))

    return Driven(launch, partial(AcpReader, settings), settings.env)
