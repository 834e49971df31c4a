"""From stored bytes to content and back. Whatever comes out was verified against its digest."""

import hashlib
import os
from collections.abc import Callable

from detent.errors import Corrupt
from detent.objects.record import EDIT, FILE, RAW, ZLIB, Header, plain_path

#: So many edits stand upon each other at most: reading one reads them all.
MAX_DEPTH = 24
#: Both sides of an edit are in memory at once.
EDIT_BYTES = 64 << 20
#: An edit's header is longer than that of plain content; it has to be worth it.
_EDIT_OVERHEAD = 160
WAY_OUT = "restore the directory of the checkpoints from a backup; objects that are whole can still be read"

#: The header and the stored bytes of an object; Corrupt if there is none.
Fetch = Callable[[str], tuple[Header, bytes]]


def damaged(digest: str, reason: str) -> Corrupt:
    return Corrupt(f"object {digest} is damaged: {reason}", way_out=WAY_OUT)


def missing(digest: str) -> Corrupt:
    return Corrupt(f"object {digest} is missing", way_out=WAY_OUT)


def resolve(digest: str, fetch: Fetch, root: str) -> bytes:
    """The verified content. Edits are followed down to content that stands alone, then applied from there up."""
    edits: list[tuple[Header, bytes]] = []
    header, stored = fetch(digest)
    while header.form == EDIT:
        edits.append((header, stored))
        if header.base is None or len(edits) > MAX_DEPTH:
            raise damaged(digest, f"the chain of its edits leads nowhere after {len(edits)}")
        try:
            header, stored = fetch(header.base)
        except Corrupt as error:
            raise damaged(digest, f"it is an edit of another: {error.message}") from error
    content = _standing_alone(digest, header, stored, root)
    for edit, middle in reversed(edits):
        content = _apply(digest, edit, middle, content)
    if hashlib.sha256(content).hexdigest() != digest:
        raise damaged(digest, "its content does not have this SHA-256")
    return content


def encoded(digest: str, data: bytes, *, compress: bool) -> tuple[Header, bytes]:
    """Content that stands alone, as it is stored."""
    form, stored = _packed(data, compress=compress)
    return Header(sha256=digest, form=form, bytes=len(stored), size=len(data)), stored


def edited(digest: str, data: bytes, base: Header, old: bytes, *, compress: bool) -> tuple[Header, bytes] | None:
    """`data` as what it changes in `old`, the content of `base`; None if that saves less than half."""
    prefix = _common_prefix(old, data)
    suffix = _common_suffix(old, data, min(len(old), len(data)) - prefix)
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


def _standing_alone(digest: str, header: Header, stored: bytes, root: str) -> bytes:
    if header.form == RAW:
        return stored
    if header.form == ZLIB:
        return _inflated(digest, stored, header.size)
    if header.form == FILE:
        return _plain(digest, header, root)
    raise Corrupt(
        f"object {digest} is stored in the form {header.form[:40]!r}, which is not known here",
        way_out="it was written by a newer Detent; upgrade this one",
    )


def _plain(digest: str, header: Header, root: str) -> bytes:
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
    middle = _inflated(digest, stored, length) if edit.middle == "zlib" else stored
    return b"".join((old[: edit.prefix], middle, old[len(old) - edit.suffix :]))


def _packed(data: bytes, *, compress: bool) -> tuple[str, bytes]:
    if compress:
        import zlib  # noqa: PLC0415 - only where compression is on

        packed = zlib.compress(data)
        if len(packed) * 10 <= len(data) * 9:
            return ZLIB, packed
    return RAW, data


def _inflated(digest: str, stored: bytes, size: int) -> bytes:
    """Never much more than there can be, whatever the stored bytes claim."""
    import zlib  # noqa: PLC0415 - only where compression was on

    try:
        return zlib.decompressobj().decompress(stored, min(size, EDIT_BYTES) + 1)
    except zlib.error as error:
        raise damaged(digest, f"it cannot be decompressed: {error}") from error


def _common_prefix(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: bytes, other: bytes, limit: int) -> int:
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
