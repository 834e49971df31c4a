"""The list of escalations: bounded, without repeats, and with the newest of every kind."""

from datetime import datetime, timedelta

from detent.core.session.escalation import DEDUP_S, MAX_ESCALATIONS, add_distinct
from tests.support.values import NOON

Entry = tuple[str, datetime | None]


def add(entries: "tuple[Entry, ...]", kind: str, seconds: float | None) -> "tuple[Entry, ...]":
    new: Entry = (kind, None if seconds is None else NOON + timedelta(seconds=seconds))
    return tuple(add_distinct(entries, new, kind=lambda entry: entry[0], at=lambda entry: entry[1]))


def test_a_repeat_within_a_minute_is_dropped():
    entries = add((), "stuck", 0)

    assert add(entries, "stuck", DEDUP_S - 1) == entries
    assert len(add(entries, "stuck", DEDUP_S)) == 2
    assert len(add(entries, "other", 1)) == 2


def test_entries_without_a_time_are_never_repeats():
    assert len(add(add((), "stuck", None), "stuck", None)) == 2


def test_over_the_limit_the_oldest_goes_that_has_a_newer_one_of_its_kind():
    entries: tuple[Entry, ...] = (("rare", NOON),)
    for number in range(MAX_ESCALATIONS + 5):
        entries = add(entries, "common", number * DEDUP_S)

    assert len(entries) == MAX_ESCALATIONS
    assert entries[0] == ("rare", NOON)
    assert entries[-1][1] == NOON + timedelta(seconds=(MAX_ESCALATIONS + 4) * DEDUP_S)


def test_over_the_limit_the_oldest_goes_if_every_kind_is_there_once():
    entries: tuple[Entry, ...] = ()
    for number in range(MAX_ESCALATIONS + 1):
        entries = add(entries, f"kind {number}", 0)

    assert [kind for kind, _ in entries] == [f"kind {number}" for number in range(1, MAX_ESCALATIONS + 1)]
