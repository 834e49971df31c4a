"""Runs Claude Code non-interactively: `claude -p` with a stream of JSON lines."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from detent.clients.adapter.agent import Turn
from detent.clients.adapter.driven import Driven, client
from detent.clients.adapter.failure import crashed, failed
from detent.clients.adapter.stream import Calls, Count, decoded, finished
from detent.clients.claude_code.transcript import conversation_tokens
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished, Said, Started, ToolUsed, Used
from detent.core.session.phase_state import Tokens
from detent.process.conversation import Exited

PROGRAM = "claude"
_ARGUMENTS = ("-p", "--output-format", "stream-json", "--verbose")
#: A budget of nothing is refused by the client.
_LEAST_COST = 0.000001
_PERMISSIONS = {"--permission-mode acceptEdits": ("--permission-mode", "--dangerously-skip-permissions")}


def adapter(settings: AgentSettings) -> Driven:
    return client(settings, PROGRAM, _ARGUMENTS, unless=_PERMISSIONS, reader=ClaudeCodeReader, of_turn=_budget)


def _budget(turn: Turn) -> tuple[str, ...]:
    """It tells the cost of a turn only at the end, so it is the one that can stop at a limit."""
    return () if turn.max_cost is None else ("--max-budget-usd", f"{max(turn.max_cost, _LEAST_COST):.6f}")


def recorded_usage(settings: AgentSettings, conversation: str, since_s: float) -> Tokens:  # noqa: ARG001 - the id is unique
    """The tokens of a conversation and of its sub-agents, as the transcripts of Claude Code tell them."""
    variable = "CLAUDE_CONFIG_DIR"
    home = settings.env.get(variable) or os.environ.get(variable) or os.path.expanduser("~/.claude")
    read, written = conversation_tokens(home, conversation)
    return Tokens(input=read, output=written)


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    output_tokens: Count = 0


class _ModelUsage(msgspec.Struct, frozen=True, rename="camel"):
    """The usage of one model, in camel case."""

    input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    output_tokens: Count = 0


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    #: Fields of a call.
    id: str = ""
    name: str = ""
    input: Any = None
    #: Fields of its result.
    tool_use_id: str = ""
    is_error: bool | None = False


class _Message(msgspec.Struct, frozen=True):
    id: str = ""
    content: str | list[_Block] = ""
    usage: _Usage | None = None


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of every kind of line."""

    type: str = ""
    subtype: str = ""
    session_id: str = ""
    model: str = ""
    claude_code_version: str = ""
    message: _Message | str | None = None
    #: Fields of a retry.
    error: str | None = None
    error_status: int | None = None
    retry_delay_ms: float = 0.0
    #: Fields of a result.
    is_error: bool = False
    result: str = ""
    errors: list[str] = []
    stop_reason: str | None = None
    api_error_status: int | None = None
    api_error: str | None = None
    total_cost_usd: float = 0.0
    usage: Any = None
    model_usage: dict[str, _ModelUsage] = msgspec.field(default_factory=dict, name="modelUsage")


_LINE = msgspec.json.Decoder(_Line)


class ClaudeCodeReader:
    def __init__(self) -> None:
        self._calls = Calls()
        #: By message: each part of a message is a line with the usage of the whole message.
        self._used: dict[str, Tokens] = {}
        #: The last result line; background work can produce several.
        self._result: _Line | None = None
        #: The wait before its last own retry, which follows the header `retry-after`.
        self._retry_after_s = 0.0

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        parsed = decoded(_LINE, line)
        if parsed is None:
            return ()
        match parsed.type:
            case "system":
                return self._system(parsed)
            case "assistant" | "user" if isinstance(parsed.message, _Message):
                return self._message(parsed.message)
            case "result":
                self._result = parsed
                return (Used(tokens=self._total(parsed)),)
            case _:
                return ()

    def unfinished(self) -> Iterable[ToolUsed]:
        return self._calls.unfinished()

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        return (*self.unfinished(), self._ended(exited))

    def _system(self, line: _Line) -> Iterable[AgentEvent]:
        if line.subtype == "init":
            return (Started(conversation=line.session_id, model=line.model, version=line.claude_code_version),)
        if line.subtype == "api_retry":
            self._retry_after_s = line.retry_delay_ms / 1000
            return (Said(text=f"asks the model again: {line.error} {line.error_status or ''}"),)
        return ()

    def _message(self, message: _Message) -> Iterator[AgentEvent]:
        for block in message.content if isinstance(message.content, list) else ():
            match block.type:
                case "text" if message.id:  # a message without an id is a prompt
                    yield Said(text=block.text)
                case "tool_use":
                    yield from self._calls.begin(block.id, block.name, block.input)
                case "tool_result":
                    yield from self._calls.end(block.tool_use_id, succeeded=not block.is_error)
                case _:
                    pass
        used = _tokens(message.usage) if message.usage else None
        if used and self._used.get(message.id) != used:
            self._used[message.id] = used
            yield Used(tokens=sum(self._used.values(), Tokens()))

    def _total(self, result: _Line) -> Tokens:
        """The usage of all models and agents; the `usage` of the result counts the main agent only."""
        by_model = [_tokens(each) for each in result.model_usage.values()] or self._used.values()
        return sum(by_model, Tokens(cost=result.total_cost_usd))

    def _ended(self, exited: Exited) -> Finished | Failed:
        result = self._result
        if result is None:
            return crashed(PROGRAM, exited)
        text = result.result or "; ".join(result.errors) or result.subtype
        if result.stop_reason == "refusal":
            return Failed(failure=Failure.REFUSED, reason=text)
        if result.api_error == "connection_failed":
            return Failed(failure=Failure.TRANSIENT, reason=text)
        if result.is_error:
            return failed(text, status=result.api_error_status, retry_after_s=self._retry_after_s)
        return finished(result.result, self._calls) if exited.exit_code == 0 else crashed(PROGRAM, exited)


def _tokens(usage: _Usage | _ModelUsage) -> Tokens:
    read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    return Tokens(input=read, output=usage.output_tokens)
