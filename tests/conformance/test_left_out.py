"""IR-009: phases that are left out, and keys of older documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from detent.documents.state import read
from detent.engine.project import Project, open_project
from tests.support.disk import FEATURE, Disk

LEFT_OUT = ("03-architecture", "04-design")
KEPT = [key for key in FEATURE if key not in LEFT_OUT]
LEGACY = ["12-remote-build", "13-test-deploy", "14-production", "15-operations"]
PRESENT = ["12-remote-build", "12-test-deploy", "13-production", "14-operations"]


@pytest.fixture
def shortened(project: Project, disk: Disk) -> dict[str, Any]:
    """A feature that turned out to be small in its second phase."""
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    handle.begin()

    handle.skip(size="light", reason="two files only")
    project.flush()
    return disk.state()


@pytest.mark.req("AC-009a", "AC-009c")
def test_only_phases_that_will_be_done_are_listed(shortened: dict[str, Any]) -> None:
    assert shortened["active_workflow"]["phases"] == KEPT
    assert list(shortened["active_workflow"]["phase_status"]) == KEPT
    assert list(shortened["phases"]) == KEPT


@pytest.mark.req("AC-009a", "AC-009c")
def test_a_size_chosen_at_the_start_lists_only_what_will_be_done(project: Project, disk: Disk) -> None:
    project.start("feature", "add search", size="light")

    assert disk.workflow()["phases"] == list(disk.state()["phases"]) == KEPT


@pytest.mark.req("AC-009b")
def test_the_index_counts_in_the_shortened_list(project: Project, disk: Disk, shortened: dict[str, Any]) -> None:
    handle = project.session()
    handle.finish("two files")

    handle.begin()
    project.flush()

    flow = disk.workflow()
    assert flow["current_phase"] == "05-test-strategy"
    assert flow["current_phase_index"] == flow["phases"].index("05-test-strategy") == 2


@pytest.mark.req("AC-009d")
def test_a_shortened_workflow_ends_after_its_last_phase(
    project: Project, disk: Disk, shortened: dict[str, Any]
) -> None:
    handle = project.session()
    walked = []

    while project.active():
        walked.append(disk.state()["current_phase"])
        handle.finish("done")
        if handle.state.ready:
            handle.begin()
        project.flush()

    assert walked == KEPT[1:]
    assert disk.history()[-1]["phases"] == KEPT
    assert disk.history()[-1]["metrics"]["phases_completed"] == disk.history()[-1]["metrics"]["total_phases"] == 6


@pytest.mark.req("AC-009d")
def test_leaving_out_all_that_remains_ends_the_workflow(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")

    handle.skip(*FEATURE[1:], reason="it exists already")
    project.flush()

    assert disk.state()["active_workflow"] is None
    assert disk.history()[-1]["phases"] == ["01-requirements"]


def legacy_document() -> dict[str, Any]:
    """At the second of four phases, all under the keys that older documents use."""
    status = dict(zip(LEGACY, ["completed", "in_progress", "pending", "pending"], strict=True))
    return {
        "state_version": 7,
        "current_phase": "13-test-deploy",
        "active_workflow": {
            "type": "release",
            "description": "release 2.0",
            "phases": LEGACY,
            "current_phase": "13-test-deploy",
            "current_phase_index": 1,
            "phase_status": status,
        },
        "phases": {key: {"status": value, "summary": "built"} for key, value in status.items()},
    }


@pytest.mark.req("AC-009e", "TS-008")
def test_a_document_with_legacy_keys_keeps_its_position(project: Project, disk: Disk) -> None:
    project.import_state(legacy_document(), source="old.json")

    state = disk.state()
    assert state["active_workflow"]["phases"] == PRESENT
    assert state["active_workflow"]["current_phase_index"] == 1
    assert state["current_phase"] == "12-test-deploy"
    assert list(state["active_workflow"]["phase_status"].values()) == ["completed", "in_progress", "pending", "pending"]
    assert state["active_agent"] == "deployment-engineer-staging"


@pytest.mark.req("AC-009e", "TS-008")
def test_a_reader_takes_legacy_keys_for_their_present_names() -> None:
    session = read(json.loads(json.dumps(legacy_document())))

    assert list(session.phases) == PRESENT
    assert session.phases["12-test-deploy"].status == "in_progress"
    assert session.state_version == 7


@pytest.mark.req("AC-009e")
def test_commands_understand_legacy_keys(project: Project, disk: Disk) -> None:
    handle = project.import_state(legacy_document(), source="old.json")

    handle.finish("deployed", phase="13-test-deploy")
    begun = handle.begin("14-production")
    project.flush()

    flow = disk.workflow()
    assert begun.token.phase == flow["current_phase"] == "13-production"
    assert flow["current_phase_index"] == flow["phases"].index("13-production") == 2


@pytest.mark.req("TS-008")
def test_a_legacy_key_gets_the_requirements_of_its_present_name(root: Path, disk: Disk) -> None:
    (root / "docs").mkdir()
    (root / "docs/constitution.md").write_text("# Articles\n")
    (root / ".workflow/install").mkdir()
    (root / ".workflow/install/manifest.json").write_text("{}")
    (root / "detent.toml").write_text(f'gates = "off"\n[workflows.release]\nphases = {json.dumps(LEGACY)}\n')

    with open_project(root) as project:
        own = pinned_gates(disk, project.start("release", "release 2.0").id)
        imported = pinned_gates(disk, project.import_state(legacy_document(), source="old.json").id)
        shipped = pinned_gates(disk, project.start("full-lifecycle", "release 3.0").id)

    assert shipped["12-test-deploy"] == [{"kind": "constitution", "articles": ["IX", "X"]}, {"kind": "delegation"}]
    assert own == imported == {key: shipped[key] for key in PRESENT}


def pinned_gates(disk: Disk, session: str) -> dict[str, Any]:
    """What the phases of the session ask for, as its journal has it."""
    workflow = disk.journal(session)[0]["events"][0]["workflow"]
    return {phase["key"]: phase.get("gates") for phase in workflow["phases"]}
