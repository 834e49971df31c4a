"""Runs any shell command as an agent: it receives a prompt, does the work and reports a result.

The command receives the prompt on standard input, or as a file that `DETENT_PROMPT` names. The result is its whole
output, or the last line of its output that is a JSON object, or a JSON file that `DETENT_RESULT` names. Exit code 75
(`EX_TEMPFAIL`) is a passing failure.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec

from detent.clients.adapter.agent import Turn
from detent.clients.adapter.driven import Driven, FloodReader, Launch, Reader, as_input
from detent.clients.adapter.failure import last_words
from detent.clients.adapter.stream import MAX_SUMMARY, Count, Tail, decoded, finished
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished, Said, ToolUsed, Used
from detent.core.session.phase_state import Report, Tokens
from detent.errors import Invalid
from detent.process.conversation import MAX_LINE_BYTES, Exited
from detent.store import disk

TRY_LATER = 75
_PROMPT, _RESULT = "prompt.md", "result.json"
_MAX_LINE = 4 * 1024
#: The most lines that are shown of those that come at once: a flood is slower to show than to read.
MAX_AT_ONCE = 50
_FAILURES = {"failed": Failure.ERROR, "refused": Failure.REFUSED, "transient": Failure.TRANSIENT}
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def adapter(settings: AgentSettings) -> Driven:
    script = settings.command
    if not script:
        raise Invalid('an agent with the adapter "command" has no command', way_out="set its command in detent.toml")

    def launch(turn: Turn) -> Launch:
        env = {}
        if "file" in (settings.prompt, settings.result):
            disk.make_directory(turn.scratch)
        if settings.prompt == "file":
            env["DETENT_PROMPT"] = os.path.join(turn.scratch, _PROMPT)
            disk.replace(env["DETENT_PROMPT"], as_input(turn.prompt))
        if settings.result == "file":
            env["DETENT_RESULT"] = os.path.join(turn.scratch, _RESULT)
            with suppress(FileNotFoundError):  # left by an earlier try
                os.unlink(env["DETENT_RESULT"])
        stdin = as_input(turn.prompt) if settings.prompt == "stdin" else b""
        return Launch(argv=("bash", "-c", script, "bash", *settings.args), stdin=stdin, env=env)

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
    """The result document of a command. Unknown fields are ignored."""

    summary: str = ""
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    #: How each acceptance criterion of the task was met.
    met: tuple[str, ...] = ()
    status: Literal["done", "failed", "refused", "transient"] = "done"
    error: str = ""
    #: Seconds after which it should be tried again, with the status transient.
    retry_after_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    tokens: _Tokens = _Tokens()
    tools: tuple[_Tool, ...] = ()


class TextReader(FloodReader):
    """Takes the whole output as the result, with a result block if there is one."""

    def __init__(self) -> None:
        self._text = Tail()

    def lines(self, lines: Sequence[bytes]) -> Iterable[AgentEvent]:
        self._text.add(b"\n".join(lines) + b"\n")
        return map(_said, lines[-MAX_AT_ONCE:])

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        text = self._text.text()
        return (finished(text) if exited.exit_code == 0 else _exit_failure(exited, text),)


class JsonReader(FloodReader):
    """Takes the last line that is a JSON object as the result; the other lines are only shown."""

    def __init__(self) -> None:
        self._last: bytes | None = None

    def lines(self, lines: Sequence[bytes]) -> Iterable[AgentEvent]:
        others = []
        for line in lines:
            # Decoding every line of a flood would be slow.
            if line.lstrip().startswith(b"{") and decoded(_OBJECT, line) is not None:
                self._last = line
            else:
                others.append(line)
        return map(_said, others[-MAX_AT_ONCE:])

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        cut = f" (a line longer than {MAX_LINE_BYTES} bytes was cut)" if exited.dropped else ""
        return _ended(self._last, f"no line of its output is a JSON object{cut}", exited)


class FileReader(FloodReader):
    """Takes a JSON file as the result; the output is only shown."""

    def __init__(self, path: str) -> None:
        self._path = path

    def lines(self, lines: Sequence[bytes]) -> Iterable[AgentEvent]:
        return map(_said, lines[-MAX_AT_ONCE:])

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        try:
            content = _content(self._path)
        except OSError as error:
            return _ended(None, f"it wrote no result to the file that DETENT_RESULT names: {error.strerror}", exited)
        return _ended(content, "the file that DETENT_RESULT names is not a regular file", exited)


def _said(line: bytes) -> Said:
    return Said(text=line[:_MAX_LINE].decode("utf-8", "replace"))


def _content(path: str) -> bytes | None:
    """The content of a regular file; None for a pipe or device, which could block."""
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
    """The result, or a sentence about its problem."""
    if content is None:
        return missing
    try:
        return msgspec.json.decode(content.decode("utf-8", "replace"), type=Result)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"its result has the wrong shape: {error}"


def _judged(result: Result, exited: Exited) -> Finished | Failed:
    if result.status != "done":
        reason = result.error or result.summary or f"its status is {result.status}"
        return Failed(failure=_FAILURES[result.status], reason=reason, retry_after_s=result.retry_after_s)
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
            met=result.met,
        )
    )


def _exit_failure(exited: Exited, text: str = "") -> Failed:
    """Only the exit code tells a passing failure: the output of a command may be about anything."""
    failure = Failure.TRANSIENT if exited.exit_code == TRY_LATER else Failure.ERROR
    return Failed(failure=failure, reason=last_words("the command", exited, text))
