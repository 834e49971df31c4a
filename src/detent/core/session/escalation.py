"""The list of escalations: bounded, and without repeats within a minute."""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

#: The kind of an escalation whose phase has used up its budget.
BUDGET_EXCEEDED = "budget_exceeded"
MAX_ESCALATIONS = 20
DEDUP_S = 60

T = TypeVar("T")


def add_distinct(
    entries: Sequence[T], new: T, *, kind: Callable[[T], Hashable], at: Callable[[T], datetime | None]
) -> Sequence[T]:
    """`entries` with `new`; the same object if an entry of its kind is less than a minute older.

    Over the limit, the oldest entry with a newer one of its kind is dropped, so that every kind keeps an entry.
    """
    if any(kind(entry) == kind(new) and _is_soon(at(entry), at(new)) for entry in entries):
        return entries
    grown = [*entries, new]
    while len(grown) > MAX_ESCALATIONS:
        kinds = [kind(entry) for entry in grown]
        del grown[next((index for index, value in enumerate(kinds) if value in kinds[index + 1 :]), 0)]
    return tuple(grown)


def _is_soon(before: datetime | None, after: datetime | None) -> bool:
    return before is not None and after is not None and after - before < timedelta(seconds=DEDUP_S)
