"""The encoding of a journal: one commit a line, as JSON that ends in a sum over the line and the sum before it.

The sum is checksum and chain in one: changing, removing or reordering a line breaks every line after it. The first line
also states the number of the format, which is checked before anything else of it is decoded.
"""

import msgspec

from detent.core.gate.registry import decode_gate
from detent.core.session.events import Commit
from detent.errors import Corrupt, UnknownFormat
from detent.sha256 import sha256
from detent.store.journal_tail import END, SUM_KEY, SUM_TAIL, sum_at_end

#: Raise it with every change that another Detent could not read, and replace the fixture journal of the tests.
FORMAT = 4
GENESIS = "0" * 32
_FORMAT_KEY = b'{"format":%d,' % FORMAT


class _Head(msgspec.Struct):
    format: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Commit, dec_hook=decode_gate).decode
_decode_head = msgspec.json.Decoder(_Head).decode


def encode_line(commit: Commit, previous: str) -> tuple[bytes, str]:
    """The line with its newline, and its sum."""
    body = _encode(commit)[:-1]
    if previous == GENESIS:
        body = _FORMAT_KEY + body[1:]
    total = _sum(previous, body)
    return b"".join((body, SUM_KEY, total.encode(), END)), total


def decode_line(line: bytes, previous: str, number: int, session: str) -> tuple[Commit, str]:
    """The commit and its sum. `line` includes its newline; `number` and `session` are used in errors."""
    body, total = line[:-SUM_TAIL], sum_at_end(line)
    if total != _sum(previous, body):
        raise Corrupt(
            f"line {number} of the journal of {session} is damaged: its checksum does not match it and the line before",
            way_out=f"detent doctor shows what is damaged, detent doctor --restore {session} mends it",
        )
    if number == 1:
        _check_format(body, session)
    set_aside = f"detent doctor --restore {session} sets it aside, and all commits behind it"
    try:
        commit = _decode(body + b"}")
    except msgspec.DecodeError as error:
        raise Corrupt(
            f"line {number} of the journal of {session} is undamaged but cannot be decoded: {error}",
            way_out=f"{set_aside}; if a newer Detent wrote it, upgrade this one",
        ) from error
    if commit.version != number:
        raise Corrupt(f"line {number} of the journal of {session} holds commit {commit.version}", way_out=set_aside)
    return commit, total


def verified_sum(line: bytes, previous: str) -> str:
    """The sum of a line with its newline if it follows the line with the sum `previous`; else empty."""
    total = sum_at_end(line)
    return total if total and total == _sum(previous, line[:-SUM_TAIL]) else ""


def _check_format(body: bytes, session: str) -> None:
    try:
        number = _decode_head(body + b"}").format
    except msgspec.DecodeError:
        number = 0
    if number != FORMAT:
        raise UnknownFormat(
            f"the journal of {session} has format {number or 'none'}, and this Detent reads format {FORMAT}",
            way_out="open it with the version of Detent that wrote it; nothing in it was changed",
        )


def _sum(previous: str, body: bytes) -> str:
    return sha256(previous.encode() + body).hexdigest()[:32]
