"""Where a reference stands in a command: in which quotes, in what kind of word, and whether a value may go there."""

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
    ESCAPE = "escape"  # the backslash that took the meaning from a reference; it goes


class Site(msgspec.Struct, kw_only=True):
    """`start` and `end` count in the whole command. A site with a reason takes no value."""

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
        """A fact that Detent itself gives, not the output of a program."""
        return self.name.startswith("session.")

    def refuse(self, why: str) -> None:
        if self.is_reference:
            self.why = self.why or why


class Word(msgspec.Struct, kw_only=True):
    """A word as it was read. `plain` is its text without quotes, with NUL for what is only known when it runs.

    `bare` is how much of that stands before anything quoted or expanded, and `is_sealed` says that such came. `direct`
    are its own references, `sites` also those of the commands that are substituted in it.
    """

    start: int
    end: int = 0
    plain: str = ""
    bare: int = 0
    is_sealed: bool = False
    first: int | None = None
    direct: list[Site] = []
    sites: list[Site] = []

    def add(self, text: str, *, quoted: bool) -> None:
        self.is_sealed = self.is_sealed or quoted
        self.plain += text
        if not self.is_sealed:
            self.bare = len(self.plain)

    def add_site(self, site: Site) -> None:
        if self.first is None:
            self.first = len(self.plain)
        self.direct.append(site)
        self.add("\0", quoted=True)

    @property
    def has_reference(self) -> bool:
        return self.first is not None

    @property
    def keyword(self) -> str:
        """Its text if it was written without quotes or anything to expand; only then a shell takes it for its own."""
        return "" if self.is_sealed else self.plain

    @property
    def unquoted(self) -> str:
        """What stands before the first quote, expansion or reference."""
        return self.plain[: self.bare]

    @property
    def program(self) -> str:
        return self.plain.rpartition("/")[2]


class Unsure(Refused):
    """The reading of a command came to something that it cannot follow for certain."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"character {position + 1}: {why}")
        self.position, self.why = position, why
