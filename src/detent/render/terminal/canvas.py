"""What a view is drawn on: so many columns, with or without colour, in an encoding. Nothing here knows of sessions.

All text that came from outside passes `clean`, so that it can neither move the cursor nor be wider than it looks.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from detent.core.session.status import Status

LEAST_WIDTH = 40
_JOINER, _EMOJI_FORM = "\u200d", "\ufe0f"
_COLOURS = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "bold": 1, "dim": 2}
_GLYPHS = {
    Status.COMPLETED: ("✓", "+", "green"),
    Status.IN_PROGRESS: ("▸", ">", "yellow"),
    Status.PENDING: ("○", ".", "dim"),
    Status.FAILED: ("✗", "!", "red"),
    Status.SKIPPED: ("⊘", "-", "dim"),
}
_DRAWN = "│├─┬┴┼╮╯━·…"
_PLAIN = dict(zip(map(ord, _DRAWN), ["|", "|", "-", "+", "+", "+", ".", "'", "=", "-", "..."], strict=True))


class Canvas(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    width: int = 80
    colour: bool = False
    encoding: str = "utf-8"

    @cached_property
    def has_glyphs(self) -> bool:
        try:
            (_DRAWN + "".join(glyph for glyph, _, _ in _GLYPHS.values())).encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def glyph(self, status: Status) -> str:
        drawn, plain, colour = _GLYPHS[status]
        return self.paint(drawn if self.has_glyphs else plain, colour)

    def draw(self, text: str) -> str:
        """Rails, bars and dots in characters that the encoding has; everything the same number of columns but `…`."""
        return text if self.has_glyphs else text.translate(_PLAIN)

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text

    def clean(self, text: str) -> str:
        """One line: blanks become spaces, control characters become visible, what cannot be shown becomes `?`."""
        if not text.isprintable():
            text = "".join(map(_visible, text))
        return text if self.encoding == "utf-8" else text.encode(self.encoding, "replace").decode(self.encoding)

    def cut(self, text: str, columns: int) -> str:
        """`text`, cleaned and not wider than `columns`."""
        text = self.clean(text)
        if columns_of(text) <= columns:
            return text
        dots = self.draw("…")
        room, kept = columns - len(dots), []
        for character, columns_used in _steps(text):
            room -= columns_used
            if room < 0:
                break
            kept.append(character)
        return ("".join(kept).rstrip() + dots)[: max(columns, 0)]

    def pad(self, text: str, columns: int) -> str:
        """`text`, cleaned and exactly as wide as `columns`."""
        text = self.cut(text, columns)
        return text + " " * (columns - columns_of(text))

    def wrap(self, text: str, indent: str = "") -> list[str]:
        """`text`, cleaned, on as many lines as it needs; only words longer than a line are cut."""
        room, lines = self.width - len(indent), [""]
        for word in self.clean(text).split():
            word = self.cut(word, room)  # noqa: PLW2901 - the word as it is shown
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if columns_of(joined) <= room:
                lines[-1] = joined
            else:
                lines.append(word)
        return [indent + line for line in lines]

    def command(self, text: str, indent: str = "  ") -> list[str]:
        """A command to type. It is never cut: where it is too long it goes on behind a backslash."""
        words, lines = text.split(" "), [indent]
        for index, word in enumerate(words):
            more = " \\" if index < len(words) - 1 else ""
            if lines[-1].strip() and len(lines[-1]) + len(word) + 1 + len(more) > self.width:
                lines[-1] += " \\"
                lines.append(f"{indent}    {word}")
            else:
                lines[-1] += f" {word}" if lines[-1].strip() else word
        return [self.paint(line, "bold") for line in lines]


def columns_of(text: str) -> int:
    """How many columns a terminal gives to `text`, which is clean."""
    return len(text) if text.isascii() else sum(columns for _, columns in _steps(text))


def _steps(text: str) -> Iterator[tuple[str, int]]:
    import unicodedata  # noqa: PLC0415 - plain ASCII does without

    before = 0
    for character in text:
        if character == _EMOJI_FORM and before == 1:
            columns = 1
        elif unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
            columns = 0
        else:
            columns = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        before = columns or before
        yield character, columns


def _visible(character: str) -> str:
    if character.isprintable() or character in (_JOINER, _EMOJI_FORM):
        return character
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f\x85":
        return " "
    return character.encode("unicode_escape").decode("ascii")
