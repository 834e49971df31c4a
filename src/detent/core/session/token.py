"""The token of an attempt: returned by `begin`, checked by `finish`. Its fence makes older tokens invalid."""

from typing import NamedTuple

from detent.errors import Invalid


class Token(NamedTuple):
    phase: str
    attempt: int
    #: The journal version at which the attempt began; later attempts have a higher one.
    fence: int

    def __str__(self) -> str:
        return f"{self.phase}:{self.attempt}:{self.fence}"


def parse_token(text: str) -> Token:
    phase, *numbers = text.strip().split(":")
    if len(numbers) == 2 and all(number.isascii() and number.isdigit() for number in numbers):
        return Token(phase, int(numbers[0]), int(numbers[1]))
    raise Invalid(
        f"{text[:80]!r} is not a token; a token looks like 06-implementation:1:12",
        way_out="detent status --json shows the token of each attempt in progress",
    )
