from datetime import UTC, datetime
from typing import Any

import pytest

from detent.documents.state import apply_sizing, mirror_violations

NOW = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)
PHASES = (
    "01-requirements",
    "02-impact-analysis",
    "03-architecture",
    "04-design",
    "05-test-strategy",
    "06-implementation",
)
SHORTER = [key for key in PHASES if key not in ("03-architecture", "04-design")]


def document(phases: Any = PHASES, done: Any = 2, **status: str) -> dict[str, Any]:
    statuses = {key: "completed" if at < done else "pending" for at, key in enumerate(phases)} | status
    workflow = {
        "phases": list(phases),
        "current_phase": phases[max(0, done - 1)],
        "current_phase_index": done,
        "phase_status": statuses,
    }
    return {
        "active_workflow": workflow,
        "phases": {key: {"status": value} for key, value in statuses.items()},
    }


def test_light_work_loses_the_phases_in_all_three_places() -> None:
    sized = apply_sizing(document(), "light", {"file_count": 3, "risk_score": "low"}, NOW)

    workflow = sized["active_workflow"]
    assert workflow["phases"] == list(workflow["phase_status"]) == list(sized["phases"]) == SHORTER
    assert workflow["phases"][workflow["current_phase_index"]] == "05-test-strategy"
    assert mirror_violations(sized) == []
    assert workflow["sizing"]["effective_intensity"] == "light"
    assert (workflow["sizing"]["file_count"], workflow["sizing"]["risk_score"]) == (3, "low")
    assert "fallback_reason" not in workflow["sizing"]


def test_without_an_impact_analysis_the_index_follows_the_completed_phases() -> None:
    phases = ("01-requirements", "02-tracing", "04-design", "05-test-strategy", "06-implementation")

    sized = apply_sizing(document(phases, done=1), "light", {}, NOW)

    assert sized["active_workflow"]["current_phase_index"] == 1


@pytest.mark.parametrize("intensity", ["standard", "epic"])
def test_larger_work_is_only_recorded(intensity: str) -> None:
    doc = document()

    sized = apply_sizing(doc, intensity, {}, NOW)

    sizing = sized["active_workflow"].pop("sizing")
    assert sized == doc
    assert (sizing["intensity"], sizing["effective_intensity"]) == (intensity, "standard")
    assert sizing["epic_deferred"] == (intensity == "epic")


UNSOUND = {
    "a dropped phase has begun": document(done=3),
    "the next phase has begun": document(**{"05-test-strategy": "in_progress"}),
    "too few phases are left": document(PHASES[:4]),
    "a status belongs to no phase": document(stray="pending"),
    "nothing is left to do": document(("00-quick-scan", "01-requirements", "02-impact-analysis", "04-design"), done=3),
}


@pytest.mark.parametrize("case", UNSOUND)
def test_an_unsound_cut_leaves_the_workflow_whole_and_says_so(case: str) -> None:
    doc = UNSOUND[case]

    sized = apply_sizing(doc, "light", {}, NOW)

    sizing = sized["active_workflow"].pop("sizing")
    assert sized == doc
    assert (sizing["intensity"], sizing["effective_intensity"]) == ("light", "standard")
    assert sizing["fallback_reason"] == "invariant_check_failed"
