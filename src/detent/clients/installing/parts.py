"""The parts of an installation: an entry in hook settings (`hook_settings`), a block of text, a whole file.

A block stands between markers, on lines of their own, in a file that belongs to another. Only the lines between the
markers are replaced. A whole file ends with a seal: a digest of the rest. While the seal is valid the file is
unchanged, also in a fresh clone; a file that a person has edited is never overwritten or removed.
"""

import hashlib
import re
from collections.abc import Callable
from typing import NamedTuple

from detent.errors import Invalid

BEGIN, END = b"<!-- detent:begin -->", b"<!-- detent:end -->"
_MARKER = re.compile(rb"^(?:(%s)|%s)[ \t]*\r?$\n?" % (re.escape(BEGIN), re.escape(END)), re.MULTILINE)
_SEAL = re.compile(rb"^(?:<!-- |# )detent:file ([0-9a-f]{16})(?: -->)?\n\Z", re.MULTILINE)


class Outcome(NamedTuple):
    """The content that the file should have; None for no file. `note` is for the person who asked."""

    content: bytes | None
    note: str = ""


class Part(NamedTuple):
    """The part of one file that belongs to Detent."""

    path: str
    #: From the present content (None: no file) to the content with the part.
    merge: Callable[[bytes | None], Outcome]
    #: From the present content and the original (None: no file, or unknown) to the content without the part.
    strip: Callable[[bytes, bytes | None], Outcome]


# A block of text


def merge_block(current: bytes | None, *, name: str, text: bytes) -> Outcome:
    content = current or b""
    spans = _spans(content, name)
    if not spans:
        newline = b"\r\n" if b"\r\n" in content else b"\n"
        return Outcome(content + _separator(content, newline) + _block(text, newline))
    (start, end), *repeated = spans
    for again, behind in reversed(repeated):
        content = content[:again] + content[behind:]
    newline = b"\r\n" if content[start:end].partition(b"\n")[0].endswith(b"\r") else b"\n"
    block = _block(text, newline)
    # If a person removed the newline of the last line, keep it so.
    if not content[start:end].endswith(b"\n"):
        block = block.removesuffix(newline)
    return Outcome(content[:start] + block + content[end:])


def strip_block(current: bytes, original: bytes | None, *, name: str) -> Outcome:
    content = current
    for start, end in reversed(_spans(content, name)):
        content = _without_blank_line(content[:start]) + content[end:]
    gone = not content and original is None and content != current
    return Outcome(None if gone else content)


def _block(text: bytes, newline: bytes) -> bytes:
    return newline.join([BEGIN, *text.splitlines(), END, b""])


def _spans(content: bytes, name: str) -> list[tuple[int, int]]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Invalid(f"{name} is not UTF-8", way_out="nothing was changed; save it as UTF-8")
    markers = list(_MARKER.finditer(content))
    expected = [True, False] * (len(markers) // 2 + 1)
    if [marker.group(1) is not None for marker in markers] != expected[: len(markers)] or len(markers) % 2:
        begin, end = BEGIN.decode(), END.decode()
        raise Invalid(
            f"the lines {begin} and {end} in {name} do not match",
            way_out=f"nothing was changed; correct or remove those lines in {name}",
        )
    return [(begin.start(), end.end()) for begin, end in zip(markers[::2], markers[1::2], strict=True)]


def _separator(content: bytes, newline: bytes) -> bytes:
    if not content:
        return b""
    return newline if content.endswith(b"\n") else newline * 2


def _without_blank_line(head: bytes) -> bytes:
    """`head` without the empty line that precedes the block."""
    for newline in (b"\r\n", b"\n"):
        if head.endswith(newline * 2):
            return head.removesuffix(newline)
    return head


# A whole file


def sealed(text: str, *, comment: tuple[str, str] = ("<!-- ", " -->")) -> bytes:
    body = text.encode()
    return body + f"{comment[0]}detent:file {_digest(body)}{comment[1]}\n".encode()


def is_sealed(content: bytes) -> bool:
    seal = _SEAL.search(content)
    return seal is not None and seal.group(1).decode() == _digest(content[: seal.start()])


def merge_file(current: bytes | None, *, name: str, content: bytes) -> Outcome:
    if current is None or is_sealed(current):
        return Outcome(content)
    return Outcome(current, f"{name} does not belong to Detent and was not changed")


def strip_file(current: bytes, _original: bytes | None, *, name: str) -> Outcome:
    if is_sealed(current):
        return Outcome(None)
    return Outcome(current, f"{name} was edited and is kept" if _SEAL.search(current) else "")


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
