"""Runs Gemini CLI non-interactively: the prompt on standard input, a stream of JSON lines on standard output."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from detent.clients.adapter.driven import Driven, client
from detent.clients.adapter.failure import crashed, failed
from detent.clients.adapter.stream import Calls, Count, Tail, decoded, finished
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Finished, Said, Started, ToolUsed, Used
from detent.core.session.phase_state import Tokens
from detent.process.conversation import Exited

PROGRAM = "gemini"
_APPROVAL = {"--approval-mode auto_edit": ("--approval-mode", "--yolo", "-y")}


def adapter(settings: AgentSettings) -> Driven:
    return client(settings, PROGRAM, ("--output-format", "stream-json"), unless=_APPROVAL, reader=GeminiReader)


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Stats(msgspec.Struct, frozen=True):
    total_tokens: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    session_id: str = ""
    model: str = ""
    #: Fields of a message, which comes in pieces.
    role: str = ""
    content: str = ""
    #: Fields of a call and of its result; the status is the result's.
    tool_name: str = ""
    tool_id: str = ""
    parameters: Any = None
    status: str = ""
    #: Fields of an error; a warning does not end the turn.
    severity: str = ""
    message: str = ""
    error: _Error | None = None
    stats: _Stats | None = None


_LINE = msgspec.json.Decoder(_Line)


class GeminiReader:
    def __init__(self) -> None:
        self._calls = Calls()
        self._saying = Tail()
        self._last_words = ""
        self._error = ""
        self._result: _Line | None = None

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        parsed = decoded(_LINE, line)
        if parsed is None:
            return ()
        if parsed.type == "message":
            if parsed.role == "assistant":
                self._saying.add(parsed.content.encode())
            return ()
        return (*self._said(), *self._other(parsed))

    def unfinished(self) -> Iterable[ToolUsed]:
        return self._calls.unfinished()

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        return (*self._said(), *self.unfinished(), self._ended(exited))

    def _said(self) -> Iterator[AgentEvent]:
        """The message that ends when another kind of line follows."""
        if text := self._saying.text():
            self._saying.clear()
            self._last_words = text
            yield Said(text=text)

    def _other(self, parsed: _Line) -> Iterator[AgentEvent]:
        match parsed.type:
            case "init":
                yield Started(conversation=parsed.session_id, model=parsed.model)
            case "tool_use":
                self._calls.begin(parsed.tool_id, parsed.tool_name, parsed.parameters)
            case "tool_result":
                yield from self._calls.end(parsed.tool_id, succeeded=parsed.status == "success")
            case "error":
                self._error = parsed.message or self._error
                yield Said(text=parsed.message)
            case "result":
                self._result = parsed
                stats = parsed.stats or _Stats()
                # The total has the tokens of thinking, which the output does not count.
                output = max(stats.output_tokens, stats.total_tokens - stats.input_tokens)
                yield Used(tokens=Tokens(input=stats.input_tokens, output=output))
            case _:
                pass

    def _ended(self, exited: Exited) -> Finished | Failed:
        result = self._result
        if result is None:
            return crashed(PROGRAM, exited)
        if result.status == "success" and exited.exit_code == 0:
            return finished(self._last_words, self._calls)
        error = (result.error.message if result.error else "") or self._error
        return failed(error) if error else crashed(PROGRAM, exited)
