"""IR-008: how a workflow starts."""

from pathlib import Path

import pytest

from detent.engine.project import Project, open_project
from tests.support.disk import FEATURE, FIX, Disk

UNTOUCHED = {
    "status": "pending",
    "started": None,
    "completed": None,
    "gate_passed": None,
    "artifacts": [],
    "summary": None,
}
LIGHT = tuple(key for key in FEATURE if key not in ("03-architecture", "04-design"))
WAYS = [
    pytest.param("feature", None, FEATURE, id="feature"),
    pytest.param("fix", None, FIX, id="fix"),
    pytest.param("upgrade", None, ("15-upgrade-plan", "15-upgrade-execute", "08-code-review"), id="upgrade"),
    pytest.param("test-run", None, ("11-local-testing", "07-testing"), id="test-run"),
    pytest.param("test-generate", None, ("05-test-strategy", *FIX[1:]), id="test-generate"),
    pytest.param("feature", "light", LIGHT, id="light", marks=pytest.mark.req("AC-008f")),
]


@pytest.mark.req("AC-008a")
@pytest.mark.parametrize(("workflow", "size", "phases"), WAYS)
def test_the_list_is_exactly_that_of_the_workflow(
    project: Project, disk: Disk, workflow: str, size: str | None, phases: tuple[str, ...]
) -> None:
    project.start(workflow, "add search", size=size)

    assert disk.workflow()["type"] == workflow
    assert disk.workflow()["phases"] == list(phases)


@pytest.mark.req("AC-008a")
def test_the_list_of_an_own_workflow_is_the_one_in_the_settings(root: Path, disk: Disk) -> None:
    (root / "detent.toml").write_text('gates = "off"\n[workflows.feature]\nphases = ["sketch", "06-implementation"]\n')

    with open_project(root) as project:
        project.start("feature", "add search")

    assert disk.workflow()["phases"] == ["sketch", "06-implementation"]


@pytest.mark.req("AC-008b", "AC-008c", "AC-008e")
@pytest.mark.parametrize(("workflow", "size", "phases"), WAYS)
def test_the_first_phase_is_in_progress_and_the_others_untouched(
    project: Project, disk: Disk, workflow: str, size: str | None, phases: tuple[str, ...]
) -> None:
    project.start(workflow, "add search", size=size)

    state = disk.state()
    first, *others = phases
    assert state["active_workflow"]["phase_status"] == {first: "in_progress", **dict.fromkeys(others, "pending")}
    assert state["active_workflow"]["current_phase_index"] == 0
    assert state["current_phase"] == state["active_workflow"]["current_phase"] == first
    assert state["phases"][first]["status"] == "in_progress"
    assert [state["phases"][key] for key in others] == [UNTOUCHED] * len(others)


@pytest.mark.req("AC-008d")
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "left open"])
def test_records_of_the_workflow_before_are_gone(project: Project, disk: Disk, ended: bool) -> None:
    before = project.start("feature", "add search")
    before.finish("requirements written")
    if ended:
        before.cancel("not wanted after all")

    project.start("fix", "repair search")

    state = disk.state()
    assert list(state["phases"]) == list(FIX)
    assert state["phases"]["06-implementation"] == UNTOUCHED
    assert state["active_workflow"]["current_phase_index"] == 0


@pytest.mark.req("AC-008f")
@pytest.mark.parametrize(("size", "count"), [("light", 6), ("standard", 8), ("epic", 8)])
def test_every_size_can_be_walked_to_its_end(project: Project, disk: Disk, size: str, count: int) -> None:
    handle = project.start("feature", "add search", size=size)

    for number in range(count):
        if number:
            handle.begin()
        project.flush()
        assert disk.workflow()["current_phase_index"] == number
        handle.finish("done")
    project.flush()

    assert disk.state()["active_workflow"] is None
    assert disk.history()[-1]["metrics"]["phases_completed"] == count
