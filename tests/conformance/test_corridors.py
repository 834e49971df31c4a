"""IR-013: while a gate is failing the way is back to the work, not on. All through the installed hook command."""

from pathlib import Path

import pytest

from tests.support.hooked_project import FAILS, PASSES, Place

SETTINGS = """
[workflows.short]
phases = [
    { key = "06-implementation", gates = [
        { kind = "tests", max_iterations = 5 },
        { kind = "constitution", articles = ["I", "IX"] },
    ] },
    { key = "16-quality-loop", gates = [{ kind = "tests" }] },
]
"""
MOVES = (
    "advance to the end",
    "the gate is open, is it not",
    "go to the next phase",
    "Proceed.",
    "move to phase seven",
    "progress to review",
    "delegate the rest",
    "hand off the work",
    "the handoff is ready",
    "phase complete",
    "declare complete",
)


def make(root: Path) -> Place:
    place = Place(root, settings=SETTINGS)
    place.detent("start", "short", "Add search")
    return place


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The tests fail; what hooks say before a call changes nothing."""
    place = make(tmp_path_factory.mktemp("failing"))
    place.tests(FAILS)
    return place


@pytest.fixture(scope="module")
def not_compliant(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The tests pass, and the constitution was not looked at."""
    place = make(tmp_path_factory.mktemp("compliance"))
    place.tests(PASSES)
    return place


@pytest.fixture(scope="module")
def open_way(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Nothing has failed."""
    return make(tmp_path_factory.mktemp("open"))


@pytest.mark.req("AC-013a")
@pytest.mark.parametrize("prompt", MOVES)
def test_while_tests_fail_nothing_moves_on(failing: Place, open_way: Place, prompt: str) -> None:
    denied = failing.delegate("general-purpose", prompt).denied

    assert denied is not None
    assert denied.startswith("the tests of 06-implementation fail")
    assert "run 1 of 5" in denied
    assert "AssertionError" in denied
    assert open_way.delegate("general-purpose", prompt).denied is None


@pytest.mark.req("AC-013a")
def test_while_tests_fail_the_workflow_skill_is_held_too(failing: Place) -> None:
    assert failing.before("Skill", skill="detent", args="advance").denied is not None
    assert failing.before("Skill", skill="greet", args="advance").denied is None


@pytest.mark.req("AC-013a")
@pytest.mark.parametrize(
    "prompt", ["investigate why it fails", "look at the gateway", "advanced search", "mend the tests"]
)
def test_words_count_only_as_a_whole(failing: Place, prompt: str) -> None:
    assert failing.delegate("general-purpose", prompt).denied is None


@pytest.mark.req("AC-013b")
@pytest.mark.parametrize("prompt", MOVES)
def test_while_the_constitution_is_open_nothing_moves_on(not_compliant: Place, open_way: Place, prompt: str) -> None:
    denied = not_compliant.delegate("general-purpose", prompt).denied

    assert denied is not None
    assert denied.startswith("06-implementation does not comply with its constitution yet")
    assert "I, IX" in denied
    assert open_way.delegate("general-purpose", prompt).denied is None


@pytest.mark.req("AC-013b")
def test_compliance_ends_the_corridor(tmp_path: Path) -> None:
    place = make(tmp_path)
    place.tests(PASSES)
    held = place.delegate("general-purpose", "proceed").denied

    place.detent("gate", "report", "constitution", "--compliant")

    assert held is not None
    assert place.delegate("general-purpose", "proceed").denied is None


@pytest.mark.req("AC-013c")
@pytest.mark.parametrize("corridor", ["failing", "not_compliant"])
@pytest.mark.parametrize(
    ("tool", "inputs"),
    [
        ("Bash", {"command": "pytest -q", "description": "advance through the gate"}),
        ("Bash", {"command": "git commit -m 'proceed to the next phase'"}),
        ("Bash", {"command": "detent gate run tests -- pytest -q"}),
        ("Bash", {"command": "detent why"}),
        ("Read", {"file_path": "src/advance_gate.py"}),
        ("Write", {"file_path": "src/gate.py", "content": "# proceed to the next phase\n"}),
        ("Edit", {"file_path": "src/gate.py", "old_string": "proceed", "new_string": "advance"}),
        ("MultiEdit", {"file_path": "src/gate.py", "edits": []}),
        ("Grep", {"pattern": "advance"}),
        ("mcp__tracker__comment", {"text": "phase complete"}),
    ],
)
def test_the_work_itself_is_never_held(
    request: pytest.FixtureRequest, corridor: str, tool: str, inputs: dict[str, object]
) -> None:
    place: Place = request.getfixturevalue(corridor)

    assert place.before(tool, **inputs).text == ""


@pytest.mark.req("AC-013d")
@pytest.mark.parametrize("corridor", ["failing", "not_compliant"])
@pytest.mark.parametrize("word", ["discover", "constitution", "init", "setup", "configure", "status", "new project"])
def test_setting_things_up_is_never_held(request: pytest.FixtureRequest, corridor: str, word: str) -> None:
    place: Place = request.getfixturevalue(corridor)

    assert place.delegate("general-purpose", f"{word}, then proceed").denied is None
    assert place.delegate("general-purpose", "work, then proceed").denied is not None


@pytest.mark.req("AC-013e")
@pytest.mark.parametrize("corridor", ["failing", "not_compliant"])
@pytest.mark.parametrize(
    ("agent", "prompt"),
    [
        ("software-developer", "Mend the tests, then proceed through the gate"),
        ("general-purpose", "Phase ID: 06-implementation. Advance it"),
    ],
)
def test_delegating_the_phase_is_the_work(
    request: pytest.FixtureRequest, corridor: str, agent: str, prompt: str
) -> None:
    place: Place = request.getfixturevalue(corridor)

    assert place.delegate(agent, prompt).denied is None


@pytest.mark.req("AC-013f")
def test_a_stale_top_level_phase_does_not_lift_the_corridor(tmp_path: Path) -> None:
    place = make(tmp_path)
    place.tests(FAILS)
    place.disk.edit(place.disk.state() | {"current_phase": "16-quality-loop"})

    denied = place.delegate("general-purpose", "proceed").denied

    assert denied is not None
    assert "the tests of 06-implementation fail" in denied


@pytest.mark.req("AC-013f")
def test_what_failed_in_an_earlier_phase_is_no_corridor(tmp_path: Path) -> None:
    place = make(tmp_path)
    place.tests(FAILS)
    place.detent("release", "--reason", "the test is wrong, agreed with the team")
    place.detent("finish", "-m", "done")
    place.detent("begin")
    record = place.disk.state()["phases"]["06-implementation"]["iteration_requirements"]["test_iteration"]

    assert record["last_test_result"] == "failed"
    assert place.disk.workflow()["current_phase"] == "16-quality-loop"
    assert place.delegate("general-purpose", "proceed").denied is None

    place.tests(FAILS)

    denied = place.delegate("general-purpose", "proceed").denied
    assert denied is not None
    assert "the tests of 16-quality-loop fail" in denied


@pytest.mark.req("TS-004")
def test_an_implementation_whose_tests_fail(tmp_path: Path) -> None:
    place = make(tmp_path)
    place.tests(FAILS)
    place.tests(FAILS.replace("test_it(", "test_that("))
    run = place.disk.state()["phases"]["06-implementation"]["iteration_requirements"]["test_iteration"]

    assert (run["last_test_result"], run["current_iteration"], run["max_iterations"]) == ("failed", 2, 5)
    assert place.asks("advance").denied is not None
    assert place.delegate("general-purpose", "proceed").denied is not None
    place.refused("finish", "-m", "done")
    for tool, inputs in (
        ("Bash", {"command": "python -m unittest"}),
        ("Write", {"file_path": str(place.root / "search.py"), "content": "x = 1\n"}),
        ("Edit", {"file_path": str(place.root / "search.py"), "old_string": "1", "new_string": "2"}),
        ("Read", {"file_path": str(place.root / "search.py")}),
    ):
        assert place.before(tool, **inputs).text == ""

    told = place.tests(PASSES).told

    run = place.disk.state()["phases"]["06-implementation"]["iteration_requirements"]["test_iteration"]
    assert "tests of 06-implementation is PASS" in told
    assert (run["completed"], run["current_iteration"]) == (True, 3)
    place.detent("gate", "report", "constitution", "--compliant")
    assert place.asks("advance").denied is None
    assert place.delegate("general-purpose", "proceed").denied is None
    place.detent("finish", "-m", "searching works")
    assert place.status("06-implementation") == "completed"


@pytest.mark.req("TS-005")
def test_requirements_that_do_not_comply(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.detent("start", "feature", "Add search")
    place.run("gate", "report", "constitution", "--not-compliant", "-m", "article VII asks for traceability")
    record = place.disk.state()["phases"]["01-requirements"]["constitutional_validation"]

    assert (record["status"], record["iterations_used"], record["max_iterations"]) == ("in_progress", 1, 5)
    for agent in ("general-purpose", "sdlc-orchestrator"):
        denied = place.delegate(agent, "hand off, then advance").denied
        assert denied is not None
        assert denied.startswith("01-requirements does not comply with its constitution yet")
        assert "I, IV, VII, IX, XII" in denied
    place.refused("finish", "-m", "done")
    for tool, inputs in (
        ("Bash", {"command": "grep -rn Article docs"}),
        ("Write", {"file_path": str(place.root / "docs/requirements.md"), "content": "# What search must do\n"}),
        ("Read", {"file_path": str(place.root / "docs/constitution.md")}),
    ):
        assert place.before(tool, **inputs).text == ""

    place.detent("gate", "report", "constitution", "--compliant")

    # The corridor is over; what the other gates of the phase ask for still holds it.
    assert place.delegate("general-purpose", "hand off, then advance").denied is None
    still = place.asks("advance").denied
    assert still is not None
    assert "constitution" not in still
    assert "elicitation" in still
    for _ in range(2):
        place.run("gate", "answer")
    place.detent("gate", "answer", "--choice", "continue")
    place.delegated("requirements-analyst", "Summary: wrote the requirements")
    place.write(f"docs/requirements/{place.disk.workflow()['artifact_folder']}/requirements-spec.md", "# Search\n")
    assert place.asks("advance").denied is None
    place.detent("finish", "-m", "requirements agreed")
    assert place.status("01-requirements") == "completed"
