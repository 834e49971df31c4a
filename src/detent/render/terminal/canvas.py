"""The canvas of a terminal view: its width, colour and encoding, and helpers to cut, pad, wrap and paint text.

`clean` makes control characters visible, so that no text can move the cursor.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from detent.core.session.status import Status

LEAST_WIDTH = 40
#: Columns of the label of a fact.
FACT_COLUMNS = 13
#: A word of a command, with what is in quotes.
_WORDS = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'])+")
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
#: Characters of Detent itself that are one column wide, and not ASCII.
_NARROW = dict.fromkeys(map(ord, _DRAWN + "".join(glyph for glyph, _, _ in _GLYPHS.values())))
_PLAIN = dict(zip(map(ord, _DRAWN), ["|", "|", "-", "+", "+", "+", ".", "'", "=", "-", "..."], strict=True))


class Canvas(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    width: int = 80
    colour: bool = False
    encoding: str = "utf-8"

    @cached_property
    def has_glyphs(self) -> bool:
        try:
            "".join(map(chr, _NARROW)).encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def glyph(self, status: Status) -> str:
        drawn, plain, colour = _GLYPHS[status]
        return self.paint(drawn if self.has_glyphs else plain, colour)

    def draw(self, text: str) -> str:
        """Lines, bars and dots in characters of the encoding; only `…` becomes wider."""
        return text if self.has_glyphs else text.translate(_PLAIN)

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text

    def bar(self, done: int, total: int, columns: int) -> str:
        """A progress bar; full if there is nothing to do."""
        filled = columns * done // total if total else columns
        full, rest = self.draw("━") * filled, self.draw("─") * (columns - filled)
        return self.paint(full, "green") + self.paint(rest, "dim")

    def commands(self, texts: Iterable[str]) -> list[str]:
        return [line for text in texts for line in self.command(text)]

    def labelled(self, label: str, text: str, columns: int, *, colour: str = "") -> str:
        """A label in a column of its own, and the text beside it, on as many lines as it needs."""
        head = f"{label:<{columns}}"
        first, *rest = self.wrap(text, " " * columns)
        return "\n".join([(self.paint(head, colour) if colour else head) + first[columns:], *rest])

    def fact(self, label: str, text: str) -> str:
        """A text beside its label, in the columns of all facts."""
        return self.labelled(label, text, FACT_COLUMNS, colour="cyan")

    def fact_commands(self, label: str, lines: list[str]) -> list[str]:
        """Lines of commands, which are indented as facts are, with their label."""
        first, *rest = lines
        return [self.paint(f"{label:<{FACT_COLUMNS}}", "cyan") + first.replace(" " * FACT_COLUMNS, "", 1), *rest]

    def hanging(self, text: str, indent: str, first: str) -> list[str]:
        """`text` wrapped at `indent`, its first line at `first`."""
        line, *rest = self.wrap(text, indent)
        return [first + line.strip(), *rest]

    def warnings(self, texts: Iterable[str]) -> list[str]:
        return [self.paint(line, "yellow") for text in texts for line in self.wrap(f"warning: {text}", "  ")]

    def clean(self, text: str) -> str:
        """One line: blanks become spaces, control characters visible, and characters outside the encoding `?`."""
        if not text.isprintable():
            text = "".join(map(_visible, text))
        return text if self.encoding == "utf-8" else text.encode(self.encoding, "replace").decode(self.encoding)

    def cut(self, text: str, columns: int) -> str:
        """`text`, cleaned and not wider than `columns`."""
        text = self.clean(text)
        if columns_of(text) <= columns:
            return text
        dots = self.draw("…")
        room, end = columns - len(dots), 0
        if text.isascii():
            end = max(room, 0)
        else:
            for _, width in _widths(text):
                room -= width
                if room < 0:
                    break
                end += 1
        return (text[:end].rstrip() + dots)[: max(columns, 0)]

    def pad(self, text: str, columns: int) -> str:
        """`text`, cleaned and exactly as wide as `columns`."""
        text = self.cut(text, columns)
        return text + " " * (columns - columns_of(text))

    def wrap(self, text: str, indent: str = "") -> list[str]:
        """`text`, cleaned, on as many lines as it needs; a word longer than a line goes on in the next one."""
        room, lines = self.width - len(indent), [""]
        for word in self.clean(text).split():
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if columns_of(joined) <= room:
                lines[-1] = joined
                continue
            pieces = list(_pieces(word, room))
            lines = [*lines[:-1], *pieces] if not lines[-1] else [*lines, *pieces]
        return [indent + line for line in lines]

    def whole(self, text: str, indent: str = "", first: str | None = None) -> list[str]:
        """A path, cleaned, with every blank of it, on as many lines as it needs; its first line at `first`."""
        pieces = list(_pieces(self.clean(text), self.width - len(indent)))
        return [(indent if at or first is None else first) + piece for at, piece in enumerate(pieces)]

    def command(self, text: str, indent: str = "  ") -> list[str]:
        """A command to type. It is never cut: a long command continues on the next line after a backslash.

        A line ends between two words of the shell, never between quotes.
        """
        words, lines = _WORDS.findall(text), [indent]
        if " ".join(words) != text:
            words = text.split(" ")
        for index, word in enumerate(words):
            more = " \\" if index < len(words) - 1 else ""
            if lines[-1].strip() and len(lines[-1]) + len(word) + 1 + len(more) > self.width:
                lines[-1] += " \\"
                lines.append(f"{indent}    {word}")
            else:
                lines[-1] += f" {word}" if lines[-1].strip() else word
        return [self.paint(line, "bold") for line in lines]


def columns_of(text: str) -> int:
    """The number of terminal columns of `text`, which is clean."""
    return len(text) if _is_narrow(text) else sum(columns for _, columns in _widths(text))


def _pieces(text: str, columns: int) -> Iterator[str]:
    """The text, which is clean, in pieces of at most so many columns."""
    piece, left = "", columns
    for character, width in _widths(text):
        if width > left and piece:
            yield piece
            piece, left = "", columns
        piece, left = piece + character, left - width
    yield piece


def _is_narrow(text: str) -> bool:
    """Whether every character of it is one column wide, as far as that is known without tables."""
    return text.isascii() or text.translate(_NARROW).isascii()


def _widths(text: str) -> Iterator[tuple[str, int]]:
    if _is_narrow(text):
        yield from ((character, 1) for character in text)
        return
    import unicodedata  # noqa: PLC0415 - most texts do without

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
