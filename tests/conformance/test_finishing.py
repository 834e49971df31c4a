"""IR-003 and the half of IR-001 that finish writes (STEP 3e)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from detent.engine.project import Project, open_project
from tests.support.disk import FEATURE, Disk
from tests.support.values import Clock


class Boundary:
    """The documents right before and right after the finish of one phase."""

    def __init__(self, phase: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        self.phase = phase
        self.following = FEATURE[FEATURE.index(phase) + 1]
        self.before, self.after = before, after


@pytest.fixture
def boundaries(project: Project, disk: Disk, clock: Clock) -> list[Boundary]:
    """All boundaries of a feature but the last, where the workflow ends."""

    def walk() -> Iterator[Boundary]:
        handle = project.start("feature", "add search")
        for phase in FEATURE[:-1]:
            before = disk.state()
            clock.advance(seconds=90)
            handle.finish(f"{phase} done", phase=phase)
            project.flush()
            yield Boundary(phase, before, disk.state())
            handle.begin()
            project.flush()

    return list(walk())


@pytest.mark.req("AC-001a")
def test_a_finished_phase_is_completed_in_both_places(boundaries: list[Boundary]) -> None:
    for boundary in boundaries:
        record = boundary.after["phases"][boundary.phase]
        assert record["status"] == "completed"
        assert boundary.after["active_workflow"]["phase_status"][boundary.phase] == "completed"
        assert record["summary"] == f"{boundary.phase} done"


@pytest.mark.req("AC-001a")
def test_a_summary_is_kept_to_150_characters(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")

    outcome = handle.finish("x" * 151)
    project.flush()

    assert len(disk.state()["phases"]["01-requirements"]["summary"]) == 150
    assert "cut from 151 to 150" in outcome.warnings[0]


@pytest.mark.req("AC-003a", "AC-003b")
def test_finish_leaves_the_next_phase_as_it_was(boundaries: list[Boundary]) -> None:
    for boundary in boundaries:
        for document in (boundary.before, boundary.after):
            assert document["phases"][boundary.following]["status"] == "pending"
            assert document["phases"][boundary.following]["started"] is None
            assert document["active_workflow"]["phase_status"][boundary.following] == "pending"


@pytest.mark.req("AC-003c", "AC-003d")
def test_finish_activates_nothing(boundaries: list[Boundary]) -> None:
    for boundary in boundaries:
        assert boundary.after["active_workflow"]["current_phase"] == boundary.phase
        assert boundary.after["current_phase"] == boundary.phase
        assert boundary.after["active_agent"] == boundary.before["active_agent"]


@pytest.mark.req("AC-003e")
def test_finish_advances_the_index_by_one(boundaries: list[Boundary]) -> None:
    indexes = [
        (each.before["active_workflow"]["current_phase_index"], each.after["active_workflow"]["current_phase_index"])
        for each in boundaries
    ]

    assert indexes == [(number, number + 1) for number in range(7)]


@pytest.mark.req("AC-003f")
def test_finish_advances_the_version_by_one(boundaries: list[Boundary]) -> None:
    versions = [(each.before["state_version"], each.after["state_version"]) for each in boundaries]

    assert versions == [(2 * number + 1, 2 * number + 2) for number in range(7)]


@pytest.mark.req("AC-003g")
def test_finish_records_when_and_how_long(boundaries: list[Boundary]) -> None:
    first, second = (boundary.after["phases"][boundary.phase]["timing"] for boundary in boundaries[:2])

    assert first["completed_at"] == second["started_at"] == "2026-02-20T10:01:30.000Z"
    assert second["completed_at"] == "2026-02-20T10:03:00.000Z"
    assert [boundary.after["phases"][boundary.phase]["timing"]["wall_clock_minutes"] for boundary in boundaries] == [
        1.5
    ] * 7


@pytest.mark.req("004-after-1")
def test_finish_says_how_the_budget_stands(root: Path, clock: Clock) -> None:
    (root / "detent.toml").write_text('gates = "off"\n[budget]\nminutes = 10\n')
    with open_project(root, actor="tester", clock=clock) as project:
        handle = project.start("feature", "add search")
        shown = []
        for minutes in (1, 8, 2):
            clock.advance(seconds=60 * minutes)
            handle.finish("done")
            project.flush()
            shown.append(Disk(root / ".workflow").workflow()["budget_status"])
            if shown[-1] != "exceeded":
                handle.begin()

    assert shown == ["on_track", "approaching", "exceeded"]


@pytest.mark.req("004-after-1")
def test_without_a_budget_nothing_is_said_about_it(boundaries: list[Boundary]) -> None:
    assert all("budget_status" not in each.after["active_workflow"] for each in boundaries)


@pytest.mark.req("004-after-2")
def test_finish_brings_the_page_of_tasks_up_to_date(project: Project, root: Path) -> None:
    handle = project.start("feature", "add search")
    page = root / "docs/requirements" / handle.state.folder / "tasks.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Tasks\n\n## Phase 01: Requirements -- IN PROGRESS\n- [ ] T1 ask ada\n\n## Phase 02 -- PENDING\n")

    handle.finish("agreed")
    handle.begin()
    project.flush()

    assert page.read_text() == (
        "# Tasks\n\n## Phase 01: Requirements -- COMPLETE\n- [ ] T1 ask ada\n\n## Phase 02 -- IN PROGRESS\n"
    )


@pytest.mark.req("004-after-2")
def test_finish_makes_no_page_of_tasks(project: Project, root: Path) -> None:
    project.start("feature", "add search").finish("agreed")
    project.flush()

    assert not (root / "docs").exists()


@pytest.mark.req("004-after-3")
def test_the_skill_log_has_every_agent_that_was_launched(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    for number, ended in enumerate((True, False, None)):
        handle.record_agent_started("01-requirements", f"analyst-{number}", f"a{number}")
        if ended is not None:
            handle.record_agent_ended(f"a{number}", succeeded=ended)
    project.flush()

    log = disk.state()["skill_usage_log"]
    assert [(entry["agent"], entry["agent_phase"], entry["status"]) for entry in log] == [
        ("analyst-0", "01-requirements", "executed"),
        ("analyst-1", "01-requirements", "failed"),
        ("analyst-2", "01-requirements", "running"),
    ]
    for number in range(3, 60):
        handle.record_agent_started("01-requirements", f"analyst-{number}", f"a{number}")
    project.flush()
    assert [entry["agent"] for entry in disk.state()["skill_usage_log"]] == [f"analyst-{at}" for at in range(10, 60)]
