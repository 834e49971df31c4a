"""The form of an object in a segment: a header of one JSON line, the stored bytes, a newline.

The header says how the content comes from the stored bytes: as they are (`raw`), decompressed (`zlib`), placed
between the beginning and the end of another object (`edit`), or not from here but from a plain file (`file`).
"""

import os
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec

from detent.core.path_text import from_text
from detent.errors import Invalid

START = b'{"sha256":"'
#: A name of 255 bytes takes up to 1,020 characters, and JSON doubles a backslash once more.
MAX_HEADER = 4096
_CHUNK = 1 << 20

RAW, ZLIB, EDIT, FILE = "raw", "zlib", "edit", "file"
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
#: The index has four bytes for the length of a record.
Length = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A form that is not known here may be one of a newer Detent: the record is still a record."""

    sha256: Digest
    form: str
    bytes: Length
    size: Count
    base: Digest | None = None
    prefix: Count = 0
    suffix: Count = 0
    depth: Count = 0
    #: How the stored bytes of an edit are kept.
    middle: Literal["raw", "zlib"] = "raw"
    path: str | None = None


class Found(NamedTuple):
    """A record: where it begins, where its stored bytes do, and where it ends."""

    header: Header
    offset: int
    start: int
    end: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Header).decode


def encode(header: Header) -> bytes:
    return _encode(header) + b"\n"


def parse(data: bytes) -> tuple[Header, int] | None:
    """The header that `data` begins with and its length with the newline; None if it begins with none."""
    end = data.find(b"\n", 0, MAX_HEADER)
    if end < 0 or not data.startswith(START):
        return None
    try:
        return _decode(data[:end]), end + 1
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def plain_path(header: Header) -> str | None:
    """Where the plain file of the object is, below the root; None if the header names no such place."""
    try:
        path = from_text(header.path or "")
    except Invalid:
        return None
    parts = path.split("/")
    odd = len(parts) != 3 or parts[1] != header.sha256 or any(part in ("", ".", "..") for part in parts)
    return None if odd or "\0" in path else path


def scan(fd: int, start: int, end: int) -> Iterator[Found]:
    """The records between two offsets, in order. What lies between two of them is damaged; what follows the last may
    be torn. One that does not end in a newline may be longer than its header says or shorter; its content will tell,
    and others are looked for within it."""
    window = _Window(fd, end)
    offset = start
    while offset < end:
        found = _record_at(window, offset)
        if found is None:
            offset = window.find(START, offset + 1)
        else:
            yield found
            closed = window.get(found.end - 1, 1) == b"\n"
            offset = found.end if closed else found.start


class _Window:
    """A file up to an offset, read ahead. Not mapped: somebody may cut it, and a mapping would then kill us."""

    def __init__(self, fd: int, end: int) -> None:
        self.end = end
        self._fd = fd
        self._data = b""
        self._offset = 0

    def get(self, offset: int, length: int) -> bytes:
        """Fewer bytes at the end."""
        length = max(0, min(length, self.end - offset))
        at = offset - self._offset
        if at < 0 or at + length > len(self._data):
            self._data = os.pread(self._fd, min(max(length, _CHUNK), self.end - offset), offset)
            self._offset, at = offset, 0
        return self._data[at : at + length]

    def find(self, wanted: bytes, offset: int) -> int:
        """Where `wanted` begins next; the end if it does not."""
        while offset + len(wanted) <= self.end:
            data = self.get(offset, _CHUNK)
            at = data.find(wanted)
            if at >= 0:
                return offset + at
            offset += max(1, len(data) - len(wanted) + 1)
        return self.end


def _record_at(window: _Window, offset: int) -> Found | None:
    parsed = parse(window.get(offset, MAX_HEADER))
    if parsed is None:
        return None
    header, length = parsed
    end = offset + length + header.bytes + 1
    return Found(header, offset, offset + length, end) if end <= window.end else None
