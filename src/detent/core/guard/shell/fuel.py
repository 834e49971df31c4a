"""Fuel: the work that the guard may do for one command.

Every step burns some, in proportion to the text that it handles. The count is the same on every machine; a command that
burns all of it is opaque.
"""

#: About a microsecond a unit on an ordinary machine, so that the worst command costs well below two seconds.
MAX_FUEL = 500_000


class OutOfFuel(Exception):
    """The command is too long, too deep or too branched to be followed."""


class Fuel:
    __slots__ = ("left",)

    def __init__(self, left: int = MAX_FUEL) -> None:
        self.left = left

    def burn(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise OutOfFuel
