"""The guard against the recorded decisions of hooks that let a tool call through or block it."""

import re

import pytest

from detent.clients.registry import guarded_files
from detent.config.catalogue import shipped_settings
from detent.core.guard.call_purpose import agent_name, target_phase
from detent.core.guard.rules import GuardInput, guard
from detent.hooks.answer import main
from tests.support.oracle.cases import Case, cases
from tests.support.oracle.differences_guard import DIFFERENCES
from tests.support.oracle.guard_call import ROOT, call, completed, decision

HOOKS = {"gate", "corridor", "sequence", "phase_loop", "state_file_guard"}
ALL = cases("cases_guard.jsonl")
CALLS = [case for case in ALL if case.area in HOOKS and "tool_name" in case.input]
DETECTIONS = [case for case in ALL if case.area == "delegation_detect" and case.input["args"] != [None]]
NO_EVENTS = [case for case in ALL if case.input.get("args") == [None] or "stdin_raw" in case.input]
DIAGNOSES = [case for case in ALL if case.area == "diagnose"]

# Facts that a reason must convey, in our words.
WORDS = {
    "GATE BLOCKED": "is held by its gates|the tests of",
    "ITERATION CORRIDOR": "the tests of|constitution",
    "PHASE COMPLETION BLOCKED": "held by",
    "test_iteration": "tests",
    "constitutional_validation": "constitution",
    "artifact_presence": "artifacts",
    "agent_delegation": "delegation",
    "2/5": "run 2 of 5",
    "GATE-03": "finish 03-architecture",
    "in_progress": "in progress",
}
#: A diagnosis is about a gate that holds; this asks to go through it.
ADVANCE = {"tool_name": "Task", "tool_input": {"subagent_type": "sdlc-orchestrator", "prompt": "advance"}}
EVERY_PHASE = {"active_workflow": {"phases": list(shipped_settings().phases)}}


def split(found: list[Case]) -> tuple[list[Case], list[Case]]:
    return [case for case in found if case.id not in DIFFERENCES], [case for case in found if case.id in DIFFERENCES]


AGREED, DIFFERENT = split(CALLS)
DETECTED, DETECTED_OTHERWISE = split(DETECTIONS)
DIAGNOSED, DIAGNOSED_OTHERWISE = split(DIAGNOSES)


def test_every_case_is_looked_at() -> None:
    in_sessions = {"test_watcher", "menu_tracker", "constitution_validator", "delegation_gate"}
    limits = {"budget", "supervised", "timeout"}
    here = {case.id for case in (*CALLS, *DETECTIONS, *NO_EVENTS, *DIAGNOSES)}

    assert {case.area for case in ALL if case.id not in here} == in_sessions | limits


def test_every_difference_names_a_case_and_a_reason() -> None:
    assert DIFFERENCES.keys() <= {case.id for case in ALL}
    assert all(reason.strip() for reason in DIFFERENCES.values())


@pytest.mark.parametrize("case", AGREED, ids=lambda case: case.id)
def test_decides_as_recorded(case: Case) -> None:
    decided, reason = decision(case)

    assert decided == case.expect["decision"], reason
    if decided == "block":
        assert all(conveyed(fact, reason) for fact in case.expect.get("reason_mentions", ())), reason


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case.id)
def test_decides_otherwise_where_it_says_so(case: Case) -> None:
    decided, _ = decision(case)

    assert decided != case.expect["decision"]


@pytest.mark.parametrize("case", DETECTED, ids=lambda case: case.id)
def test_finds_the_phase_that_was_recorded(case: Case) -> None:
    assert found_phase(case) == recorded_phase(case)


@pytest.mark.parametrize("case", DETECTED_OTHERWISE, ids=lambda case: case.id)
def test_finds_another_phase_where_it_says_so(case: Case) -> None:
    assert found_phase(case) != recorded_phase(case)


@pytest.mark.parametrize("case", NO_EVENTS, ids=lambda case: case.id)
def test_what_is_no_event_is_answered_with_nothing(case: Case) -> None:
    sent = case.input.get("stdin_raw", "null")

    assert main(["claude-code"], sent.encode()) == ""


@pytest.mark.parametrize("case", DIAGNOSED, ids=lambda case: case.id)
def test_only_what_was_recorded_as_a_genuine_cause_holds(case: Case) -> None:
    assert is_held(case) is (case.expect["output"]["cause"] == "genuine")


@pytest.mark.parametrize("case", DIAGNOSED_OTHERWISE, ids=lambda case: case.id)
def test_another_cause_holds_where_it_says_so(case: Case) -> None:
    assert is_held(case) is not (case.expect["output"]["cause"] == "genuine")


def conveyed(fact: str, reason: str) -> bool:
    return re.search(WORDS.get(fact) or re.escape(fact), reason) is not None


def found_phase(case: Case) -> tuple[str | None, str | None]:
    """The phase, and the agent if its type was given."""
    delegation = call(case.input["args"][0])
    phase = target_phase(EVERY_PHASE, delegation)
    return (phase, agent_name(delegation["agent"]) or None) if phase else (None, None)


def recorded_phase(case: Case) -> tuple[str | None, str | None]:
    given = case.input["args"][0].get("tool_input", {}).get("subagent_type")
    output = case.expect["output"]
    return output["targetPhase"], output["agentName"] if given else None


def is_held(case: Case) -> bool:
    *_, state = case.input["args"]
    reason, _ = guard(GuardInput(completed(state, {}), call(ADVANCE), ROOT, lambda _: False, guarded_files()))
    return reason is not None
