"""A text of sections with a limit in bytes: less important sections are shortened first, with a note."""

from collections.abc import Sequence

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True):
    title: str = ""
    body: str
    #: The order in which sections are shortened, from 1; 0 is never shortened.
    rank: int = 0
    #: Bytes of the body that always stay.
    least: int = 0


def bounded_text(sections: Sequence[Section], limit: int) -> str:
    """The sections that are not empty, in at most `limit` bytes if their least sizes allow it."""
    stripped = (msgspec.structs.replace(section, body=section.body.strip()) for section in sections)
    shown = [section for section in stripped if section.body]
    text = _joined(shown)
    over = _size(text) - limit
    if over <= 0:
        return text
    for section in sorted((each for each in shown if each.rank), key=lambda each: each.rank):
        shorter = _shortened(section, over)
        over -= _size(section.body) - _size(shorter.body)
        shown[shown.index(section)] = shorter
    return _joined(shown)


def _shortened(section: Section, over: int) -> Section:
    """The section, shorter by `over` bytes including the note, or as short as allowed."""
    data = section.body.encode("utf-8", "replace")
    note = f"\n[shortened: this section has {len(data)} bytes]"
    # The cut may leave a fenced block open; closing it takes a line.
    added = len(note) + max((len(line) + 1 for line in section.body.splitlines() if _is_fence(line)), default=0)
    end = max(section.least, len(data) - over - added)
    if end + added >= len(data):
        return section
    text = data[:end].decode("utf-8", "ignore").rstrip()
    return msgspec.structs.replace(section, body=text + _open_fence(text) + note)


def _open_fence(text: str) -> str:
    """The fence that closes a block which the cut left open."""
    fence = ""
    for line in text.splitlines():
        if line == fence or (not fence and _is_fence(line)):
            fence = "" if fence else line
    return f"\n{fence}" if fence else ""


def _is_fence(line: str) -> bool:
    return line.startswith("```") and not line.strip("`")


def _joined(sections: Sequence[Section]) -> str:
    return "\n\n".join(
        f"## {section.title}\n\n{section.body}" if section.title else section.body for section in sections
    )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
