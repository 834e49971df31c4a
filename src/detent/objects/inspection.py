"""A look at every object there is, going on after what is damaged."""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from detent.objects.record import Found, scan
from detent.objects.segments import Segments


class Damaged(NamedTuple):
    """`digest` is None for bytes that belong to no object that is known."""

    digest: str | None
    where: str
    reason: str


def inspect(
    segments: Segments, fault: Callable[[str], str | None], seen: Callable[[int, int], None] | None
) -> Iterator[Damaged]:
    """`fault`: what is wrong with an object, if anything."""
    segments.refresh()
    expected = dict(segments.places)
    todo: dict[str, str] = {}
    whole: set[tuple[int, int]] = set()
    for number, segment in list(segments.files.items()):
        name = os.path.basename(segment.path)
        size = segment.size()
        found = list(scan(segment.fd, 0, size))
        yield from gaps(name, found, size if number < len(segments.files) else None)
        whole.update((number, one.offset) for one in found)
        for one in found:
            place = expected.get(bytes.fromhex(one.header.sha256), (number, one.offset))
            if place[:2] == (number, one.offset):
                todo[one.header.sha256] = f"{name} at byte {one.offset}"
    for key, (number, offset, _) in expected.items():
        if (number, offset) not in whole:
            todo[key.hex()] = f"{os.path.basename(segments.files[number].path)} at byte {offset}"
    for count, (digest, where) in enumerate(todo.items(), 1):
        reason = fault(digest)
        if reason is not None:
            yield Damaged(digest, where, reason)
        if seen is not None:
            seen(count, len(todo))


def gaps(name: str, found: list[Found], size: int | None) -> Iterator[Damaged]:
    """What is between the records. Behind the last one of the last segment somebody may be writing just now."""
    offset = 0
    for start, end in [*((one.offset, one.end) for one in found), (size, size)]:
        if start is not None and start > offset:
            yield Damaged(
                None, f"{name} at byte {offset}", f"these {start - offset} bytes are no record and were skipped"
            )
        offset = end or 0
