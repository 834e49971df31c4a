"""Budgets, supervision and time limits against the recorded decisions."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detent.core.session.budget import TIERS, Usual, budget_status, usual
from detent.core.session.events import Options
from detent.core.session.obstacle import overdue
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.documents.state.reading import supervised
from detent.documents.state.stamp import parse_stamp
from tests.support.oracle.cases import NOW, Case, cases
from tests.support.oracle.differences_guard import DIFFERENCES
from tests.support.oracle.phase_session import document, session
from tests.support.values import opened, session_at

LIMITS = [case for case in cases("cases_guard.jsonl") if case.area in ("budget", "supervised", "timeout")]
AGREED = [case for case in LIMITS if case.id not in DIFFERENCES]
DIFFERENT = [case for case in LIMITS if case.id in DIFFERENCES]


@pytest.mark.parametrize("case", AGREED, ids=lambda case: case.id)
def test_decides_as_recorded(case: Case, tmp_path: Path) -> None:
    COMPARE[case.input["fn"]](case, tmp_path)


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case.id)
def test_decides_otherwise_where_it_says_so(case: Case, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        COMPARE[case.input["fn"]](case, tmp_path)


def test_what_a_person_said_about_a_phase_is_in_the_history(tmp_path: Path) -> None:
    assert any("redo" in entry["action"] and "smaller" in entry["action"] for entry in redone(tmp_path)["history"])


def compare_status(case: Case, _: Path) -> None:
    [[used, limit]] = case.calls()
    assert budget_status(used, limit) == case.expect["output"]


def compare_tier(case: Case, _: Path) -> None:
    """Rounds of debate and fan-out are the agents' affair; Detent limits time, tokens and cost."""
    [[_, tier]] = case.calls()
    wanted = case.expect["output"]
    assert (TIERS[tier].minutes, TIERS[tier].phase_minutes) == (
        wanted["max_total_minutes"],
        wanted["max_phase_minutes"],
    )


def compare_average(case: Case, _: Path) -> None:
    [[entries, *_others]] = case.calls()
    found = usual([entry["metrics"]["total_duration_minutes"] for entry in entries])
    assert (found and {"avg_minutes": found.minutes, "count": found.count}) == case.expect["output"]


def compare_regression(case: Case, _: Path) -> None:
    [[minutes, baseline, _]] = case.calls()
    before = Usual(minutes=baseline["avg_minutes"], count=baseline["count"])
    wanted = case.expect["output"]
    assert (before.percent_over(minutes), before.is_exceeded(minutes)) == (wanted["percent_over"], wanted["regressed"])


def compare_mode(case: Case, _: Path) -> None:
    found, wanted = supervised(case.state), case.expect["output"]
    assert (found is not None) is wanted["enabled"]
    if found is not None:
        assert (list(found.phases) or "all") == wanted["review_phases"]


def compare_review(case: Case, _: Path) -> None:
    [[config, phase]] = case.calls()
    options = Options(supervised=supervised({"supervised_mode": config}))
    assert msgspec.structs.replace(opened(), options=options).is_supervised(phase) is case.expect["output"]


def compare_action(case: Case, root: Path) -> None:
    flow = redone(root)["active_workflow"]
    assert flow.get("review_history") == case.expect["state_after"]["active_workflow"]["review_history"]


def redone(root: Path) -> dict[str, Any]:
    """The document after a person wanted a phase done again."""
    with session(root, "a", settings="supervised = {}") as (_, handle):
        handle.finish("done")
        handle.review("redo", note="smaller")
    return document(root)


def compare_timeout(case: Case, _: Path) -> None:
    [[doc, requirements]] = case.calls()
    phase = doc["current_phase"]
    limit = requirements["phase_requirements"][phase].get("timeout_minutes")
    graph = Workflow(name="one", phases=(Phase(key=phase, title=phase, agent="", timeout_minutes=limit),))
    live = session_at({phase: Status.IN_PROGRESS}, graph=graph)
    begun = parse_stamp(doc["phases"][phase]["started_at"])
    state = msgspec.structs.replace(live.phases[phase], begun=begun)
    found = overdue(
        msgspec.structs.replace(live, phases=live.phases.replaced(phase, state)), NOW + timedelta(seconds=1)
    )

    wanted = case.expect["output"]
    assert bool(found) is wanted["exceeded"]
    if found:
        assert (found[0].phase, found[0].minutes, found[0].limit) == (phase, wanted["elapsed"], wanted["limit"])


COMPARE: dict[str, Callable[[Case, Path], None]] = {
    "computeBudgetStatus": compare_status,
    "getPerformanceBudget": compare_tier,
    "computeRollingAverage": compare_average,
    "detectRegression": compare_regression,
    "readSupervisedModeConfig": compare_mode,
    "shouldReviewPhase": compare_review,
    "recordReviewAction": compare_action,
    "checkPhaseTimeout": compare_timeout,
}
