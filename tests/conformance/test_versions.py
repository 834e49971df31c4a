"""IR-011: versions, and readers beside a writer."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

from detent.documents.state import check_write, running, stamped
from detent.engine.project import Project, open_project
from tests.support.disk import Disk

READER = """
import json, pathlib, sys
state, stop = map(pathlib.Path, sys.argv[1:])
reads, versions, wrong = 0, set(), []
print("ready", flush=True)
while not stop.exists():
    text = state.read_bytes()
    reads += 1
    try:
        document = json.loads(text)
    except ValueError as error:
        wrong.append(str(error))
        continue
    versions.add(document["state_version"])
    flow, phases = document["active_workflow"], document["phases"]
    if flow["phase_status"] != {key: record["status"] for key, record in phases.items()}:
        wrong.append("mirrors")
    if phases[flow["current_phase"]]["status"] == "pending" or flow["current_phase"] != document["current_phase"]:
        wrong.append("current")
print(json.dumps([reads, len(versions), wrong]))
"""


@pytest.mark.req("AC-011a")
def test_every_command_is_one_version(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    versions = [disk.state()["state_version"]]

    for step in (
        lambda: handle.fail("it broke"),
        lambda: handle.redo("01-requirements"),
        lambda: handle.finish("requirements written"),
        handle.begin,
        lambda: handle.skip("03-architecture", "04-design", reason="small"),
        lambda: handle.redo("01-requirements", cascade=True),
        lambda: handle.cancel("not wanted after all"),
        lambda: project.start("fix", "repair search"),
    ):
        step()
        project.flush()
        versions.append(disk.state()["state_version"])

    assert versions == list(range(1, 10))


@pytest.mark.req("AC-011a")
def test_an_adopted_edit_is_one_version(project: Project, disk: Disk) -> None:
    project.start("feature", "add search")
    document = disk.state()
    document["phases"]["01-requirements"]["status"] = "completed"
    disk.edit(document)

    project.reconcile()

    assert disk.state()["state_version"] == 2


@pytest.mark.req("AC-011a")
@pytest.mark.parametrize("damage", ["lost", "corrupt"])
def test_versions_never_count_down_when_the_document_was(project: Project, disk: Disk, damage: str) -> None:
    before = project.start("feature", "add search")
    before.cancel("not wanted after all")
    project.flush()
    if damage == "lost":
        disk.state_path.unlink()
    else:
        disk.state_path.write_text("{")

    project.start("feature", "add search again")
    project.reconcile()

    assert disk.state()["state_version"] == 3


@pytest.mark.req("AC-011a")
@pytest.mark.parametrize(("stated", "expected"), [(1, 3), (9, 10)])
def test_taking_over_a_document_counts_on(project: Project, disk: Disk, stated: int, expected: int) -> None:
    handle = project.start("feature", "add search")
    document = disk.state()
    handle.cancel("not wanted after all")
    project.flush()

    project.import_state({**document, "state_version": stated}, source="old.json")

    assert disk.state()["state_version"] == expected


@pytest.mark.req("AC-011b")
def test_a_command_leaves_what_was_read_before_as_it_was(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    held = handle.state
    document = running(held)
    untouched = copy.deepcopy(document)

    handle.finish("requirements written")
    project.flush()

    assert running(held) == document == untouched
    assert held.phases["01-requirements"].status == "in_progress"
    assert disk.state()["phases"]["01-requirements"]["status"] == "completed"


@pytest.mark.req("AC-011b")
def test_stamping_a_document_makes_a_new_one() -> None:
    document = {"state_version": 3, "phases": {}}

    written = stamped(document, {"state_version": 8})

    assert written == {"state_version": 9, "phases": {}}
    assert document == {"state_version": 3, "phases": {}}


@pytest.mark.req("AC-011c", "TS-009")
def test_a_write_with_a_stale_version_is_refused_and_kept_aside(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    handle.begin()
    project.flush()
    stale = disk.state()
    handle.finish("impact known")
    handle.begin()
    project.flush()
    current, journal = disk.state_path.read_bytes(), disk.journal_path(handle.id).read_bytes()
    assert (stale["state_version"], disk.state()["state_version"]) == (3, 5)
    written = disk.edit(stale)

    [adoption] = project.reconcile()

    [version, *_] = adoption.reasons
    assert not adoption.adopted
    assert version.startswith("V7 state_version: ")
    assert "says state_version 3 but the session is at 5" in version
    assert "read it again" in version
    assert disk.state_path.read_bytes() == current
    assert disk.journal_path(handle.id).read_bytes() == journal
    assert adoption.kept == "state.json.rejected-1"
    assert (disk.directory / adoption.kept).read_bytes() == written


@pytest.mark.req("AC-011c")
@pytest.mark.parametrize(("incoming", "disk", "refused"), [(4, 5, True), (5, 5, False), (6, 5, False), (0, 1, True)])
def test_only_an_older_version_breaks_v7(incoming: int, disk: int, refused: bool) -> None:
    violations = check_write({"state_version": incoming}, {"state_version": disk})

    assert [(each.rule, each.blocks) for each in violations] == ([("V7", True)] if refused else [])


@pytest.mark.req("AC-011d")
@pytest.mark.parametrize("ahead", [0, 4])
def test_a_write_that_is_new_enough_is_adopted(project: Project, disk: Disk, ahead: int) -> None:
    handle = project.start("feature", "add search")
    document = disk.state()
    document["state_version"] += ahead
    document["phases"]["01-requirements"] |= {"status": "completed", "summary": "written by hand"}
    disk.edit(document)

    [adoption] = project.reconcile()

    record = disk.state()["phases"]["01-requirements"]
    assert (adoption.adopted, adoption.reasons) == (True, ())
    assert (record["status"], record["summary"]) == ("completed", "written by hand")
    assert [event["type"] for event in disk.journal(handle.id)[-1]["events"]] == [
        "document_adopted",
        "phase_finished",
        "checkpoint_taken",
    ]


@pytest.mark.req("AC-011e")
@pytest.mark.parametrize("incoming", [{}, {"state_version": None}, {"state_version": 3}])
@pytest.mark.parametrize("disk", [{}, {"state_version": None}])
def test_where_no_version_stands_any_may_be_written(incoming: dict[str, int], disk: dict[str, None]) -> None:
    assert check_write(incoming, disk) == []


@pytest.mark.req("AC-011e")
def test_an_unversioned_document_is_imported_and_gets_a_version(project: Project, disk: Disk) -> None:
    flow = {"type": "fix", "description": "repair search", "phases": ["02-tracing"], "current_phase": "02-tracing"}

    project.import_state({"active_workflow": flow}, source="old.json")

    assert disk.state()["state_version"] == 1
    assert disk.state()["phases"]["02-tracing"]["status"] == "in_progress"


@pytest.mark.req("AC-011e")
def test_an_unversioned_document_does_not_replace_one_of_detent(project: Project, disk: Disk) -> None:
    project.start("feature", "add search")
    document = disk.state()
    del document["state_version"]
    disk.edit(document)

    [adoption] = project.reconcile()

    assert not adoption.adopted
    assert "V7 state_version: the document carries no state_version" in adoption.reasons[0]
    assert disk.state()["state_version"] == 1


@pytest.mark.req("AC-011f")
def test_a_reader_never_sees_a_write_half_done(project: Project, disk: Disk, tmp_path: Path) -> None:
    handle = project.start("feature", "add search")
    stop = tmp_path / "stop"
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(disk.state_path), str(stop)], stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"

    for _ in range(50):
        handle.redo("01-requirements", cascade=True)
        project.flush()
        handle.finish("requirements written")
        project.flush()
        handle.begin()
        project.flush()
    stop.touch()
    output, _ = reader.communicate(timeout=60)

    reads, versions, wrong = json.loads(output)
    assert wrong == []
    assert reads >= versions > 5


@pytest.mark.req("AC-011f")
def test_a_session_is_read_whole_while_others_move_it(project: Project, root: Path) -> None:
    handle = project.start("feature", "add search")

    with open_project(root) as other:
        for _ in range(50):
            handle.redo("01-requirements")
            assert other.session().state == handle.state
