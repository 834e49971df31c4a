from datetime import UTC, datetime

import pytest

from detent.documents.state import (
    prune_completed_phases,
    prune_history,
    prune_skill_usage_log,
    prune_workflow_history,
    reset_phases,
)

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(("keep", "kept"), [(0, []), (1, [2]), (3, [0, 1, 2]), (9, [0, 1, 2])])
def test_exactly_the_last_entries_are_kept(keep: int, kept: list[int]) -> None:
    assert prune_skill_usage_log({"skill_usage_log": [0, 1, 2]}, keep) == {"skill_usage_log": kept}


def test_the_defaults_keep_fifty_a_hundred_and_fifty() -> None:
    many = [{"n": n} for n in range(200)]

    assert prune_skill_usage_log({"skill_usage_log": many})["skill_usage_log"] == many[-50:]
    assert prune_history({"history": many})["history"] == many[-100:]
    assert prune_workflow_history({"workflow_history": many})["workflow_history"] == many[-50:]


def test_open_and_protected_phases_keep_their_working_fields() -> None:
    done = {"status": "completed", "gate_validation": {"status": "passed"}}
    phases = {"open": {**done, "status": "in_progress"}, "protected": done, "done": done, "odd": None}

    pruned = prune_completed_phases({"phases": phases}, NOW, protected=["protected"])["phases"]

    stamp = "2026-02-20T12:00:00.000Z"
    assert pruned == {**phases, "done": {"status": "completed", "_pruned_at": stamp}}


def test_a_long_text_is_shortened_once() -> None:
    once = prune_history({"history": [{"action": "x" * 201}]}, length=200)
    entry = prune_workflow_history({"workflow_history": [{"description": "x" * 201}]})["workflow_history"][0]

    assert once["history"][0]["action"] == entry["description"] == "x" * 200 + "..."


def test_reset_leaves_only_fresh_records_that_share_nothing() -> None:
    reset = reset_phases({"phases": {"old": {}}, "kept": 1}, ["a", "b"])

    assert reset["kept"] == 1
    assert list(reset["phases"]) == ["a", "b"]
    assert reset["phases"]["a"] == {
        "status": "pending",
        "started": None,
        "completed": None,
        "gate_passed": None,
        "artifacts": [],
    }
    assert reset["phases"]["a"]["artifacts"] is not reset["phases"]["b"]["artifacts"]
