"""IR-012: phases do not go back unnoticed."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from detent.documents.state import check_write
from detent.engine.project import Project
from detent.engine.session import SessionHandle
from tests.support.disk import Disk
from tests.support.hooked_project import Place

FIRST, SECOND = "01-requirements", "02-impact-analysis"
ORDER = ["pending", "in_progress", "completed"]


@pytest.fixture
def handle(project: Project) -> SessionHandle:
    """A feature in its third phase."""
    handle = project.start("feature", "add search")
    for _ in range(2):
        handle.finish("done")
        handle.begin()
    project.flush()
    return handle


@pytest.mark.req("AC-012a")
def test_an_index_that_goes_back_is_refused(project: Project, handle: SessionHandle, disk: Disk) -> None:
    before, document = disk.state_path.read_bytes(), disk.state()
    document["active_workflow"]["current_phase_index"] = 1
    written = disk.edit(document)

    [adoption] = project.reconcile()

    [reason] = adoption.reasons
    assert not adoption.adopted
    assert reason.startswith("V8 active_workflow.current_phase_index: ")
    assert "goes back from 2 to 1" in reason
    assert disk.state_path.read_bytes() == before
    assert (disk.directory / str(adoption.kept)).read_bytes() == written


@pytest.mark.req("AC-012b", "TS-010")
def test_a_status_that_goes_back_is_refused(project: Project, handle: SessionHandle, disk: Disk) -> None:
    before, journal = disk.state_path.read_bytes(), disk.journal_path(handle.id).read_bytes()
    document = disk.state()
    assert document["active_workflow"]["phase_status"][FIRST] == "completed"
    document["active_workflow"]["phase_status"][FIRST] = "pending"
    written = disk.edit(document)

    [adoption] = project.reconcile()

    [reason] = adoption.reasons
    assert not adoption.adopted
    assert reason.startswith(f"V8 active_workflow.phase_status.{FIRST}: ")
    assert "goes back from completed to pending" in reason
    assert disk.state_path.read_bytes() == before
    assert disk.journal_path(handle.id).read_bytes() == journal
    assert (disk.directory / str(adoption.kept)).read_bytes() == written


@pytest.mark.req("AC-012b")
def test_a_record_that_goes_back_is_refused(project: Project, handle: SessionHandle, disk: Disk) -> None:
    document = disk.state()
    document["phases"][SECOND]["status"] = "in_progress"
    disk.edit(document)

    [adoption] = project.reconcile()

    assert [reason.partition(":")[0] for reason in adoption.reasons] == [f"V8 phases.{SECOND}.status"]
    assert disk.state()["phases"][SECOND]["status"] == "completed"


@pytest.mark.req("AC-012b")
def test_every_edit_that_is_refused_is_kept(project: Project, handle: SessionHandle, disk: Disk) -> None:
    texts = []
    for status in ("pending", "in_progress"):
        document = disk.state()
        document["phases"][FIRST]["status"] = status
        texts.append(disk.edit(document))
        project.reconcile()

    kept = [(disk.directory / f"state.json.rejected-{number}").read_bytes() for number in (1, 2)]
    assert kept == texts
    assert texts[0] != texts[1]


@pytest.mark.req("AC-012c")
def test_a_command_may_go_back_where_a_document_may_not(project: Project, handle: SessionHandle, disk: Disk) -> None:
    later = disk.state()

    handle.redo(FIRST, cascade=True, reason="the requirements changed")
    project.flush()

    earlier = disk.state()
    paths = {each.path for each in check_write({**earlier, "state_version": 99}, later) if each.rule == "V8"}
    assert earlier["active_workflow"]["phase_status"][FIRST] == "in_progress"
    assert earlier["active_workflow"]["current_phase_index"] == 0
    assert earlier["state_version"] == later["state_version"] + 1
    assert paths >= {"active_workflow.current_phase_index", f"active_workflow.phase_status.{FIRST}"}
    assert project.reconcile() == []


@pytest.mark.req("AC-012d")
@pytest.mark.parametrize("side", ["incoming", "disk"])
@pytest.mark.parametrize(
    ("gone", "remaining"),
    [
        ("nothing", ["current_phase_index", f"phase_status.{FIRST}", "status"]),
        ("current_phase_index", [f"phase_status.{FIRST}", "status"]),
        ("phase_status", ["current_phase_index", "status"]),
        ("phases", ["current_phase_index", f"phase_status.{FIRST}"]),
        ("active_workflow", []),
    ],
)
def test_what_is_missing_on_one_side_breaks_no_v8(side: str, gone: str, remaining: list[str]) -> None:
    documents = {"incoming": workflow(0, "pending"), "disk": workflow(3, "completed")}
    documents[side]["active_workflow"].pop(gone, None)
    documents[side].pop(gone, None)

    violations = check_write(documents["incoming"], documents["disk"])

    prefixes = ("active_workflow.", f"phases.{FIRST}.")
    assert {each.rule for each in violations} <= {"V8"}
    assert [each.path.removeprefix(prefixes[0]).removeprefix(prefixes[1]) for each in violations] == remaining


@pytest.mark.req("AC-012e")
@pytest.mark.parametrize(("was", "becomes"), [*product(ORDER, ORDER)])
def test_statuses_are_ordered_pending_in_progress_completed(was: str, becomes: str) -> None:
    violations = check_write(workflow(1, becomes), workflow(1, was))

    goes_back = ORDER.index(becomes) < ORDER.index(was)
    assert [(each.rule, each.blocks) for each in violations] == ([("V8", True)] * 2 if goes_back else [])


def workflow(index: int, status: str) -> dict[str, Any]:
    return {
        "state_version": 5,
        "active_workflow": {"current_phase_index": index, "phase_status": {FIRST: status}},
        "phases": {FIRST: {"status": status}},
    }


@pytest.mark.req("AC-012c")
@pytest.mark.parametrize("tool", ["Write", "Edit"])
def test_what_an_agent_writes_may_not_go_back(tmp_path: Path, tool: str) -> None:
    """The seed lets an Edit pass, because it sees only a part of it; here its result is judged."""
    place = Place(tmp_path, settings='gates = "off"\n')
    place.detent("start", "feature", "add search")
    place.detent("finish", "-m", "done")
    document = tmp_path / ".workflow/state.json"
    text = document.read_text()
    old = f'"{FIRST}": "completed"'
    assert text.count(old) == 1
    back = old.replace("completed", "pending")
    forth = text.replace(f'"{SECOND}": "pending"', f'"{SECOND}": "in_progress"')
    inputs = {"content": text.replace(old, back)} if tool == "Write" else {"old_string": old, "new_string": back}

    denied = place.before(tool, file_path=str(document), **inputs).denied

    assert f"active_workflow.phase_status.{FIRST} goes back from completed to pending" in str(denied)
    assert place.before("Write", file_path=str(document), content=forth).denied is None
