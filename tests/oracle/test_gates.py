"""Sessions against the recorded counting and completing of tests, questions and constitutions."""

import json
from pathlib import Path
from typing import Any

import pytest

from detent.core.guard.state_reader import mapping
from detent.engine.session import SessionHandle
from detent.errors import GateClosed, NotFound
from tests.support.oracle.cases import Case, cases
from tests.support.oracle.differences_guard import DIFFERENCES
from tests.support.oracle.phase_session import GREEN, document, hook, run_in_shell, session

ALL = cases("cases_guard.jsonl")
IMPLEMENTATION = "06-implementation"
TESTS = ("iteration_requirements", "test_iteration")
SHORT = "10 passing\nStatements : 60%"


def of(area: str) -> list[Case]:
    return [case for case in ALL if case.area == area]


@pytest.mark.parametrize("case", of("test_watcher"), ids=lambda case: case.id)
def test_a_test_run_counts_as_recorded(case: Case, tmp_path: Path) -> None:
    before, after = recorded(case, TESTS)
    command, output = case.input["tool_input"]["command"], case.input["tool_result"]

    # Where a run prints coverage, the project has a tool that measures it.
    tool = {"package.json": '{"devDependencies": {"nyc": "17"}}'} if "Statements" in output else None
    with session(tmp_path, IMPLEMENTATION, files=tool):
        for earlier in earlier_runs(before):
            run_in_shell(tmp_path, "npm test", earlier)
        run_in_shell(tmp_path, command, output)

    ours = document(tmp_path)["phases"][IMPLEMENTATION]["iteration_requirements"]["test_iteration"]
    assert counts(ours) | counts(after) == counts(ours)
    assert ours["escalated"] is (after.get("status") == "escalated")
    assert ours["escalation_reason"] == after.get("escalation_reason")
    assert (ours["completed"] is after.get("completed", False)) is (case.id not in DIFFERENCES)


@pytest.mark.parametrize("case", of("menu_tracker"), ids=lambda case: case.id)
def test_a_question_counts_as_recorded(case: Case, tmp_path: Path) -> None:
    phase = case.state["active_workflow"]["current_phase"]
    _, after = recorded(case, ("iteration_requirements", "interactive_elicitation"))

    with session(tmp_path, phase) as (_, handle):
        choose(handle, after)

    requirements = document(tmp_path)["phases"][phase]["iteration_requirements"]
    ours = requirements.get("interactive_elicitation", {})
    agrees = all(ours.get(name) == after.get(name) for name in ("completed", "final_selection", "steps_completed"))
    assert agrees is (case.id not in DIFFERENCES)


@pytest.mark.parametrize("case", of("constitution_validator"), ids=lambda case: case.id)
def test_a_phase_is_finished_with_its_constitution_as_recorded(case: Case, tmp_path: Path) -> None:
    """Completion was claimed in a prompt there; here a phase is completed by finishing it."""
    found = mapping(case.state["phases"][IMPLEMENTATION].get("constitutional_validation"))

    with session(tmp_path, IMPLEMENTATION) as (_, handle):
        open_all_but_the_constitution(tmp_path, handle)
        for compliant in {"compliant": [True], "escalated": [False] * 5}.get(str(found.get("status")), []):
            handle.gates.report("constitution", compliant=compliant)
        reason = refusal(handle)

    assert ("block" if reason else "allow") == case.expect["decision"]
    assert not reason or (f"phase {IMPLEMENTATION} is held by 1 of its gates" in reason and "constitution" in reason)
    assert case.id not in DIFFERENCES


@pytest.mark.parametrize("case", of("delegation_gate"), ids=lambda case: case.id)
def test_no_delegation_marker_is_kept_or_obeyed(case: Case, tmp_path: Path) -> None:
    (tmp_path / ".workflow").mkdir()
    (tmp_path / ".workflow/state.json").write_text(json.dumps(case.state))
    payload = {"hook_event_name": "PostToolUse", **case.input}

    answer = hook(tmp_path, payload.pop("hook_event_name"), **payload)

    assert document(tmp_path) == case.state
    marker = case.expect.get("state_changes", {}).get("pending_delegation", case.state.get("pending_delegation"))
    same_decision = ("block" if '"block"' in answer else "allow") == case.expect["decision"]
    same_marker = marker == case.state.get("pending_delegation")
    assert answer == ""
    assert (same_decision and same_marker) is (case.id not in DIFFERENCES)


def recorded(case: Case, place: tuple[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The gate's record before and after the recorded call."""
    phase = case.state["active_workflow"]["current_phase"]
    prefix = f"phases.{phase}.{place[0]}"
    before = mapping(mapping(case.state["phases"][phase].get(place[0])).get(place[1]))
    after = dict(before)
    for path, value in case.expect.get("state_changes", {}).items():
        if path == prefix:
            after = value[place[1]]
        elif path.startswith(f"{prefix}.{place[1]}."):
            after[path.rpartition(".")[2]] = value
    return before, after


def earlier_runs(before: dict[str, Any]) -> list[str]:
    """Outputs that lead to the recorded counts: distinct failures, then as many alike as were counted."""
    count, alike = before.get("current_iteration", 0), before.get("identical_failure_count", 0)
    if not before.get("failures_count"):
        return [SHORT] * count
    error = before["history"][-1]["error"]
    last = error if error[0].isdigit() else "70 failed, 1 passed"
    return [f"{80 + at} failed, 1 passed" for at in range(count - alike)] + [last] * alike


def counts(record: dict[str, Any]) -> dict[str, Any]:
    """Those of the fields that are there and mean the same on both sides."""
    names = ("current_iteration", "failures_count", "identical_failure_count", "last_test_result", "last_test_command")
    found = {name: record[name] for name in (*names, "max_iterations") if record.get(name) is not None}
    coverage = record.get("coverage")
    return found | ({"coverage": mapping(coverage).get("percentage", coverage)} if coverage else {})


def choose(handle: SessionHandle, after: dict[str, Any]) -> None:
    if after.get("final_selection"):
        handle.answer(choice=after["final_selection"])
    elif not after:
        with pytest.raises(NotFound):
            handle.answer(choice="continue")


def open_all_but_the_constitution(root: Path, handle: SessionHandle) -> None:
    run_in_shell(root, "npm test", GREEN)
    handle.record_agent_started(IMPLEMENTATION, "software-developer", "a1")
    handle.record_agent_ended("a1", succeeded=True)


def refusal(handle: SessionHandle) -> str:
    """Why the phase cannot be finished; nothing if it was."""
    try:
        handle.finish("implementation complete")
    except GateClosed as held:
        return held.message
    return ""
