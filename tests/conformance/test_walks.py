"""The scenarios of seed 004 that go through a whole workflow, or through a mishap."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from detent.core.session.status import Status
from detent.documents.state import read, running
from detent.engine.project import Project
from detent.engine.session import SessionHandle
from tests.support.disk import FEATURE, FIX, Disk

SECOND, THIRD = "02-impact-analysis", "03-architecture"


@pytest.mark.parametrize(
    ("workflow", "phases"),
    [
        pytest.param("feature", FEATURE, marks=pytest.mark.req("TS-001"), id="feature"),
        pytest.param("fix", FIX, marks=pytest.mark.req("TS-002"), id="fix"),
    ],
)
def test_a_workflow_goes_through_its_phases_to_its_end(
    project: Project, disk: Disk, workflow: str, phases: tuple[str, ...]
) -> None:
    handle = project.start(workflow, "add search")
    for index, phase in enumerate(phases):
        if index:
            handle.begin()
            project.flush()
        state = disk.state()
        expected = ["completed"] * index + ["in_progress"] + ["pending"] * (len(phases) - index - 1)
        assert state["active_workflow"]["phase_status"] == dict(zip(phases, expected, strict=True))
        assert state["phases"][phase]["status"] == "in_progress"
        assert state["active_workflow"]["current_phase"] == state["current_phase"] == phase
        assert state["active_workflow"]["current_phase_index"] == index

        handle.finish(f"{phase} done")
        project.flush()

        if index + 1 < len(phases):
            flow = disk.workflow()
            assert flow["phase_status"][phase] == "completed"
            assert flow["current_phase_index"] == index + 1

    [entry] = disk.history()
    assert disk.state()["active_workflow"] is None
    assert (entry["status"], entry["phases"]) == ("completed", list(phases))
    assert entry["metrics"]["phases_completed"] == len(phases)
    assert disk.session(handle.id)["status"] == "completed"


@pytest.fixture
def third(project: Project) -> SessionHandle:
    """A feature in its third phase."""
    handle = project.start("feature", "add search")
    for _ in range(2):
        handle.finish("done")
        handle.begin()
    project.flush()
    return handle


@pytest.mark.req("TS-006")
@pytest.mark.parametrize("said", ["in_progress", "pending"])
def test_a_stale_top_level_phase_misleads_no_reader(third: SessionHandle, disk: Disk, said: str) -> None:
    stale = {**disk.state(), "current_phase": "01-requirements", "active_agent": "requirements-analyst"}
    stale["active_workflow"]["phase_status"][THIRD] = stale["phases"][THIRD]["status"] = said

    session = read(stale)

    assert session.with_status(Status.IN_PROGRESS) == (THIRD,)
    assert session.with_status(Status.COMPLETED) == ("01-requirements", SECOND)
    assert running(session)["current_phase"] == THIRD


@pytest.mark.req("TS-006")
def test_a_stale_top_level_phase_is_not_adopted(project: Project, third: SessionHandle, disk: Disk) -> None:
    before = disk.state_path.read_bytes()
    disk.edit({**disk.state(), "current_phase": "01-requirements"})

    [adoption] = project.reconcile()

    assert [reason.partition(":")[0] for reason in adoption.reasons] == ["EDIT current_phase"]
    assert disk.state_path.read_bytes() == before


@pytest.mark.req("TS-006")
def test_commands_go_by_the_session_whatever_the_document_says(
    project: Project, third: SessionHandle, disk: Disk
) -> None:
    disk.edit({**disk.state(), "current_phase": "01-requirements"})

    third.finish("architecture drawn")
    project.reconcile()

    state = disk.state()
    assert (state["current_phase"], state["phases"][THIRD]["summary"]) == (THIRD, "architecture drawn")
    assert state["phases"]["01-requirements"]["summary"] == "done"


@pytest.mark.req("TS-006")
def test_a_stale_top_level_phase_misleads_no_import(project: Project, third: SessionHandle, disk: Disk) -> None:
    imported = project.import_state({**disk.state(), "current_phase": "01-requirements"}, source="old.json")

    gates = [handle.state.workflow.by_key[THIRD].gates for handle in (third, imported)]
    assert disk.state()["current_phase"] == THIRD
    assert disk.workflow()["current_phase_index"] == 2
    assert gates[0] == gates[1] != ()


FAILING_BEGIN = """
import json, os, resource, sys
sys.dont_write_bytecode = True  # The limit would cut compiled modules too, and other processes would load them.
from detent.errors import StoreFailed
from detent.documents.state import running
project = open_project(root)
handle = project.session()
journal = os.path.join(root, ".workflow", handle.id, "journal.jsonl")
size = os.path.getsize(journal)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + {room}, most))
try:
    handle.begin()
except StoreFailed as error:
    failure = [error.message, error.way_out]
left = os.path.getsize(journal) - size
pending = running(handle.state)["phases"][{phase!r}]["status"]
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
token = str(handle.begin().token) if {retry} else None
print(json.dumps([failure, left, pending, token]))
"""


@pytest.mark.req("TS-007")
@pytest.mark.parametrize("room", [0, 40])
def test_a_begin_that_cannot_be_written_changes_nothing(
    project: Project, disk: Disk, elsewhere: Callable[[str], "CompletedProcess[str]"], room: int
) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    project.flush()
    before = disk.journal_path(handle.id).read_bytes(), disk.state_path.read_bytes()

    tried = elsewhere(FAILING_BEGIN.format(room=room, phase=SECOND, retry=False))

    (message, way_out), left, status, _ = json.loads(tried.stdout)
    assert "could not append to" in message
    assert "nothing was committed" in way_out
    assert (left, status) == (0, "pending")
    assert (disk.journal_path(handle.id).read_bytes(), disk.state_path.read_bytes()) == before
    assert disk.state()["phases"][SECOND]["status"] == "pending"
    assert handle.begin().token == (SECOND, 1, 3)


@pytest.mark.req("TS-007")
def test_the_process_whose_begin_failed_can_repeat_it(
    project: Project, disk: Disk, elsewhere: Callable[[str], "CompletedProcess[str]"]
) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    project.flush()

    tried = elsewhere(FAILING_BEGIN.format(room=40, phase=SECOND, retry=True))

    assert json.loads(tried.stdout)[1:] == [0, "pending", f"{SECOND}:1:3"]
    assert disk.state()["phases"][SECOND]["status"] == "in_progress"
    assert [commit["version"] for commit in disk.journal(handle.id)] == [1, 2, 3]


@pytest.mark.req("TS-007")
def test_a_begin_torn_by_a_power_cut_never_happened(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    project.flush()
    with disk.journal_path(handle.id).open("ab") as journal:
        journal.write(b'{"version":3,"at":"2026-02-20T10:00:00Z","by":"tester","events":[{"type":"phase_be')

    seen = handle.state.phases[SECOND].status
    handle.begin()
    project.flush()

    assert seen == "pending"
    assert disk.state()["phases"][SECOND]["status"] == "in_progress"
    assert [event["type"] for event in disk.journal(handle.id)[-1]["events"]] == [
        "tail_dropped",
        "phase_begun",
        "checkpoint_taken",
    ]
