from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from detent.documents.state import DEDUP_S, MAX_ESCALATIONS, add_escalation
from detent.documents.state.stamp import format_stamp

START = datetime(2026, 2, 20, 10, 0, tzinfo=UTC)


def entry(phase: str, minute: int, **fields: Any) -> dict[str, Any]:
    at = format_stamp(START + timedelta(minutes=minute))
    return {"type": "gate_blocked", "hook": "gate-blocker", "phase": phase, "timestamp": at, **fields}


def test_the_same_problem_within_a_minute_is_reported_once() -> None:
    pending = [entry("a", 0)]

    assert add_escalation(pending, entry("a", 0, detail="again")) is pending
    assert len(add_escalation(pending, entry("a", 1))) == 2
    assert len(add_escalation(pending, entry("a", 0, hook="other"))) == 2
    assert len(add_escalation(pending, entry("a", 0, type="other"))) == 2
    assert DEDUP_S == 60


def test_unreadable_stamps_never_make_a_repeat() -> None:
    pending = [entry("a", 0, timestamp="soon")]

    assert len(add_escalation(pending, entry("a", 0, timestamp="soon"))) == 2


def test_a_flood_of_one_kind_does_not_push_out_another() -> None:
    pending = [entry("rare", 0)]
    for minute in range(1, 100):
        pending = add_escalation(pending, entry("noisy", minute))

    assert len(pending) == MAX_ESCALATIONS
    assert pending[0] == entry("rare", 0)
    assert pending[1:] == [entry("noisy", minute) for minute in range(81, 100)]


@given(st.lists(st.sampled_from("abcdef"), max_size=80))
def test_the_newest_entry_of_every_kind_survives_the_limit(phases: list[str]) -> None:
    pending: list[dict[str, Any]] = []
    for minute, phase in enumerate(phases):
        pending = add_escalation(pending, entry(phase, minute))

    newest = {phase: entry(phase, minute) for minute, phase in enumerate(phases)}
    assert len(pending) <= MAX_ESCALATIONS
    assert all(each in pending for each in newest.values())
