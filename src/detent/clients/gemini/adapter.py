"""Runs Gemini CLI non-interactively: the prompt on standard input, a stream of JSON lines on standard output."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from detent.clients.adapter.driven import Driven, client
from detent.clients.adapter.failure import crashed, failed
from detent.clients.adapter.stream import Calls, Count, Tail, decoded, finished
from detent.clients.gemini.records import recorded_tokens
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished, Said, Started, Used
from detent.core.session.phase_state import Tokens
from detent.process.conversation import Exited

PROGRAM = "gemini"
_APPROVAL = {"--approval-mode auto_edit": ("--approval-mode", "--yolo", "-y")}
#: How it reports that the service sent no answer, after it asked several times. A request that the service blocks, as
#: with PROHIBITED_CONTENT, ends so; Gemini CLI does not pass the reason on.
_NO_ANSWER = ("empty response with no text", "without a finish reason")
_BLOCKED = "The service may block the request, as with PROHIBITED_CONTENT"


def adapter(settings: AgentSettings) -> Driven:
    reader = partial(GeminiReader, _home(settings))
    return client(settings, PROGRAM, ("--output-format", "stream-json"), unless=_APPROVAL, reader=reader)


def recorded_usage(settings: AgentSettings, conversation: str, since_s: float) -> Tokens:  # noqa: ARG001 - the id is unique
    """The tokens of a conversation, as the record of Gemini CLI tells them."""
    return recorded_tokens(_home(settings), conversation)


def _home(settings: AgentSettings) -> str:
    names = ("GEMINI_CLI_HOME", "HOME")
    given = (settings.env.get(name) or os.environ.get(name) for name in names)
    return os.path.join(next(filter(None, given), os.path.expanduser("~")), ".gemini")


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
    def __init__(self, home: str | None = None) -> None:
        """`home`: the directory in which Gemini CLI records its conversations; None reads no records."""
        self._home, self._conversation = home, ""
        self._used = Tokens()
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

    def unfinished(self) -> Iterable[AgentEvent]:
        """The tool calls without a result, and the tokens of a turn that was ended; the stream tells them last."""
        recorded = recorded_tokens(self._home, self._conversation) if self._home else Tokens()
        more = recorded.input + recorded.output > self._used.input + self._used.output
        return (*self._calls.unfinished(), *((Used(tokens=recorded),) if more else ()))

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
                self._conversation = parsed.session_id
                yield Started(conversation=parsed.session_id, model=parsed.model)
            case "tool_use":
                yield from self._calls.begin(parsed.tool_id, parsed.tool_name, parsed.parameters)
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
                self._used = Tokens(input=stats.input_tokens, output=output)
                yield Used(tokens=self._used)
            case _:
                pass

    def _ended(self, exited: Exited) -> Finished | Failed:
        result = self._result
        if result is None:
            return crashed(PROGRAM, exited)
        if result.status == "success" and exited.exit_code == 0:
            return finished(self._last_words, self._calls)
        error = (result.error.message if result.error else "") or self._error
        if any(words in error for words in _NO_ANSWER):
            return Failed(failure=Failure.REFUSED, reason=f"{error} {_BLOCKED}.")
        return failed(error) if error else crashed(PROGRAM, exited)
