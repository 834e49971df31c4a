"""Seed 000: what collect_phase_snapshots makes of a document, and what reaches the history."""

import copy
import json
from typing import Any

import pytest

from detent.documents.state import collect_phase_snapshots
from detent.engine.project import Project
from tests.support.disk import FEATURE, Disk
from tests.support.values import Clock

DEFAULT_METRICS = {
    "total_phases": 0,
    "phases_completed": 0,
    "total_duration_minutes": None,
    "test_iterations_total": 0,
    "gates_passed_first_try": 0,
    "gates_required_iteration": 0,
}
KEY = "06-implementation"


def document(*, history: object = None, workflow: dict[str, Any] | None = None, **record: Any) -> dict[str, Any]:
    """A workflow of one phase that ran from 10:00 to 10:03."""
    ran = {"status": "completed", "started": "2026-02-20T10:00:00Z", "completed": "2026-02-20T10:03:00Z"}
    return {
        "active_workflow": {"phases": [KEY], "started_at": "2026-02-20T09:58:00Z", **(workflow or {})},
        "phases": {KEY: {**ran, **record}},
        "history": history,
    }


def snapshot(doc: dict[str, Any]) -> dict[str, Any]:
    [only] = collect_phase_snapshots(doc)["phase_snapshots"]
    return only


@pytest.mark.req("000-6.1-1")
@pytest.mark.parametrize("phases", [None, "absent"])
def test_without_phase_records_there_is_nothing_to_snapshot(phases: object) -> None:
    doc = {**document(), "phases": phases}
    if phases == "absent":
        del doc["phases"]

    assert collect_phase_snapshots(doc) == {"phase_snapshots": [], "metrics": DEFAULT_METRICS}


@pytest.mark.req("000-6.1-2")
@pytest.mark.parametrize("workflow", [None, "absent"])
def test_without_a_workflow_there_is_nothing_to_snapshot(workflow: object) -> None:
    doc = {**document(), "active_workflow": workflow}
    if workflow == "absent":
        del doc["active_workflow"]

    assert collect_phase_snapshots(doc) == {"phase_snapshots": [], "metrics": DEFAULT_METRICS}


@pytest.mark.req("000-6.1-3")
def test_a_phase_without_a_record_is_passed_over() -> None:
    collected = collect_phase_snapshots(document(workflow={"phases": ["01-requirements", KEY]}))

    assert [each["key"] for each in collected["phase_snapshots"]] == [KEY]
    assert collected["metrics"]["total_phases"] == 2


@pytest.mark.req("000-6.1-4")
@pytest.mark.parametrize(
    "times",
    [{"started": "yesterday"}, {"completed": "later"}, {"started": None}, {"started": "2026-02-20T10:04:00Z"}],
)
def test_times_that_make_no_sense_give_no_duration(times: dict[str, Any]) -> None:
    assert snapshot(document())["duration_minutes"] == 3
    assert snapshot(document(**times))["duration_minutes"] is None


@pytest.mark.req("000-6.1-5", "ADR-004")
@pytest.mark.parametrize("requirements", [None, {}, {"test_iteration": None}, {"test_iteration": {}}])
def test_without_a_test_loop_none_is_mentioned(requirements: object) -> None:
    assert "test_iterations" not in snapshot(document(iteration_requirements=requirements))


@pytest.mark.req("ADR-004")
@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ({"current_iteration": 2, "completed": True}, (2, "passed", False)),
        ({"current": 3, "completed": True}, (3, "passed", False)),
        ({"current_iteration": 10, "escalated": True}, (10, "escalated", True)),
        ({"current_iteration": 1}, (1, "unknown", False)),
    ],
)
def test_a_test_loop_is_summed_up_in_three_fields(loop: dict[str, Any], expected: tuple[int, str, bool]) -> None:
    doc = document(iteration_requirements={"test_iteration": loop}, gate_passed="2026-02-20T10:03:00Z")

    assert snapshot(doc)["test_iterations"] == dict(zip(("count", "result", "escalated"), expected, strict=True))
    metrics = collect_phase_snapshots(doc)["metrics"]
    assert metrics["test_iterations_total"] == expected[0]
    assert metrics["gates_required_iteration"] == int(expected[0] > 1)
    assert metrics["gates_passed_first_try"] == int(expected[0] == 1)


@pytest.mark.req("000-6.1-6")
@pytest.mark.parametrize("history", [None, [], "none", [{"agent": "qa-engineer", "action": "looked"}]])
def test_without_any_summary_it_is_null(history: object) -> None:
    assert snapshot(document(history=history))["summary"] is None


@pytest.mark.req("000-6.1-7", "ADR-006")
def test_a_workflow_without_a_prefix_has_no_id(project: Project, disk: Disk) -> None:
    handle = project.start("test-run", "run the tests")

    handle.cancel("not now")
    project.flush()

    [entry] = disk.history()
    assert (entry["id"], entry["artifact_prefix"]) == (None, None)


@pytest.mark.req("000-6.1-7")
@pytest.mark.parametrize("given", [{"artifact_prefix": "REQ"}, {"counter_used": 7}])
def test_half_of_an_id_is_no_id(project: Project, disk: Disk, given: dict[str, Any]) -> None:
    flow = {"type": "feature", "description": "add search", "phases": [KEY], "current_phase": KEY, **given}
    handle = project.import_state({"active_workflow": flow}, source="old.json")

    handle.finish("done")
    project.flush()

    assert disk.history()[0]["id"] is None


@pytest.mark.req("000-6.1-8", "ADR-005")
@pytest.mark.parametrize(
    ("ended", "minutes"),
    [
        ({}, None),
        ({"completed_at": None, "cancelled_at": None}, None),
        ({"completed_at": "2026-02-20T10:03:00Z"}, 5),
        ({"cancelled_at": "2026-02-20T10:08:00Z"}, 10),
    ],
)
def test_the_total_duration_needs_an_end(ended: dict[str, Any], minutes: int | None) -> None:
    assert collect_phase_snapshots(document(workflow=ended))["metrics"]["total_duration_minutes"] == minutes


@pytest.mark.req("ADR-001")
def test_collecting_changes_nothing(project: Project, disk: Disk) -> None:
    project.start("feature", "add search").finish("requirements written", artifacts=["docs/spec.md"])
    project.flush()
    state = disk.state()
    untouched = copy.deepcopy(state)

    collected = collect_phase_snapshots(state)
    collected["phase_snapshots"][0]["artifacts"].append("docs/other.md")

    assert collected.keys() == {"phase_snapshots", "metrics"}
    assert collected["phase_snapshots"][0]["summary"] == "requirements written"
    assert state == untouched


@pytest.mark.req("ADR-002")
def test_snapshots_follow_the_list_and_ignore_other_records() -> None:
    doc = document(workflow={"phases": ["08-code-review", KEY, "01-requirements"]})
    doc["phases"] = {key: {} for key in ("00-quick-scan", "01-requirements", KEY, "08-code-review")}

    collected = collect_phase_snapshots(doc)

    assert [each["key"] for each in collected["phase_snapshots"]] == ["08-code-review", KEY, "01-requirements"]


@pytest.mark.req("ADR-002")
@pytest.mark.parametrize("phases", [[], None])
def test_without_a_list_there_are_no_snapshots(phases: object) -> None:
    assert collect_phase_snapshots(document(workflow={"phases": phases}))["phase_snapshots"] == []


@pytest.mark.req("ADR-003")
def test_the_summary_of_the_phase_comes_first() -> None:
    history = [{"agent": "software-developer", "action": "wrote code", "timestamp": "2026-02-20T10:01:00Z"}]

    assert snapshot(document(summary="search added", history=history))["summary"] == "search added"
    assert snapshot(document(history=history))["summary"] == "wrote code"
    assert snapshot(document(summary="s" * 151))["summary"] == "s" * 150
    assert snapshot(document(history=[{**history[0], "action": "a" * 151}]))["summary"] == "a" * 150


@pytest.mark.req("ADR-003")
@pytest.mark.parametrize(
    ("at", "taken"),
    [("09:59:59", False), ("10:00:00", True), ("10:04:00", True), ("10:04:01", False)],
)
def test_the_agent_is_quoted_only_from_the_time_of_its_phase(at: str, taken: bool) -> None:
    entry = {"agent": "software-developer", "action": "wrote code", "timestamp": f"2026-02-20T{at}Z"}
    other = {"agent": "qa-engineer", "action": "looked on", "timestamp": "2026-02-20T10:02:00Z"}

    assert snapshot(document(history=[entry, other]))["summary"] == ("wrote code" if taken else None)


@pytest.mark.req("ADR-003")
def test_the_last_matching_entry_is_quoted() -> None:
    history = [
        {"agent": "software-developer", "action": action, "timestamp": "2026-02-20T10:01:00Z"}
        for action in ("began", "wrote code")
    ]

    assert snapshot(document(history=history))["summary"] == "wrote code"
    assert snapshot(document(history=history, started=None))["summary"] == "wrote code"


@pytest.mark.req("ADR-005")
@pytest.mark.parametrize("cancelled", [False, True])
def test_the_total_duration_includes_the_gaps(project: Project, disk: Disk, clock: Clock, cancelled: bool) -> None:
    handle = project.start("test-run", "run the tests")
    clock.advance(minutes=10)
    handle.finish("set up")
    clock.advance(minutes=30)
    handle.begin()
    clock.advance(minutes=5)

    if cancelled:
        handle.cancel("not now")
    else:
        handle.finish("all passed")
    project.flush()

    [entry] = disk.history()
    assert entry["metrics"]["total_duration_minutes"] == 45
    assert ("cancelled_at" in entry, "completed_at" in entry) == (cancelled, not cancelled)
    durations = [each["duration_minutes"] for each in entry["phase_snapshots"]]
    assert durations == [10, None if cancelled else 5]


@pytest.mark.req("ADR-006")
def test_the_id_is_prefix_and_padded_number(project: Project, disk: Disk) -> None:
    for workflow in ("feature", "fix", "upgrade", "feature"):
        project.start(workflow, "add search").cancel("not now")
    project.flush()

    entries = disk.history()
    assert [entry["id"] for entry in entries] == ["REQ-0001", "BUG-0001", "UPG-0001", "REQ-0002"]
    assert [entry["artifact_folder"].startswith(entry["id"]) for entry in entries] == [True] * 4


@pytest.mark.req("ADR-007")
@pytest.mark.parametrize("artifacts", [0, 1, 9])
def test_the_snapshots_of_eight_phases_take_two_kilobytes_at_most(project: Project, disk: Disk, artifacts: int) -> None:
    handle = project.start("feature", "add search")
    for phase in FEATURE:
        named = [f"docs/requirements/{handle.state.folder}/{phase}-{number}.md" for number in range(artifacts)]
        for path in named:
            (disk.directory.parent / path).parent.mkdir(parents=True, exist_ok=True)
            (disk.directory.parent / path).write_text("text")
        handle.finish("7 requirements, 26 AC, 4 NFRs, specification validated. " * 3, phase=phase, artifacts=named)
        if handle.state.ready:
            handle.begin()
    project.flush()

    [entry] = disk.history()
    assert len(entry["phase_snapshots"]) == 8
    collected = {name: entry[name] for name in ("phase_snapshots", "metrics")}
    required = {"key", "status", "started", "completed", "gate_passed", "duration_minutes", "summary"}
    assert all(required <= each.keys() <= required | {"artifacts"} for each in entry["phase_snapshots"])
    assert all(each["summary"].startswith("7 requirements, 26 A") for each in entry["phase_snapshots"])
    assert len(json.dumps(collected, separators=(",", ":"))) <= 2 * 1024


@pytest.mark.parametrize(
    ("given", "shown"),
    [("1a2b3c4d" * 5, "1a2b3c4"), ("1a2b3c4d", "1a2b3c4d"), ("v1.2-and-more", "v1.2-and-more"), (None, None)],
)
def test_the_merged_commit_has_seven_characters(
    project: Project, disk: Disk, given: str | None, shown: str | None
) -> None:
    project.start("fix", "mend it").complete(force=True, merged_commit=given)
    project.flush()

    assert disk.history()[0]["merged_commit"] == shown


@pytest.mark.req("ADR-007")
def test_only_artifacts_that_exist_take_space() -> None:
    verbose = {"iteration_requirements": {}, "constitutional_validation": {"completed": True}, "gate_validation": {}}

    assert "artifacts" not in snapshot(document(artifacts=[], **verbose))
    assert snapshot(document(artifacts=["spec.md"]))["artifacts"] == ["spec.md"]
    assert "constitutional_validation" not in snapshot(document(**verbose))
