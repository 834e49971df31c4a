from typing import Any

import pytest

from detent.documents.state import check_write, mirror_violations

PHASES = ["01-requirements", "02-impact-analysis", "03-architecture"]


def document(version: Any = 5, index: Any = 2, statuses: tuple[str, ...] = (), **workflow: Any) -> dict[str, Any]:
    status = dict(zip(PHASES, statuses or ("completed", "completed", "in_progress"), strict=True))
    return {
        "state_version": version,
        "current_phase": PHASES[2],
        "active_workflow": {
            "phases": PHASES,
            "current_phase": PHASES[2],
            "current_phase_index": index,
            "phase_status": status,
            **workflow,
        },
        "phases": {key: {"status": value} for key, value in status.items()},
    }


def rules(incoming: object, disk: object) -> list[str]:
    return [violation.rule for violation in check_write(incoming, disk)]


@pytest.mark.parametrize("incoming", [{}, [], None, "text", {"state_version": None}])
def test_what_proves_no_version_does_not_replace_a_versioned_document(incoming: object) -> None:
    [violation] = check_write(incoming, {"state_version": 5})

    assert (violation.rule, violation.path, violation.blocks) == ("V7", "state_version", True)
    assert "no state_version" in violation.message
    assert "read it again" in violation.message


@pytest.mark.parametrize(
    ("incoming", "disk", "blocked"),
    [
        ("9", 5, False),
        ("5", 5, False),
        ("4", 5, True),
        (4, "5", True),
        (6, "5", False),
        ("nine", 5, True),
        ("", 5, True),
    ],
)
def test_a_version_that_is_text_counts_as_its_number(incoming: object, disk: object, *, blocked: bool) -> None:
    violations = check_write({"state_version": incoming}, {"state_version": disk})

    assert [violation.rule for violation in violations] == (["V7"] if blocked else [])
    assert all(str(incoming) in violation.message for violation in violations)


@pytest.mark.parametrize("disk", [{}, [1], None, "text", {"state_version": None}])
def test_an_unversioned_document_can_be_replaced(disk: object) -> None:
    assert check_write({"state_version": 1}, disk) == []


def test_all_violations_are_reported_with_their_places() -> None:
    incoming = document(version=3, index=0, statuses=("pending", "completed", "in_progress"))
    incoming["phases"]["02-impact-analysis"]["constitutional_validation"] = {"completed": True}

    violations = check_write(incoming, document())

    assert [(each.rule, each.path) for each in violations] == [
        ("V7", "state_version"),
        ("V8", "active_workflow.current_phase_index"),
        ("V8", "active_workflow.phase_status.01-requirements"),
        ("V8", "phases.01-requirements.status"),
        ("V9-C", "active_workflow.current_phase_index"),
        ("V1", "phases.02-impact-analysis.constitutional_validation.iterations_used"),
    ]
    assert [each.blocks for each in violations] == [True] * 4 + [False] * 2


def test_a_redo_reopens_the_reviewed_phase_and_no_other() -> None:
    reopened = ("in_progress", "completed", "in_progress")
    review = {"status": "redo_pending", "redo_count": 1}

    assert rules(document(statuses=reopened, supervised_review={**review, "phase": PHASES[0]}), document()) == []
    assert "V8" in rules(document(statuses=reopened, supervised_review={**review, "phase": PHASES[1]}), document())
    assert "V8" in rules(document(statuses=reopened, supervised_review=review), document())


def test_a_redo_does_not_take_a_phase_back_to_pending() -> None:
    review = {"status": "redo_pending", "redo_count": 1, "phase": PHASES[0]}
    incoming = document(statuses=("pending", "completed", "in_progress"), supervised_review=review)

    assert rules(incoming, document()) == ["V8", "V8"]


def test_the_index_may_be_one_ahead_between_two_phases() -> None:
    assert mirror_violations(document(index=3)) == []
    assert [each.rule for each in mirror_violations(document(index=4))] == ["V9-C"]


def test_two_current_phases_are_a_disagreement() -> None:
    [violation] = mirror_violations(document() | {"current_phase": PHASES[0]})

    assert violation.rule == "V9-B"
    assert PHASES[0] in violation.message
    assert PHASES[2] in violation.message
