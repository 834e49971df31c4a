"""What a document of any writer says about where the work stands."""

import pytest

from detent.clients.registry import dialect
from detent.core.guard import state_reader
from detent.core.guard.call_purpose import target_phase

LEGACY, PRESENT = "13-test-deploy", "12-test-deploy"


def document(record, *, key=PRESENT, status="in_progress"):
    flow = {"current_phase": key, "phases": [key], "phase_status": {key: status}}
    return {"active_workflow": flow, "phases": {key: record}}


def closed(record, **said):
    return state_reader.closed_gates(document(record, **said), PRESENT, lambda _: False)


def test_a_gate_that_nothing_is_known_about_is_closed():
    assert closed({"gates": [{"name": "seal", "kind": "of another version"}]}) == ["seal: nothing is known about it"]


@pytest.mark.parametrize("gate", ["text", None, {}, {"kind": "artifacts"}, {"kind": "artifacts", "paths": "x"}])
def test_a_gate_that_cannot_be_read_is_closed(gate):
    assert len(closed({"gates": [gate]})) == 1


@pytest.mark.parametrize("kind", ["tests", "constitution", "elicitation", "delegation", "command", "approval"])
def test_a_gate_that_is_only_listed_is_closed(kind):
    assert len(closed({"gates": [{"name": kind, "kind": kind}]})) == 1


def test_without_a_list_only_what_is_recorded_counts():
    assert closed({}) == []
    assert closed({"constitutional_validation": {"status": "pending"}}) == ["constitution: pending"]


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ("save", []),
        ("continue", []),
        ("exit", ["elicitation: 2 answers, then exit"]),
        (None, ["elicitation: 2 answers, nothing chosen yet"]),
    ],
)
def test_questions_that_were_left_are_not_answered(chosen, reason):
    asked = {"completed": True, "menu_interactions": 2, "final_selection": chosen}

    assert closed({"iteration_requirements": {"interactive_elicitation": asked}}) == reason


def test_a_record_under_a_legacy_key_is_the_phases():
    failing = {"iteration_requirements": {"test_iteration": {"last_test_result": "failed", "current_iteration": 1}}}

    assert state_reader.current_phase(document(failing, key=LEGACY)) == PRESENT
    assert state_reader.status(document(failing, key=LEGACY), PRESENT) == "in_progress"
    assert closed(failing, key=LEGACY) == ["tests: failed, run 1"]
    assert state_reader.corridor(document(failing, key=LEGACY), PRESENT) == "tests"


@pytest.mark.parametrize(
    "doc", [None, False, [], "text", {}, {"active_workflow": []}, {"active_workflow": {"phases": {}}}]
)
def test_what_is_no_document_says_nothing(doc):
    assert state_reader.current_phase(doc) == ""
    assert state_reader.phases(doc) == []
    assert state_reader.closed_gates(doc, PRESENT, lambda _: False) == []
    assert state_reader.corridor(doc, PRESENT) == ""


@pytest.mark.parametrize("agent", ["developer", "reviewer", "architect", "maintainer"])
def test_an_everyday_name_is_only_an_agent_of_a_workflow_that_has_its_phase(agent):
    call = dialect("claude-code").call(
        {"tool_name": "Task", "tool_input": {"subagent_type": agent, "prompt": f"ask the {agent}"}}
    )

    assert target_phase(document({}), call) == ""
    assert target_phase({"active_workflow": {"phases": ["development", "review", "planning", "hygiene"]}}, call) != ""
