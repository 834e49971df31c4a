"""The lines of a text that are not in an earlier version of it."""

from collections.abc import Iterable
from difflib import SequenceMatcher

#: Texts with more differing lines are not compared line by line: all lines between the first and the last count.
MAX_COMPARED = 4_000
#: A larger file, or one with zero bytes, is no code that a person wrote.
MAX_BYTES = 4 * 1024 * 1024


def changed_lines(before: bytes | None, now: bytes) -> frozenset[int]:
    """The numbers of the lines that were added or changed, from 1; of a binary file none. None: the file is new."""
    if b"\0" in now[:8192] or len(now) > MAX_BYTES:
        return frozenset()
    old, new = (before or b"").splitlines(), now.splitlines()
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if not old or len(old) + len(new) > MAX_COMPARED:
        return _code(new, start, range(len(new)))
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    kept = {block.b + at for block in matcher.get_matching_blocks() for at in range(block.size)}
    return _code(new, start, (at for at in range(len(new)) if at not in kept))


def _code(lines: list[bytes], start: int, numbers: Iterable[int]) -> frozenset[int]:
    """Without empty lines, which no tool measures."""
    return frozenset(start + at + 1 for at in numbers if lines[at].strip())


def ranges(lines: Iterable[int]) -> str:
    """`3-5, 9`."""
    parts: list[list[int]] = []
    for line in sorted(lines):
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
