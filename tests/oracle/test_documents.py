"""The state document functions against the recorded decisions."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from detent.core.workflow.phase_key import normalize_phase_key
from detent.core.workflow.roles import normalize_agent_name
from detent.documents.state import (
    add_escalation,
    apply_sizing,
    check_write,
    collect_phase_snapshots,
    pending_escalations,
    prune_completed_phases,
    prune_history,
    prune_skill_usage_log,
    prune_workflow_history,
    repair_completion,
    reset_phases,
    stamped,
    with_escalation,
)
from tests.support.oracle.cases import NOW, Case, cases
from tests.support.oracle.differences import DIFFERENCES, ELSEWHERE

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "applySizingDecision": lambda doc, intensity, metrics: apply_sizing(doc, intensity, metrics, NOW),
    "collectPhaseSnapshots": collect_phase_snapshots,
    "normalizeAgentName": normalize_agent_name,
    "normalizePhaseKey": normalize_phase_key,
    "pruneCompletedPhases": lambda doc, *rest: prune_completed_phases(doc, NOW, *rest),
    "pruneHistory": prune_history,
    "pruneSkillUsageLog": prune_skill_usage_log,
    "pruneWorkflowHistory": prune_workflow_history,
    "resetPhasesForWorkflow": reset_phases,
}

ALL = cases()
HERE = [case for case in ALL if case.id not in ELSEWHERE]
AGREED = [case for case in HERE if case.id not in DIFFERENCES]
DIFFERENT = [case for case in HERE if case.id in DIFFERENCES]


@pytest.mark.parametrize("case", AGREED, ids=lambda case: case.id)
def test_decides_as_recorded(case: Case) -> None:
    compare(case)


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case.id)
def test_differs_where_it_says_so(case: Case) -> None:
    with pytest.raises((AssertionError, TypeError)):
        compare(case)


def test_every_exception_names_a_case_and_a_reason() -> None:
    assert {*DIFFERENCES, *ELSEWHERE} <= {case.id for case in ALL}
    assert not DIFFERENCES.keys() & ELSEWHERE.keys()
    assert all(reason.strip() for reason in DIFFERENCES.values())
    assert all(re.match(r"tests/\w+.*: \w", where) for where in ELSEWHERE.values())


def compare(case: Case) -> None:
    untouched = copy.deepcopy(case.state)
    COMPARE[case.area](case)
    assert case.state == untouched


def compare_function(case: Case) -> None:
    function, [arguments] = FUNCTIONS[case.input["fn"]], case.calls()
    if case.expect.get("throws") == "TypeError":
        with pytest.raises(TypeError):
            function(*arguments)
        return
    output = function(*arguments)
    assert output == case.expect["output"]
    if "output_bytes" in case.expect:
        assert len(json.dumps(output, separators=(",", ":"))) == case.expect["output_bytes"]


def compare_rules(case: Case) -> None:
    violations = check_write(case.incoming(), case.disk())
    blocking = [each for each in violations if each.blocks]
    assert bool(blocking) == (case.expect["decision"] == "block")
    if blocking:
        assert {each.rule for each in blocking} == {case.area.upper()}
        mentions = case.expect["reason_mentions"]
        assert any(all(mentioned(word, each.message) for word in mentions) for each in blocking)
    else:
        assert [each.rule for each in violations] == case.expect.get("warnings", [])


def mentioned(word: str, message: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message) is not None


def compare_escalation(case: Case) -> None:
    if case.input["fn"] == "readPendingEscalations":
        assert pending_escalations(case.state) == case.expect["output"]
    elif case.input["fn"] == "writePendingEscalation":
        [[entry]] = case.calls()
        assert stamped(with_escalation(case.state, entry), case.state) == case.expect["disk_after"]
    else:
        before = doc = case.state
        for _, entry in case.calls():
            before, doc = doc, with_escalation(doc, entry)
        assert (doc is not before) == case.expect["output"]
        assert doc == case.expect["state_after"]
        assert add_escalation(pending_escalations(before), entry) == doc["pending_escalations"]


def compare_completion(case: Case) -> None:
    after, repaired = repair_completion(case.state, NOW)
    assert repaired == ("SELF-HEAL" in case.expect.get("warnings", []))
    # The recorded archive file has no counterpart here: finished sessions go to the history of the store.
    assert dict(changes(case.state, after)) == case.expect.get("state_changes", {})


def changes(before: dict[str, Any], after: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key in {**before, **after}:
        if key not in after:
            yield path + key, "<deleted>"
        elif isinstance(before.get(key), dict) and isinstance(after[key], dict):
            yield from changes(before[key], after[key], f"{path}{key}.")
        elif key not in before or before[key] != after[key]:
            yield path + key, after[key]


def compare_write(case: Case) -> None:
    [[doc]] = case.calls()
    given = copy.deepcopy(doc)
    assert stamped(doc, case.disk()) == case.expect["disk_after"]
    assert doc == given


COMPARE: dict[str, Callable[[Case], None]] = {
    "completion": compare_completion,
    "escalation": compare_escalation,
    "normalize": compare_function,
    "prune": compare_function,
    "sizing": compare_function,
    "snapshots": compare_function,
    "v1v2v3": compare_rules,
    "v7": compare_rules,
    "v8": compare_rules,
    "v9": compare_rules,
    "write_state": compare_write,
}
