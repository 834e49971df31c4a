"""Counts and lists things in words."""

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """1 file, 2 files."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are: a, b, c and 4 more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
