"""The list of things that people must decide: short, without repeats, and never without the newest of a kind."""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

MAX_ESCALATIONS = 20
DEDUP_S = 60

T = TypeVar("T")


def add_distinct(
    entries: Sequence[T], new: T, *, kind: Callable[[T], Hashable], at: Callable[[T], datetime | None]
) -> Sequence[T]:
    """`entries` and `new`; the very same `entries` if one of its kind came less than a minute before.

    Over the cap the oldest entry goes that has a newer one of its kind, so that no kind of problem goes unseen.
    """
    if any(kind(entry) == kind(new) and _is_soon(at(entry), at(new)) for entry in entries):
        return entries
    grown = [*entries, new]
    while len(grown) > MAX_ESCALATIONS:
        kinds = [kind(entry) for entry in grown]
        del grown[next((index for index, one in enumerate(kinds) if one in kinds[index + 1 :]), 0)]
    return tuple(grown)


def _is_soon(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and after - before < timedelta(seconds=DEDUP_S)
