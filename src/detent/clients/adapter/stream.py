"""Shared parts of the readers: decoding of JSON lines, open tool calls, the last message."""

import json
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

import msgspec

from detent.core.run.agent_event import Failed, Failure, Finished, ToolStarted, ToolUsed
from detent.core.run.result_block import result_block
from detent.core.session.phase_state import Report

MAX_SUMMARY = 2_000
MAX_TEXT = 64 * 1024
#: Arguments of a tool that describe the call; the first that is present is shown.
_DESCRIBING = ("command", "cmd", "file_path", "path", "pattern", "url", "query", "description", "prompt", "skill")
#: Integers that every JSON parser can hold.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_T = TypeVar("_T")


def decoded(decoder: msgspec.json.Decoder[_T], line: bytes) -> _T | None:
    """The value of a line; None if it is not JSON, or JSON of another shape."""
    if not line.lstrip().startswith(b"{"):
        return None
    text = line.decode("utf-8", "replace")
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _with_half_characters(decoder, text) if "\\ud" in text.lower() else None


def described(arguments: object) -> str:
    """The most telling argument of a tool call."""
    if isinstance(arguments, dict):
        return next((arguments[key] for key in _DESCRIBING if isinstance(arguments.get(key), str)), _json(arguments))
    return arguments if isinstance(arguments, str) else ""


def finished(text: str, calls: "Calls | None" = None) -> Finished | Failed:
    """The result in an agent's last message.

    A turn without a tool call and without a result block did no work: it is empty, or a refusal in plain text. Without
    `calls` the exit code is the report.
    """
    block = result_block(text)
    summary = block.summary[:MAX_SUMMARY]
    if block.failed:
        return Failed(failure=Failure.ERROR, reason=f"the agent reports a failure: {summary}")
    if calls is not None and not calls.any and not block.is_given:
        answer = f"; it answered: {summary}" if summary else ""
        return Failed(failure=Failure.ERROR, reason=f"the agent did nothing and reported no result{answer}")
    report = Report(summary=summary, deliverables=block.deliverables, context=block.context, met=block.met)
    return Finished(report=report)


class Calls:
    """The tool calls of a turn: whether there were any, and those without a result so far."""

    def __init__(self) -> None:
        self.any = False
        self._open: dict[str, ToolUsed] = {}

    def begin(self, call: str, tool: str, arguments: object) -> Iterable[ToolStarted]:
        self.any = True
        begun = self._open[call] = ToolUsed(tool=tool, input=described(arguments), succeeded=False)
        return (ToolStarted(tool=begun.tool, input=begun.input),)

    def end(self, call: str, *, succeeded: bool) -> Iterable[ToolUsed]:
        begun = self._open.pop(call, None)
        return () if begun is None else (msgspec.structs.replace(begun, succeeded=succeeded),)

    def unfinished(self) -> Iterable[ToolUsed]:
        return tuple(self._open.values())


class Tail:
    """The end of a text that comes in pieces, however long it gets."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def add(self, piece: bytes) -> None:
        self._kept += piece[-MAX_TEXT:]
        if len(self._kept) > 4 * MAX_TEXT:  # not for every piece, which would copy the text each time
            del self._kept[:-MAX_TEXT]

    def clear(self) -> None:
        self._kept.clear()

    def text(self) -> str:
        return bytes(self._kept[-MAX_TEXT:]).decode("utf-8", "replace")


def _with_half_characters(decoder: msgspec.json.Decoder[_T], text: str) -> _T | None:
    """Decode a line with half of a surrogate pair, which a client cut, as a question mark."""
    try:
        return decoder.decode(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _json(arguments: dict[str, Any]) -> str:
    return msgspec.json.encode(arguments).decode() if arguments else ""
