import json
from typing import Any

import pytest

from detent.documents.state import collect_phase_snapshots

FIX = (
    "01-requirements",
    "02-tracing",
    "05-test-strategy",
    "06-implementation",
    "16-quality-loop",
    "07-testing",
    "08-code-review",
    "10-cicd",
)


def finished(phases: tuple[str, ...], record: dict[str, Any]) -> dict[str, Any]:
    workflow = {
        "phases": list(phases),
        "started_at": "2026-02-09T10:00:00Z",
        "completed_at": "2026-02-09T11:00:00Z",
    }
    return {"active_workflow": workflow, "phases": {key: dict(record) for key in phases}}


def test_a_minimal_fix_of_eight_phases_fits_two_kilobytes() -> None:
    record = {
        "status": "completed",
        "started": "2026-02-09T10:00:00Z",
        "completed": "2026-02-09T10:06:00Z",
        "gate_passed": "2026-02-09T10:06:00Z",
        "artifacts": [],
    }

    collected = collect_phase_snapshots(finished(FIX, record))

    assert len(collected["phase_snapshots"]) == 8
    assert len(json.dumps(collected, separators=(",", ":")).encode()) <= 2048


def test_phases_come_in_workflow_order_and_uninitialised_ones_only_count() -> None:
    doc = finished(("06-implementation", "01-requirements", "10-cicd"), {"status": "completed"})
    del doc["phases"]["10-cicd"]
    doc["phases"]["00-quick-scan"] = {"status": "completed"}

    collected = collect_phase_snapshots(doc)

    assert [each["key"] for each in collected["phase_snapshots"]] == ["06-implementation", "01-requirements"]
    assert collected["metrics"]["total_phases"] == 3
    assert collected["metrics"]["phases_completed"] == 2


def test_an_initialised_phase_without_fields_is_pending() -> None:
    [snapshot] = collect_phase_snapshots(finished(("01-requirements",), {}))["phase_snapshots"]

    assert snapshot["status"] == "pending"


def test_an_old_key_finds_the_record_and_the_agent_of_its_phase() -> None:
    doc = finished(("13-test-deploy",), {})
    doc["phases"] = {"12-test-deploy": {"status": "completed"}}
    doc["history"] = [None, {"agent": "deployment-engineer-staging", "action": "deployed"}]

    [snapshot] = collect_phase_snapshots(doc)["phase_snapshots"]

    assert (snapshot["key"], snapshot["status"]) == ("13-test-deploy", "completed")
    assert snapshot["summary"] == "deployed"


def test_the_snapshot_does_not_share_its_artifacts_with_the_document() -> None:
    doc = finished(("01-requirements",), {"artifacts": ["a.md"]})

    [snapshot] = collect_phase_snapshots(doc)["phase_snapshots"]

    assert snapshot["artifacts"] == ["a.md"]
    assert snapshot["artifacts"] is not doc["phases"]["01-requirements"]["artifacts"]


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ({}, None),
        ({"current_iteration": 0}, None),
        ({"current": 2}, {"count": 2, "result": "unknown", "escalated": False}),
        ({"current_iteration": 2, "completed": True}, {"count": 2, "result": "passed", "escalated": False}),
        ({"current_iteration": "2", "completed": True}, {"count": 0, "result": "passed", "escalated": False}),
        ({"escalated": True}, {"count": 0, "result": "escalated", "escalated": True}),
    ],
)
def test_a_test_loop_is_told_by_count_and_result(loop: dict[str, Any], expected: dict[str, Any] | None) -> None:
    doc = finished(("06-implementation",), {"iteration_requirements": {"test_iteration": loop}})

    [snapshot] = collect_phase_snapshots(doc)["phase_snapshots"]

    assert snapshot.get("test_iterations") == expected


@pytest.mark.parametrize("end", ["completed", "gate_passed"])
@pytest.mark.parametrize(("second", "found"), [("00", True), ("01", False)])
def test_a_report_counts_until_a_minute_after_its_phase(end: str, second: str, found: bool) -> None:
    record = {"started": "2026-02-09T10:00:00Z", end: "2026-02-09T10:06:00Z"}
    doc = finished(("06-implementation",), record)
    entry = {"agent": "software-developer", "action": "late", "timestamp": f"2026-02-09T10:07:{second}Z"}

    [snapshot] = collect_phase_snapshots(doc | {"history": [entry]})["phase_snapshots"]

    assert snapshot["summary"] == ("late" if found else None)
