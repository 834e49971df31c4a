"""Gemini CLI, without a person: its prompt on its input, a stream of JSON lines as its output."""

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
    input_tokens: Count = 0
    output_tokens: Count = 0


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    session_id: str = ""
    model: str = ""
    #: Of a message, which comes in pieces.
    role: str = ""
    content: str = ""
    #: Of a call, and of its result, whose status it is.
    tool_name: str = ""
    tool_id: str = ""
    parameters: Any = None
    status: str = ""
    #: Of an error; one that is only a warning is not the end.
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
        came = decoded(_LINE, line)
        if came is None:
            return ()
        if came.type == "message":
            if came.role == "assistant":
                self._saying.add(came.content.encode())
            return ()
        return (*self._said(), *self._other(came))

    def unfinished(self) -> Iterable[ToolUsed]:
        return self._calls.unfinished()

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        return (*self._said(), *self.unfinished(), self._ended(exited))

    def _said(self) -> Iterator[AgentEvent]:
        """The message that is over once something else comes."""
        if text := self._saying.text():
            self._saying.clear()
            self._last_words = text
            yield Said(text=text)

    def _other(self, came: _Line) -> Iterator[AgentEvent]:
        match came.type:
            case "init":
                yield Started(conversation=came.session_id, model=came.model)
            case "tool_use":
                self._calls.begin(came.tool_id, came.tool_name, came.parameters)
            case "tool_result":
                yield from self._calls.end(came.tool_id, succeeded=came.status == "success")
            case "error":
                self._error = came.message or self._error
                yield Said(text=came.message)
            case "result":
                self._result = came
                stats = came.stats or _Stats()
                yield Used(tokens=Tokens(input=stats.input_tokens, output=stats.output_tokens))

    def _ended(self, exited: Exited) -> Finished | Failed:
        result = self._result
        if result is None:
            return crashed(PROGRAM, exited)
        if result.status == "success" and exited.exit_code == 0:
            return finished(self._last_words)
        told = (result.error.message if result.error else "") or self._error
        return failed(told) if told else crashed(PROGRAM, exited)
