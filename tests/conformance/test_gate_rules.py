"""IR-004: a phase is not left while one of its gates is closed. Everything goes through the installed hook command."""

import json
from pathlib import Path

import pytest

from tests.support.hooked_project import FAILS, PASSES, Place

ADVANCE = "Everything is done, advance to the next phase"


def place_with(root: Path, gates: str) -> Place:
    """A session in its first phase, which has just these gates; the second has none."""
    settings = f'[workflows.short]\nphases = [{{ key = "06-implementation", gates = [{gates}] }}, "00-quick-scan"]\n'
    place = Place(root, settings=settings)
    place.detent("start", "short", "Add search")
    return place


@pytest.mark.req("AC-004a")
def test_failing_tests_hold_the_phase_until_they_pass(tmp_path: Path) -> None:
    place = place_with(tmp_path, '{ kind = "tests" }')
    before = place.asks(ADVANCE).denied
    place.tests(FAILS)

    denied = place.asks(ADVANCE).denied

    assert before is not None
    assert "no run yet" in before
    assert (
        place.disk.state()["phases"]["06-implementation"]["iteration_requirements"]["test_iteration"][
            "last_test_result"
        ]
        == "failed"
    )
    assert denied is not None
    assert "06-implementation" in denied
    assert "AssertionError" in denied
    assert "tests is FAIL" in place.refused("finish", "-m", "done")
    assert place.status("06-implementation") == "in_progress"

    place.tests(PASSES)

    assert place.asks(ADVANCE).denied is None
    place.detent("finish", "-m", "done")
    assert place.status("06-implementation") == "completed"


@pytest.mark.req("AC-004b")
def test_a_constitution_not_complied_with_holds_the_phase(tmp_path: Path) -> None:
    place = place_with(tmp_path, '{ kind = "constitution", articles = ["I", "IX"], max_iterations = 5 }')
    untouched = place.asks(ADVANCE).denied
    place.run("gate", "report", "constitution", "--not-compliant", "-m", "article IX is not met")

    denied = place.asks(ADVANCE).denied

    assert untouched is not None
    assert "constitution" in untouched
    assert denied is not None
    assert "constitution" in denied
    assert place.disk.state()["phases"]["06-implementation"]["constitutional_validation"]["completed"] is False
    assert "constitution is FAIL" in place.refused("finish", "-m", "done")

    place.detent("gate", "report", "constitution", "--compliant")

    assert place.asks(ADVANCE).denied is None
    place.detent("finish", "-m", "done")


@pytest.mark.req("AC-004b")
def test_an_escalated_constitution_is_opened_by_a_person_only(tmp_path: Path) -> None:
    place = place_with(tmp_path, '{ kind = "constitution", articles = ["I"], max_iterations = 1 }')
    place.run("gate", "report", "constitution", "--not-compliant")
    record = place.disk.state()["phases"]["06-implementation"]["constitutional_validation"]

    assert (record["completed"], record["status"]) == (False, "escalated")
    assert "a person must decide" in place.refused("finish", "-m", "done")
    assert place.before("Bash", command='detent approve --gate constitution -m "it is fine"').denied is not None

    place.detent("approve", "--gate", "constitution", "-m", "article I does not apply to prototypes")

    assert place.asks(ADVANCE).denied is None
    place.detent("finish", "-m", "done")


@pytest.mark.req("AC-004c")
def test_without_a_single_answer_of_a_person_the_phase_is_held(tmp_path: Path) -> None:
    place = place_with(tmp_path, '{ kind = "elicitation", interactions = 1 }')

    denied = place.asks(ADVANCE).denied

    assert denied is not None
    assert "elicitation" in denied
    assert "elicitation is PENDING" in place.refused("finish", "-m", "done")

    assert place.run("gate", "answer").returncode == 3  # answered, but nothing chosen yet
    assert place.asks(ADVANCE).denied is not None

    place.detent("gate", "answer", "--choice", "continue")

    asked = place.disk.state()["phases"]["06-implementation"]["iteration_requirements"]["interactive_elicitation"]
    assert (asked["completed"], asked["menu_interactions"]) == (True, 2)
    assert place.asks(ADVANCE).denied is None
    place.detent("finish", "-m", "done")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A phase that nothing has been done for yet; looking at what a hook says changes nothing."""
    return place_with(tmp_path_factory.mktemp("held"), '{ kind = "tests" }, { kind = "delegation" }')


@pytest.mark.req("AC-004d")
@pytest.mark.parametrize(
    ("agent", "prompt"),
    [
        ("software-developer", "Pass the quality gate, then proceed to the next phase"),
        ("05-software-developer", "advance"),
        ("detent:software-developer", "progress to the gate"),
        ("sdlc-orchestrator", "Phase ID: 06-implementation. Implement it, then advance through the gate"),
        ("general-purpose", "Work on 06-implementation until the gate is green, then proceed"),
    ],
)
def test_delegating_the_phase_is_not_taken_for_leaving_it(held: Place, agent: str, prompt: str) -> None:
    assert held.asks("advance through the gate").denied is not None
    assert held.delegate(agent, prompt).denied is None


@pytest.mark.req("AC-004e")
@pytest.mark.parametrize("word", ["discover", "constitution", "init", "setup", "configure", "status"])
def test_setting_things_up_is_never_held(held: Place, word: str) -> None:
    asked = f"{word} the project, then advance"

    assert held.asks(asked).denied is None
    assert held.before("Skill", skill="detent", args=f"{word} gate").denied is None
    assert held.asks(asked.replace(word, "finish")).denied is not None
    assert held.before("Skill", skill="detent", args="advance gate").denied is not None
    assert held.asks(f"advance with the {word}ial plan").denied is not None  # only as a word of its own


@pytest.mark.req("AC-004f")
def test_gates_are_those_of_the_workflows_own_current_phase(tmp_path: Path) -> None:
    place = place_with(tmp_path, '{ kind = "tests" }')
    stale = place.disk.state() | {"current_phase": "00-quick-scan"}
    place.disk.edit(stale)

    denied = place.asks(ADVANCE).denied

    assert denied is not None
    assert "phase 06-implementation is held" in denied


@pytest.mark.req("AC-004f")
def test_without_a_workflow_phase_the_top_level_one_counts(tmp_path: Path) -> None:
    place = place_with(tmp_path, '{ kind = "tests" }')
    document = place.disk.state()
    document["active_workflow"]["current_phase"] = None
    place.disk.edit(document)

    denied = place.asks(ADVANCE).denied

    assert denied is not None
    assert "phase 06-implementation is held" in denied


@pytest.mark.req("AC-004g")
@pytest.mark.parametrize(
    ("rule", "gate", "path", "changes"),
    [
        (
            "V1",
            '{ kind = "constitution", articles = ["I"] }',
            ("constitutional_validation",),
            {"completed": True, "status": "compliant", "iterations_used": 0},
        ),
        (
            "V2",
            '{ kind = "elicitation" }',
            ("iteration_requirements", "interactive_elicitation"),
            {"completed": True, "final_selection": "save", "menu_interactions": 0},
        ),
        (
            "V3",
            '{ kind = "tests" }',
            ("iteration_requirements", "test_iteration"),
            {"completed": True, "last_test_result": "passed", "current_iteration": 0},
        ),
    ],
)
def test_a_document_that_claims_what_cannot_be_is_caught(
    tmp_path: Path, rule: str, gate: str, path: tuple[str, ...], changes: dict[str, object]
) -> None:
    place = place_with(tmp_path, gate)
    document = place.disk.state()
    record = document["phases"]["06-implementation"]
    for key in path:
        record = record[key]
    record.update(changes)
    file, text = str(place.disk.state_path), json.dumps(document)

    warned = place.before("Write", file_path=file, content=text)
    place.disk.edit(document)
    told = place.after("Write", {"type": "update", "filePath": file}, file_path=file, content=text).told

    assert rule in warned.told
    assert "although completed is set" in warned.told
    assert "the edit of state.json was not adopted and is kept as state.json.rejected-1" in told
    assert (place.root / ".workflow" / "state.json.rejected-1").exists()
    assert place.asks(ADVANCE).denied is not None
    place.refused("finish", "-m", "done")


@pytest.mark.req("AC-004g")
def test_a_possible_claim_that_never_happened_is_caught_too(tmp_path: Path) -> None:
    place = place_with(tmp_path, '{ kind = "tests" }')
    document = place.disk.state()
    document["phases"]["06-implementation"]["iteration_requirements"]["test_iteration"].update(
        completed=True, last_test_result="passed", current_iteration=1
    )
    place.disk.edit(document)

    place.after("Write", {}, file_path=str(place.disk.state_path), content=json.dumps(document))

    assert place.asks(ADVANCE).denied is not None
    assert "tests is PENDING" in place.refused("finish", "-m", "done")
