"""IR-001: fields that repeat one another agree after every command, whatever the commands."""

from collections.abc import Callable

import pytest

from detent.core.session.evolve import evolve
from detent.documents.state import running
from detent.engine.project import Project
from detent.engine.session import SessionHandle
from tests.support.disk import FEATURE, Disk, check_agreement

Steps = list[Callable[[SessionHandle], object]]


def finish(handle: SessionHandle) -> object:
    return handle.finish("done")


def fail(handle: SessionHandle) -> object:
    return handle.fail("it broke")


def begin(handle: SessionHandle) -> object:
    return handle.begin()


def redo(phase: str, *, cascade: bool = False) -> Callable[[SessionHandle], object]:
    return lambda handle: handle.redo(phase, cascade=cascade)


def skip(*phases: str) -> Callable[[SessionHandle], object]:
    return lambda handle: handle.skip(*phases, reason="not needed")


FIRST, SECOND, THIRD, *_ = FEATURE
WAYS: dict[str, Steps] = {
    "straight on": [finish, begin] * 7,
    "with retries": [fail, redo(FIRST), redo(FIRST), finish, begin, fail, redo(SECOND), finish, begin],
    "back to the start": [finish, begin, finish, begin, redo(FIRST, cascade=True), finish, begin, finish, begin],
    "with phases skipped": [finish, begin, skip(THIRD, "04-design"), finish, begin, finish, begin],
    "with the current phase skipped": [finish, begin, skip(SECOND), begin, skip(THIRD), begin],
    "with the first phase skipped": [skip(FIRST), begin, finish, begin],
    "with a redone phase skipped": [finish, begin, redo(FIRST, cascade=True), skip(FIRST), begin],
    "with a failed phase skipped": [finish, begin, fail, skip(SECOND), begin],
}


@pytest.mark.req("AC-001e")
@pytest.mark.parametrize("steps", WAYS.values(), ids=WAYS)
def test_the_current_phase_is_never_pending(project: Project, disk: Disk, steps: Steps) -> None:
    handle = project.start("feature", "add search")
    disk.state()

    for step in steps:
        step(handle)
        project.flush()
        state = disk.state()

        assert state["current_phase"] is None or state["phases"][state["current_phase"]]["status"] != "pending"


@pytest.mark.req("AC-001e")
@pytest.mark.parametrize("steps", WAYS.values(), ids=WAYS)
def test_every_position_of_the_journal_agrees_with_itself(project: Project, steps: Steps) -> None:
    handle = project.start("feature", "add search")
    for step in steps:
        step(handle)

    session = None
    for commit in handle.log():
        session = evolve(session, commit)
        check_agreement(running(session))

    assert session == handle.state


@pytest.mark.req("AC-001c", "AC-001e")
@pytest.mark.parametrize("done", range(4))
def test_work_taken_over_between_two_phases_agrees_with_itself(project: Project, disk: Disk, done: int) -> None:
    flow = {"type": "feature", "description": "add search", "phases": list(FEATURE)}
    records = {key: {"status": "completed", "summary": "done"} for key in FEATURE[:done]}

    project.import_state({"active_workflow": flow, "phases": records}, source="old.json")

    state = disk.state()
    assert state["active_workflow"]["current_phase_index"] == done
    assert state["current_phase"] == (FEATURE[done - 1] if done else None)


@pytest.mark.req("AC-001c")
@pytest.mark.parametrize("way", ["straight on", "with retries", "with phases skipped", "with a failed phase skipped"])
def test_the_index_grows_and_points_at_the_current_phase(project: Project, disk: Disk, way: str) -> None:
    handle = project.start("feature", "add search")
    seen = [disk.workflow()]

    for step in WAYS[way]:
        step(handle)
        project.flush()
        seen.append(disk.workflow())

    indexes = [flow["current_phase_index"] for flow in seen]
    at_work = [flow for flow in seen if "in_progress" in flow["phase_status"].values()]
    assert indexes == sorted(indexes)
    assert indexes[0] == 0
    assert indexes[-1] > 0
    assert all(flow["phases"][flow["current_phase_index"]] == flow["current_phase"] for flow in at_work)
