"""Counts things in words."""


def counted(count: int, noun: str) -> str:
    """1 file, 2 files."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
