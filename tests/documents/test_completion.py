from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from detent.documents.state import repair_completion
from detent.documents.state.stamp import format_stamp

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)


def closed(age_s: float = 10, **entry: Any) -> dict[str, Any]:
    record = {"status": "completed", "gate_passed": "2026-02-20T11:59:00Z"}
    ended_at = format_stamp(NOW - timedelta(seconds=age_s))
    return {
        "state_version": 5,
        "active_workflow": None,
        "phases": {"06-implementation": record, "08-code-review": record},
        "workflow_history": [{"type": "fix", "completed_at": ended_at, **entry}],
    }


def test_the_phases_of_the_document_stand_in_for_those_of_the_entry() -> None:
    doc, repaired = repair_completion(closed(), NOW)

    assert repaired
    [entry] = doc["workflow_history"]
    assert [each["key"] for each in entry["phase_snapshots"]] == ["06-implementation", "08-code-review"]
    assert entry["metrics"]["total_phases"] == 2
    assert doc["state_version"] == 6


@pytest.mark.parametrize(("age_s", "repaired"), [(-3600, True), (120, True), (120.001, False), (3600, False)])
def test_only_a_workflow_that_just_ended_is_repaired(age_s: float, repaired: bool) -> None:
    assert repair_completion(closed(age_s), NOW)[1] is repaired


@pytest.mark.parametrize(("stamp", "repaired"), [(None, True), ("soon", False)])
def test_no_end_counts_as_now_and_an_unreadable_one_as_long_ago(stamp: str | None, repaired: bool) -> None:
    assert repair_completion(closed(completed_at=stamp), NOW)[1] is repaired


def test_a_running_workflow_is_left_alone() -> None:
    doc = closed() | {"active_workflow": {"type": "feature"}}

    assert repair_completion(doc, NOW) == (doc, False)


def test_reset_phases_are_not_called_repaired() -> None:
    doc = closed(phases=["06-implementation"]) | {"phases": {}}

    assert repair_completion(doc, NOW) == (doc, False)


def test_metrics_are_rebuilt_from_snapshots_that_survived_the_reset() -> None:
    kept = [{"key": "06-implementation", "status": "completed", "gate_passed": True}]
    doc = closed(phases=["06-implementation"], phase_snapshots=kept) | {"phases": {}}

    after, repaired = repair_completion(doc, NOW)

    assert repaired
    [entry] = after["workflow_history"]
    assert entry["phase_snapshots"] == kept
    assert entry["metrics"]["phases_completed"] == entry["metrics"]["gates_passed_first_try"] == 1


def test_a_repaired_document_is_tidied_up() -> None:
    many = [{"n": n} for n in range(200)]

    doc, _ = repair_completion(
        closed() | {"history": many, "skill_usage_log": many, "current_phase": "08-code-review"}, NOW
    )

    assert doc["history"] == many[-100:]
    assert doc["skill_usage_log"] == many[-50:]
    assert (doc["current_phase"], doc["phases"]) == (None, {})


def test_a_second_repair_finds_nothing_to_do() -> None:
    once, _ = repair_completion(closed(), NOW)

    assert repair_completion(once, NOW) == (once, False)
