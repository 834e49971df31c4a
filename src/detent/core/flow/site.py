"""Sites: the places of references in a command, their quotes, and whether a value may go there."""

from enum import StrEnum

import msgspec

from detent.errors import Refused


class Place(StrEnum):
    WORD = "word"  # unquoted, and nothing else in the word
    BARE = "bare"  # unquoted, part of a word
    ASSIGNED = "assigned"  # unquoted, in the value of an assignment
    DOUBLE = "double"
    SINGLE = "single"
    ANSI = "ansi"  # $'…'
    ESCAPE = "escape"  # the backslash that escapes a reference; it is removed


class Site(msgspec.Struct, kw_only=True):
    """`start` and `end` are positions in the whole command. A site with a reason in `why` takes no value."""

    name: str
    start: int
    end: int
    place: Place
    why: str = ""

    @property
    def is_reference(self) -> bool:
        return self.place is not Place.ESCAPE

    @property
    def is_session(self) -> bool:
        """True if Detent itself provides the value, which is then no output of a program."""
        return self.name.startswith("session.")

    def refuse(self, why: str) -> None:
        if self.is_reference:
            self.why = self.why or why


class Word(msgspec.Struct, kw_only=True):
    """A word of a command. `plain` is its text without quotes, with NUL for text that is only known when it runs.

    `bare` counts the characters before anything quoted or expanded, and `is_sealed` says that there is such. `direct`
    are its own sites, `sites` also those of the commands that are substituted in it.
    """

    plain: str = ""
    bare: int = 0
    is_sealed: bool = False
    is_pattern: bool = False
    direct: list[Site] = []
    sites: list[Site] = []

    def add(self, text: str, *, quoted: bool) -> None:
        self.is_sealed = self.is_sealed or quoted
        self.plain += text
        if not self.is_sealed:
            self.bare = len(self.plain)

    @property
    def starts_with_reference(self) -> bool:
        return bool(self.direct) and self.plain.startswith("\0")

    @property
    def keyword(self) -> str:
        """Its text if it has no quotes or expansions; only then it can be a keyword of the shell."""
        return "" if self.is_sealed else self.plain

    @property
    def unquoted(self) -> str:
        """The text before the first quote, expansion or reference."""
        return self.plain[: self.bare]

    @property
    def program(self) -> str:
        return self.plain.rpartition("/")[2]


class Unsure(Refused):
    """The shell may parse a command in another way than Detent does."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"character {position + 1}: {why}")
        self.position, self.why = position, why
