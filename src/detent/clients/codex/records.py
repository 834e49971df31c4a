"""The tokens in Codex's own records: a file for each thread, below `sessions/YEAR/MONTH/DAY` in its home."""

import os
from collections.abc import Iterator
from glob import escape, glob

import msgspec

from detent.clients.adapter.stream import Count, decoded
from detent.core.session.phase_state import Tokens

#: A turn that lasts over midnight has its records in two directories.
_DAYS = 2
#: File systems store times in steps.
_STEP_S = 2.0
_MAX_BYTES = 256 * 1024 * 1024
#: Lines that tell the total of the thread: one after each answer of the model, and one when its tools have ended. Older
#: versions write only the second.
_MARKS = (b'"token_usage_record"', b'"token_count"')


class _Usage(msgspec.Struct, frozen=True):
    #: Includes the cached tokens.
    input_tokens: Count = 0
    output_tokens: Count = 0


class _Info(msgspec.Struct, frozen=True):
    total_token_usage: _Usage = _Usage()


class _Payload(msgspec.Struct, frozen=True):
    #: A field of the record of an answer.
    thread_token_usage: _Usage | None = None
    #: Fields of the first line: the thread, and the thread that it belongs to, which is itself without a parent.
    id: str = ""
    session_id: str = ""
    #: Fields of a count.
    type: str = ""
    info: _Info | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    payload: _Payload = _Payload()


_LINE = msgspec.json.Decoder(_Line)


def recorded_tokens(home: str, thread: str, since_s: float) -> Tokens:
    """The tokens of the thread and of its sub-agents, in records that were written since then."""
    total = Tokens()
    for data in _records(home, since_s - _STEP_S):
        first = decoded(_LINE, data[: data.find(b"\n") + 1]) or _Line()
        if first.type == "session_meta" and thread in (first.payload.id, first.payload.session_id):
            total += _last_count(data)
    return total


def _records(home: str, since_s: float) -> Iterator[bytes]:
    days = sorted(glob(os.path.join(escape(home), "sessions", "*", "*", "*")))[-_DAYS:]
    for path in (path for day in days for path in sorted(glob(os.path.join(escape(day), "rollout-*.jsonl")))):
        try:
            if os.stat(path).st_mtime >= since_s:
                with open(path, "rb") as file:
                    yield file.read(_MAX_BYTES)
        except OSError:
            # The record is gone, or not ours to read. The stream's own figure counts.
            continue


def _last_count(data: bytes) -> Tokens:
    """The last total of the thread."""
    totals = (_last(data, mark) for mark in _MARKS)
    return max(totals, key=lambda tokens: tokens.input + tokens.output)


def _last(data: bytes, mark: bytes) -> Tokens:
    end = len(data)
    while (at := data.rfind(mark, 0, end)) >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        stop = data.find(b"\n", at)
        line = decoded(_LINE, data[start : stop if stop >= 0 else len(data)])
        if line is not None and (used := _total(line)) is not None:
            return Tokens(input=used.input_tokens, output=used.output_tokens)
        end = start
    return Tokens()


def _total(line: _Line) -> _Usage | None:
    payload = line.payload
    if line.type == "token_usage_record":
        return payload.thread_token_usage
    if payload.type != "token_count" or payload.info is None:
        return None
    return payload.info.total_token_usage
