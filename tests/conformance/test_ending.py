"""IR-010: how a workflow ends, and what is left of it."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from detent.core.workflow.graph import chain
from detent.documents.state import (
    collect_phase_snapshots,
    prune_completed_phases,
    prune_history,
    prune_skill_usage_log,
    prune_workflow_history,
    read,
    repair_completion,
    running,
)
from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle
from tests.support.disk import FEATURE, Disk
from tests.support.values import Clock

ONE_PHASE = chain("one-phase", [("Only", "somebody")])


def walk_to_the_end(handle: SessionHandle, clock: Clock) -> None:
    while True:
        clock.advance(minutes=5)
        phase = running(handle.state)["current_phase"]
        handle.finish(f"{phase} done")
        if not handle.state.ready:
            return
        clock.advance(minutes=1)
        handle.begin()


@pytest.fixture
def ended(project: Project, clock: Clock) -> SessionHandle:
    handle = project.start("feature", "add search", branch="feature/search")
    walk_to_the_end(handle, clock)
    project.flush()
    return handle


@pytest.mark.req("AC-010a")
def test_the_index_ends_one_past_the_last_phase(ended: SessionHandle, root: Path, disk: Disk) -> None:
    with open_project(root) as project:
        flow = running(project.session(ended.id).state)["active_workflow"]

    assert flow["current_phase_index"] == len(flow["phases"]) == 8
    assert disk.session(ended.id)["progress"]["completed_phases"] == list(FEATURE)


@pytest.mark.req("AC-010a")
def test_a_foreign_document_at_its_end_keeps_that_index(project: Project, disk: Disk) -> None:
    flow = {"type": "feature", "description": "add search", "phases": list(FEATURE)}
    records = {key: {"status": "completed", "summary": "done"} for key in FEATURE}
    handle = project.import_state({"active_workflow": flow, "phases": records}, source="old.json")

    assert disk.workflow()["current_phase_index"] == 8

    handle.complete()
    project.flush()
    assert disk.state()["active_workflow"] is None


@pytest.mark.req("AC-010b")
def test_the_history_line_holds_the_collected_snapshots(ended: SessionHandle, disk: Disk) -> None:
    expected = collect_phase_snapshots(running(ended.state))

    [entry] = disk.history()

    assert entry["phase_snapshots"] == expected["phase_snapshots"]
    assert entry["metrics"] == expected["metrics"]
    assert [snapshot["key"] for snapshot in entry["phase_snapshots"]] == list(FEATURE)
    assert entry["phase_snapshots"][1]["summary"] == "02-impact-analysis done"
    assert [snapshot["duration_minutes"] for snapshot in entry["phase_snapshots"]] == [5] * 8
    assert entry["metrics"] == {
        "total_phases": 8,
        "phases_completed": 8,
        "total_duration_minutes": 47,
        "test_iterations_total": 0,
        "gates_passed_first_try": 8,
        "gates_required_iteration": 0,
    }


@pytest.mark.req("AC-010c")
def test_the_history_line_says_what_when_and_how_it_went(ended: SessionHandle, disk: Disk) -> None:
    [entry] = disk.history()

    assert disk.state()["workflow_history"] == [entry]
    assert entry.keys() >= {"phase_snapshots", "metrics"}
    assert entry["phases"] == list(FEATURE)
    assert entry["started_at"] == "2026-02-20T10:00:00.000Z"
    assert entry["completed_at"] == "2026-02-20T10:47:00.000Z"
    assert (entry["type"], entry["status"], entry["description"]) == ("feature", "completed", "add search")
    assert entry["git_branch"] == {"name": "feature/search"}


@pytest.mark.req("AC-010d")
@pytest.mark.parametrize("how", ["finished", "cancelled"])
def test_nothing_is_active_after_the_end(project: Project, disk: Disk, clock: Clock, how: str) -> None:
    handle = project.start("feature", "add search")
    assert disk.markers() == [f".active-{handle.id}"]

    if how == "finished":
        walk_to_the_end(handle, clock)
    else:
        handle.cancel("not wanted after all")
    project.flush()

    state = disk.state()
    assert (state["active_workflow"], state["current_phase"], state["active_agent"]) == (None, None, None)
    assert disk.markers() == []
    assert project.active() is None


@pytest.mark.req("AC-010e")
def test_an_interrupted_end_is_completed_by_the_next_command(
    root: Path, disk: Disk, elsewhere: Callable[[str], "CompletedProcess[str]"]
) -> None:
    died = elsewhere(
        """
import os, signal
handle = open_project(root).start("fix", "repair search")
for phase in handle.state.workflow.order[1:]:
    handle.finish("done")
    handle.begin()
handle.finish("reviewed")
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    assert (died.returncode, disk.markers()) == (-9, [".active-WFS-repair-search"])
    assert not (disk.directory / "history.jsonl").exists()

    with open_project(root) as project:
        project.reconcile()

    [entry] = disk.history()
    assert (len(entry["phase_snapshots"]), entry["metrics"]["phases_completed"]) == (4, 4)
    assert disk.state()["active_workflow"] is None
    assert disk.state()["workflow_history"] == [entry]
    assert disk.markers() == []


@pytest.mark.req("AC-010e")
@pytest.mark.parametrize("lacking", ["phase_snapshots", "metrics"])
def test_a_history_line_that_lacks_something_is_made_whole(
    project: Project, ended: SessionHandle, disk: Disk, lacking: str
) -> None:
    [whole] = disk.history()
    partial = {name: value for name, value in whole.items() if name != lacking}
    (disk.directory / "history.jsonl").write_text(json.dumps(partial, separators=(",", ":")) + "\n")
    (disk.directory / f".active-{ended.id}").touch()

    project.reconcile()

    assert disk.history() == [whole]
    assert disk.markers() == []


@pytest.mark.req("AC-010e")
@pytest.mark.parametrize(("age", "repaired"), [(timedelta(minutes=2), True), (timedelta(minutes=2, seconds=1), False)])
@pytest.mark.parametrize("lacking", ["phase_snapshots", "metrics"])
def test_a_foreign_document_that_just_ended_is_made_whole(
    project: Project, disk: Disk, clock: Clock, lacking: str, age: timedelta, repaired: bool
) -> None:
    handle = project.start("fix", "repair search")
    project.flush()
    phases = disk.state()["phases"]
    walk_to_the_end(handle, clock)
    project.flush()
    state = disk.state()
    [whole] = state["workflow_history"]
    foreign = {**state, "phases": phases, "workflow_history": [{k: v for k, v in whole.items() if k != lacking}]}

    document, changed = repair_completion(foreign, clock.now + age)

    assert changed is repaired
    entry = document["workflow_history"][0]
    assert (len(entry.get("phase_snapshots", ())) == 4 and "metrics" in entry) is repaired


@pytest.mark.req("AC-010f")
def test_the_state_document_keeps_50_entries_and_the_history_all(project: Project, disk: Disk, clock: Clock) -> None:
    for number in range(52):
        walk_to_the_end(project.start(ONE_PHASE, f"{number} " + "long " * 60, name=f"run-{number}"), clock)
    project.flush()

    entries, kept = disk.history(), disk.state()["workflow_history"]
    assert [entry["session_id"] for entry in entries] == [f"WFS-run-{number}" for number in range(52)]
    assert [entry["session_id"] for entry in kept] == [f"WFS-run-{number}" for number in range(2, 52)]
    assert all(entry["metrics"]["phases_completed"] == 1 for entry in kept)
    assert {len(entry["description"]) for entry in kept} == {203}
    assert all(len(entry["description"]) > 290 for entry in entries)


@pytest.mark.req("AC-010f")
def test_pruning_takes_nothing_that_is_still_needed(project: Project, disk: Disk, clock: Clock) -> None:
    walk_to_the_end(project.start("fix", "repair search"), clock)
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    project.flush()
    state = disk.state()

    pruned: dict[str, Any] = prune_completed_phases(state, clock.now)
    for prune in (prune_skill_usage_log, prune_history, prune_workflow_history):
        pruned = prune(pruned)

    assert pruned["active_workflow"] == state["active_workflow"]
    assert pruned["workflow_history"] == state["workflow_history"]
    assert collect_phase_snapshots(pruned) == collect_phase_snapshots(state)
    assert read(pruned).phases == read(state).phases
    assert pruned["phases"]["01-requirements"]["_pruned_at"] == "2026-02-20T10:23:00.000Z"


@pytest.mark.req("TS-011")
def test_a_feature_is_archived_whole_and_needs_no_repair(
    project: Project, ended: SessionHandle, disk: Disk, clock: Clock
) -> None:
    files = {path: path.read_bytes() for path in (disk.state_path, disk.directory / "history.jsonl")}

    adoptions = project.reconcile()

    [entry] = disk.history()
    assert len(entry["phase_snapshots"]) == len(entry["phases"]) == 8
    assert entry["metrics"]["phases_completed"] == 8
    assert disk.state()["active_workflow"] is None
    assert adoptions == []
    assert {path: path.read_bytes() for path in files} == files
    assert repair_completion(disk.state(), clock.now) == (disk.state(), False)
