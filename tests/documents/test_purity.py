"""No function of the state document raises on a badly edited document, and none changes its argument."""

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from detent.documents import state
from tests.support.arbitrary import anything, documents

NOW = datetime(2026, 2, 9, 10, 1, tzinfo=UTC)

# The documents are wide, so the first one takes long to draw on a busy machine.
patient = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add_escalation": lambda doc: state.with_escalation(doc, {"hook": "h", "timestamp": "2026-02-09"}),
    "apply_sizing": lambda doc: state.apply_sizing(doc, "light", {"file_count": 2}, NOW),
    "clear_transient": state.clear_transient,
    "collect_phase_snapshots": state.collect_phase_snapshots,
    "mirror_violations": lambda doc: [each.message for each in state.mirror_violations(doc)],
    "prune_completed_phases": lambda doc: state.prune_completed_phases(doc, NOW),
    "prune_history": state.prune_history,
    "prune_skill_usage_log": state.prune_skill_usage_log,
    "prune_workflow_history": state.prune_workflow_history,
    "repair_completion": lambda doc: state.repair_completion(doc, NOW),
    "reset_phases": lambda doc: state.reset_phases(doc, ["01-requirements"]),
    "stamped": lambda doc: state.stamped(doc, doc),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@patient
@given(doc=documents)
def test_any_document_is_answered_in_json_and_left_alone(name: str, doc: dict[str, Any]) -> None:
    before = copy.deepcopy(doc)

    answer = FUNCTIONS[name](doc)

    assert json.loads(json.dumps(answer, allow_nan=False)) is not None
    assert doc == before


@patient
@given(incoming=documents | anything, disk=documents | anything)
def test_any_two_values_can_be_compared(incoming: Any, disk: Any) -> None:
    before = copy.deepcopy((incoming, disk))

    violations = state.check_write(incoming, disk)

    assert all(each.path and each.message for each in violations)
    assert (incoming, disk) == before


@patient
@given(doc=documents)
def test_writing_back_what_was_read_blocks_nothing(doc: dict[str, Any]) -> None:
    assert not [each for each in state.check_write(doc, doc) if each.blocks]


@patient
@given(doc=documents)
def test_a_stamped_document_is_never_stale(doc: dict[str, Any]) -> None:
    assert "V7" not in {each.rule for each in state.check_write(state.stamped(doc, doc), doc)}
