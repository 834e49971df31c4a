"""Seed 003: the steps of a task are run, by the command that people and agents type."""

import json
from pathlib import Path
from typing import Any

import pytest

from detent.core.task.document import new_document
from tests.support.hooked_project import Place

SEED = json.loads((Path(__file__).parent / "seed_flow.json").read_text())
#: Stands in for the programs of the seed: says what it is called with.
STUB = '#!/bin/sh\necho "$(basename "$0") was told: $*"\n'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path, agent=False)
    place.detent("start", "plan-implement-review", "Try the steps")
    return place


def step(name: str, command: str, **more: str) -> dict[str, str]:
    return {"step": name, "action": name, "command": f"bash({command})", **more}


def planned(place: Place, *steps: dict[str, str], **context: Any) -> None:
    document = new_document("IMPL-1", "Try it", **context)
    document["flow_control"]["pre_analysis"] = list(steps)
    path = place.write("task.json", json.dumps(document))
    place.detent("task", "add", "--file", str(path))


def status(place: Place, task: str = "IMPL-1") -> str:
    return str(json.loads(place.detent("task", "show", task, "--json"))["status"])


@pytest.mark.req("003-run-1")
def test_outputs_flow_from_step_to_step_and_into_the_text(place: Place) -> None:
    planned(
        place,
        step("first", "printf '%s' [focus_paths]", output_to="looked"),
        step("second", 'echo "saw: [looked]" > seen.txt; cat seen.txt', output_to="seen"),
        focus_paths=["src"],
    )

    ran = json.loads(place.detent("flow", "run", "IMPL-1", "--json"))

    assert (place.root / "seen.txt").read_text() == "saw: src\n"
    assert ran["context"]["flow"]["outputs"] == {"looked": "src", "seen": "saw: src"}
    assert status(place) == "active"


@pytest.mark.req("003-run-2")
@pytest.mark.parametrize(
    ("strategy", "runs", "goes_on", "after"),
    [
        ("skip_optional", 1, True, "active"),
        ("fail", 1, False, "failed"),
        ("retry_once", 2, False, "failed"),
        ("manual_intervention", 1, False, "blocked"),
    ],
)
def test_a_step_that_fails_is_handled_as_it_says(
    place: Place, strategy: str, runs: int, *, goes_on: bool, after: str
) -> None:
    planned(
        place,
        step("breaks", "echo again >> tries.txt; exit 3", output_to="nothing", on_error=strategy),
        step("later", "echo [nothing] > later.txt"),
    )

    ran = place.run("flow", "run", "IMPL-1")

    assert (ran.returncode == 0) is goes_on
    assert (place.root / "tries.txt").read_text().splitlines() == ["again"] * runs
    assert (place.root / "later.txt").exists() is goes_on
    assert status(place) == after


@pytest.mark.req("003-run-3")
def test_what_a_person_was_asked_about_goes_on_where_it_stopped(place: Place) -> None:
    planned(
        place,
        step("once", "echo ran >> once.txt", output_to="x"),
        step("asks", "test -f ready", on_error="manual_intervention"),
        step("last", "echo done > last.txt"),
    )
    assert place.run("flow", "run", "IMPL-1").returncode != 0
    place.write("ready", "")

    place.detent("flow", "resume", "IMPL-1", "--retry")

    assert (place.root / "once.txt").read_text() == "ran\n"
    assert (place.root / "last.txt").read_text() == "done\n"


@pytest.mark.req("003-run-4")
def test_success_criteria_decide_and_not_the_exit_code_alone(place: Place) -> None:
    planned(place, step("empty", "true", success_criteria="non_empty"), step("later", "touch later.txt"))

    assert place.run("flow", "run", "IMPL-1").returncode != 0

    assert not (place.root / "later.txt").exists()
    assert status(place) == "failed"


@pytest.mark.req("003-run-5")
def test_a_value_is_never_read_as_a_command(place: Place) -> None:
    planned(
        place,
        step("plants", "printf '%s' '$(touch pwned); `touch pwned`'", output_to="planted"),
        step("uses", "echo '[planted]' \"[planted]\" [planted] > used.txt"),
    )

    place.detent("flow", "run", "IMPL-1")

    assert not (place.root / "pwned").exists()
    assert (place.root / "used.txt").read_text().count("$(touch pwned); `touch pwned`") == 3


@pytest.mark.req("003-run-6")
def test_the_example_of_the_seed_runs_as_it_stands(place: Place) -> None:
    for program in ("gemini", "codex"):
        place.write(f"bin/{program}", STUB).chmod(0o755)
    done = new_document("IMPL-1", "Design")
    document = new_document("IMPL-2", "Build", focus_paths=["src"], depends_on=["IMPL-1"])
    document["flow_control"] = SEED | {"target_files": ["src/a.py"]}
    path = place.write("tasks.json", json.dumps([done, document]))
    place.detent("task", "add", "--file", str(path))
    place.detent("task", "start", "IMPL-1")
    place.detent("task", "done", "IMPL-1", "-m", "Tokens are signed")

    ran = json.loads(place.detent("flow", "run", "IMPL-2", "--json", PATH=f"{place.root}/bin:/usr/bin:/bin"))

    outputs = ran["context"]["flow"]["outputs"]
    # The first step reads .summaries as the seed writes it: in the session's directory.
    assert outputs["dependency_context"] == "Tokens are signed"
    assert outputs["codebase_analysis"] == (
        "gemini was told: -p @{src} analyze current patterns using context: Tokens are signed"
    )
