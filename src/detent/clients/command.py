"""Any program as an agent: a shell command that takes a prompt, does the work and says what came of it.

The prompt comes on its input, or as a file that `DETENT_PROMPT` names. The result is what it says, or the last line of
its output that is a JSON object, or a JSON file that `DETENT_RESULT` names. Exit code 75, which is "try again later"
everywhere, is a passing failure.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec

from detent.clients.adapter.agent import Turn
from detent.clients.adapter.driven import Driven, Launch, Reader, as_input
from detent.clients.adapter.failure import last_words
from detent.clients.adapter.stream import MAX_SUMMARY, Count, Tail, decoded, finished
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished, Said, ToolUsed, Used
from detent.core.session.phase_state import Report, Tokens
from detent.errors import Invalid
from detent.process.conversation import MAX_LINE_BYTES, Exited

TRY_LATER = 75
_PROMPT, _RESULT = "prompt.md", "result.json"
_MAX_LINE = 4 * 1024
_FAILURES = {"failed": Failure.ERROR, "refused": Failure.REFUSED, "transient": Failure.TRANSIENT}
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def adapter(settings: AgentSettings) -> Driven:
    script = settings.command
    if not script:
        raise Invalid('an agent with the adapter "command" has no command', way_out="set its command in detent.toml")

    def launch(turn: Turn) -> Launch:
        env = {}
        if "file" in (settings.prompt, settings.result):
            os.makedirs(turn.scratch, exist_ok=True)
        if settings.prompt == "file":
            env["DETENT_PROMPT"] = os.path.join(turn.scratch, _PROMPT)
            with open(env["DETENT_PROMPT"], "wb") as file:
                file.write(as_input(turn.prompt))
        if settings.result == "file":
            env["DETENT_RESULT"] = os.path.join(turn.scratch, _RESULT)
            with suppress(FileNotFoundError):  # of an earlier try
                os.unlink(env["DETENT_RESULT"])
        given = as_input(turn.prompt) if settings.prompt == "stdin" else b""
        return Launch(argv=("bash", "-c", script, "bash", *settings.args), given=given, env=env)

    def reader(turn: Turn) -> Reader:
        if settings.result == "file":
            return FileReader(os.path.join(turn.scratch, _RESULT))
        return JsonReader() if settings.result == "json" else TextReader()

    return Driven(launch, reader, settings.env)


class _Tool(msgspec.Struct, frozen=True):
    tool: str
    input: str = ""
    succeeded: bool = True


class _Tokens(msgspec.Struct, frozen=True):
    input: Count = 0
    output: Count = 0
    cost: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a command may hand back. Fields that are not known here are passed over."""

    summary: str = ""
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    status: Literal["done", "failed", "refused", "transient"] = "done"
    error: str = ""
    tokens: _Tokens = _Tokens()
    tools: tuple[_Tool, ...] = ()


class TextReader:
    """All that it said counts, with the lines of a result block if there are any."""

    def __init__(self) -> None:
        self._text = Tail()

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        self._text.add(line + b"\n")
        return (_said(line),)

    def unfinished(self) -> Iterable[ToolUsed]:
        return ()

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        said = self._text.text()
        return (finished(said) if exited.exit_code == 0 else _exit_failure(exited, said),)


class JsonReader:
    """Of all lines the last that is a JSON object counts; the others are only shown."""

    def __init__(self) -> None:
        self._last: bytes | None = None

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        if decoded(_OBJECT, line) is None:
            return (_said(line),)
        self._last = line
        return ()

    def unfinished(self) -> Iterable[ToolUsed]:
        return ()

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        cut = f" (a line longer than {MAX_LINE_BYTES} bytes was cut)" if exited.dropped else ""
        return _ended(self._last, f"no line of its output is a JSON object{cut}", exited)


class FileReader:
    """A JSON file that it leaves behind counts; what it says is only shown."""

    def __init__(self, path: str) -> None:
        self._path = path

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        return (_said(line),)

    def unfinished(self) -> Iterable[ToolUsed]:
        return ()

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        try:
            content = _content(self._path)
        except OSError as error:
            return _ended(None, f"it left no result in the file that DETENT_RESULT names: {error.strerror}", exited)
        return _ended(content, "the file that DETENT_RESULT names is no plain file", exited)


def _said(line: bytes) -> Said:
    return Said(text=line[:_MAX_LINE].decode("utf-8", "replace"))


def _content(path: str) -> bytes | None:
    """None if reading it could take for ever."""
    os.stat(path)
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read(MAX_LINE_BYTES)


def _ended(content: bytes | None, missing: str, exited: Exited) -> Iterator[AgentEvent]:
    result = _result(content, missing)
    if isinstance(result, str):
        yield Failed(failure=Failure.ERROR, reason=result) if exited.exit_code == 0 else _exit_failure(exited)
        return
    for tool in result.tools:
        yield ToolUsed(tool=tool.tool, input=tool.input, succeeded=tool.succeeded)
    used = Tokens(input=result.tokens.input, output=result.tokens.output, cost=result.tokens.cost)
    if used != Tokens():
        yield Used(tokens=used)
    yield _judged(result, exited)


def _result(content: bytes | None, missing: str) -> Result | str:
    """The result, or what is wrong with it."""
    if content is None:
        return missing
    try:
        return msgspec.json.decode(content.decode("utf-8", "replace"), type=Result)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"its result is not of the right shape: {error}"


def _judged(result: Result, exited: Exited) -> Finished | Failed:
    if result.status != "done":
        reason = result.error or result.summary or f"it says: {result.status}"
        return Failed(failure=_FAILURES[result.status], reason=reason)
    if exited.exit_code != 0:
        return _exit_failure(exited)
    if result.error:
        return Failed(failure=Failure.ERROR, reason=result.error)
    return Finished(
        report=Report(
            summary=result.summary[:MAX_SUMMARY],
            artifacts=result.artifacts,
            deliverables=result.deliverables,
            context=result.context,
        )
    )


def _exit_failure(exited: Exited, said: str = "") -> Failed:
    """Its words are not looked at for a reason to try again: they may be about anything."""
    failure = Failure.TRANSIENT if exited.exit_code == TRY_LATER else Failure.ERROR
    return Failed(failure=failure, reason=last_words("the command", exited, said))
