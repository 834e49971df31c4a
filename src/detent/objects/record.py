"""Records: the form of an object in a segment, and how its content is encoded and restored.

A record is a header of one JSON line, the stored bytes and a newline. The header says how to get the content: the
stored bytes as they are (`raw`), decompressed (`zlib`), placed between the beginning and the end of another object
(`edit`), or taken from a plain file (`file`). Content is always verified against its digest.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec

from detent.core.path_text import from_text
from detent.errors import Corrupt, Invalid

START = b'{"sha256":"'
#: A name of 255 bytes takes up to 1,020 characters, and JSON doubles each backslash.
MAX_HEADER = 4096
#: Longest chain of edits: reading the last one reads them all.
MAX_DEPTH = 24
#: Both sides of an edit are in memory at once.
EDIT_BYTES = 64 << 20
#: The header of an edit is longer than that of whole content; an edit has to save more than that.
_EDIT_OVERHEAD = 160
_CHUNK = 1 << 20
_WAY_OUT = "restore the directory of the checkpoints from a backup; undamaged objects can still be read"

RAW, ZLIB, EDIT, FILE = "raw", "zlib", "edit", "file"
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
#: The index has four bytes for the length of a record.
Length = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`form` is any text: a record of a newer Detent is still a record."""

    sha256: Digest
    form: str
    bytes: Length
    size: Count
    base: Digest | None = None
    prefix: Count = 0
    suffix: Count = 0
    depth: Count = 0
    #: The encoding of an edit's stored bytes.
    middle: Literal["raw", "zlib"] = "raw"
    path: str | None = None


class Record(NamedTuple):
    """The offsets of a record: its beginning, the beginning of its stored bytes, its end."""

    header: Header
    offset: int
    start: int
    end: int


#: Returns the header and the stored bytes of an object, or raises Corrupt.
Fetch = Callable[[str], tuple[Header, bytes]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Header).decode


def damaged(digest: str, reason: str) -> Corrupt:
    return Corrupt(f"object {digest} is damaged: {reason}", way_out=_WAY_OUT)


def missing(digest: str) -> Corrupt:
    return Corrupt(f"object {digest} is missing", way_out=_WAY_OUT)


def encode(header: Header) -> bytes:
    return _encode(header) + b"\n"


def parse(data: bytes) -> tuple[Header, int] | None:
    """The header at the beginning of `data` and its length with the newline; None if there is no header."""
    end = data.find(b"\n", 0, MAX_HEADER)
    if end < 0 or not data.startswith(START):
        return None
    try:
        return _decode(data[:end]), end + 1
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def plain_path(header: Header) -> str | None:
    """The path of the object's plain file below the root; None if the header names no valid path."""
    try:
        path = from_text(header.path or "")
    except Invalid:
        return None
    parts = path.split("/")
    odd = len(parts) != 3 or parts[1] != header.sha256 or any(part in ("", ".", "..") for part in parts)
    return None if odd or "\0" in path else path


# Content


def resolve(digest: str, fetch: Fetch, root: str) -> bytes:
    """The verified content. Follows edits down to whole content, then applies them in reverse order."""
    edits: list[tuple[Header, bytes]] = []
    header, stored = fetch(digest)
    while header.form == EDIT:
        edits.append((header, stored))
        if header.base is None or len(edits) > MAX_DEPTH:
            raise damaged(digest, f"its chain of edits has no end after {len(edits)}")
        try:
            header, stored = fetch(header.base)
        except Corrupt as error:
            raise damaged(digest, f"it is an edit of another object: {error.message}") from error
    content = _whole(digest, header, stored, root)
    for edit, middle in reversed(edits):
        content = _apply(digest, edit, middle, content)
    if hashlib.sha256(content).hexdigest() != digest:
        raise damaged(digest, "its content does not have this SHA-256")
    return content


def encode_whole(digest: str, data: bytes, *, compress: bool) -> tuple[Header, bytes]:
    """The header and the stored bytes of content that rests on no other object."""
    form, stored = _packed(data, compress=compress)
    return Header(sha256=digest, form=form, bytes=len(stored), size=len(data)), stored


def encode_edit(digest: str, data: bytes, base: Header, old: bytes, *, compress: bool) -> tuple[Header, bytes] | None:
    """`data` as an edit of `old`, the content of `base`; None if that saves less than half."""
    prefix = _common(old, data, min(len(old), len(data)), lambda text, start, end: text[start:end])
    suffix = _common(
        old,
        data,
        min(len(old), len(data)) - prefix,
        lambda text, start, end: text[len(text) - end : len(text) - start],
    )
    middle = data[prefix : len(data) - suffix]
    if (len(middle) + _EDIT_OVERHEAD) * 2 > len(data):
        return None
    form, stored = _packed(middle, compress=compress)
    return Header(
        sha256=digest,
        form=EDIT,
        bytes=len(stored),
        size=len(data),
        base=base.sha256,
        prefix=prefix,
        suffix=suffix,
        depth=base.depth + 1,
        middle="zlib" if form == ZLIB else "raw",
    ), stored


def _whole(digest: str, header: Header, stored: bytes, root: str) -> bytes:
    if header.form == RAW:
        return stored
    if header.form == ZLIB:
        return inflate(digest, stored, header.size)
    if header.form != FILE:
        raise Corrupt(
            f"object {digest} is stored in the unknown form {header.form[:40]!r}",
            way_out="it was written by a newer Detent; upgrade this one",
        )
    path = plain_path(header)
    if path is None:
        raise damaged(digest, "its record names no plain file")
    try:
        with open(os.path.join(root, path), "rb") as file:
            return file.read()
    except OSError as error:
        raise damaged(digest, f"its plain file cannot be read: {error}") from error


def _apply(digest: str, edit: Header, stored: bytes, old: bytes) -> bytes:
    length = edit.size - edit.prefix - edit.suffix
    if length < 0 or edit.prefix + edit.suffix > len(old):
        raise damaged(digest, f"the edit {edit.sha256} does not fit its base")
    middle = inflate(digest, stored, length) if edit.middle == "zlib" else stored
    return b"".join((old[: edit.prefix], middle, old[len(old) - edit.suffix :]))


def _packed(data: bytes, *, compress: bool) -> tuple[str, bytes]:
    if compress:
        import zlib  # noqa: PLC0415 - only where compression is on

        packed = zlib.compress(data)
        if len(packed) * 10 <= len(data) * 9:
            return ZLIB, packed
    return RAW, data


def inflate(digest: str, stored: bytes, size: int) -> bytes:
    """The decompressed bytes, at most one more than `size`: a bomb does not fill the memory."""
    import zlib  # noqa: PLC0415 - only where compression was on

    try:
        return zlib.decompressobj().decompress(stored, min(size, EDIT_BYTES) + 1)
    except zlib.error as error:
        raise damaged(digest, f"it cannot be decompressed: {error}") from error


def _common(old: bytes, new: bytes, limit: int, piece: Callable[[bytes, int, int], bytes]) -> int:
    """The length of the common beginning, or of the common end, as `piece` cuts it; by bisection."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if piece(old, low, middle) == piece(new, low, middle):
            low = middle
        else:
            high = middle - 1
    return low


# Scanning


def scan(fd: int, start: int, end: int) -> Iterator[Record]:
    """The records between two offsets, in order. Bytes between records are damaged; bytes behind the last may be torn.

    A record without its newline may have a wrong length: its content decides, and the scan continues inside it.
    """
    window = _Window(fd, end)
    offset = start
    while offset < end:
        record = _record_at(window, offset)
        if record is None:
            offset = window.find(START, offset + 1)
        else:
            yield record
            is_closed = window.get(record.end - 1, 1) == b"\n"
            offset = record.end if is_closed else record.start


class _Window:
    """A buffered file up to an offset. Not mapped: if the file is cut, access to a mapping kills the process."""

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
        """The next offset of `wanted`; the end if there is none."""
        while offset + len(wanted) <= self.end:
            data = self.get(offset, _CHUNK)
            at = data.find(wanted)
            if at >= 0:
                return offset + at
            offset += max(1, len(data) - len(wanted) + 1)
        return self.end


def _record_at(window: _Window, offset: int) -> Record | None:
    parsed = parse(window.get(offset, MAX_HEADER))
    if parsed is None:
        return None
    header, length = parsed
    end = offset + length + header.bytes + 1
    return Record(header, offset, offset + length, end) if end <= window.end else None
