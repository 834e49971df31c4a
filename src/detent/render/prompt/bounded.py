"""A text of several sections that must not be longer than so many bytes: cut where it hurts least, and said so."""

from collections.abc import Sequence

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True):
    title: str = ""
    body: str
    #: What may be cut goes from 1 upwards, the first to be cut first; 0 stays whole.
    rank: int = 0
    #: Bytes of the body that stay whatever else does not fit.
    least: int = 0


def bounded_text(sections: Sequence[Section], limit: int) -> str:
    """The sections that have something to say, in at most `limit` bytes as far as what has to stay fits into them."""
    stripped = (msgspec.structs.replace(section, body=section.body.strip()) for section in sections)
    said = [section for section in stripped if section.body]
    over = _size(_joined(said)) - limit
    for section in sorted((one for one in said if one.rank), key=lambda one: one.rank):
        shorter = _shortened(section, over)
        over -= _size(section.body) - _size(shorter.body)
        said[said.index(section)] = shorter
    return _joined(said)


def _shortened(section: Section, over: int) -> Section:
    """Shorter by `over` bytes, the note that says so included, or as short as it may be."""
    data = section.body.encode("utf-8", "replace")
    note = f"\n[{len(data)} bytes were too many here; the rest is left out]"
    # A cut may leave a block open, and ending it takes a line too.
    added = len(note) + max((len(line) + 1 for line in section.body.splitlines() if _is_fence(line)), default=0)
    kept = max(section.least, len(data) - over - added)
    if kept + added >= len(data):
        return section
    text = data[:kept].decode("utf-8", "ignore").rstrip()
    return msgspec.structs.replace(section, body=text + _open_fence(text) + note)


def _open_fence(text: str) -> str:
    """What ends a block that the cut left open, so that what follows is not taken for a part of it."""
    fence = ""
    for line in text.splitlines():
        if line == fence or (not fence and _is_fence(line)):
            fence = "" if fence else line
    return f"\n{fence}" if fence else ""


def _is_fence(line: str) -> bool:
    return line.startswith("```") and not line.strip("`")


def _joined(sections: Sequence[Section]) -> str:
    return "\n\n".join(f"## {one.title}\n\n{one.body}" if one.title else one.body for one in sections)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
