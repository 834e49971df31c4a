"""A block of text between markers in a file that belongs to somebody else.

The markers stand on lines of their own. What is between them is ours and is replaced; nothing else is touched.
"""

import re

from detent.clients.installing.part import Outcome
from detent.errors import Invalid

BEGIN, END = b"<!-- detent:begin -->", b"<!-- detent:end -->"

_MARKER = re.compile(rb"^(?:(%s)|%s)[ \t]*\r?$\n?" % (re.escape(BEGIN), re.escape(END)), re.MULTILINE)


def merge(current: bytes | None, *, name: str, text: bytes) -> Outcome:
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
    # A last line without its newline is a person's choice; the block keeps it.
    if not content[start:end].endswith(b"\n"):
        block = block.removesuffix(newline)
    return Outcome(content[:start] + block + content[end:])


def strip(current: bytes, original: bytes | None, *, name: str) -> Outcome:
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
            f"the lines {begin} and {end} in {name} do not pair up",
            way_out=f"nothing was changed; mend or remove those lines in {name}",
        )
    return [(begin.start(), end.end()) for begin, end in zip(markers[::2], markers[1::2], strict=True)]


def _separator(content: bytes, newline: bytes) -> bytes:
    if not content:
        return b""
    return newline if content.endswith(b"\n") else newline * 2


def _without_blank_line(head: bytes) -> bytes:
    """`head` without the empty line that we put before the block."""
    for newline in (b"\r\n", b"\n"):
        if head.endswith(newline * 2):
            return head.removesuffix(newline)
    return head
