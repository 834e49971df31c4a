"""IR-007: what one phase leaves reaches the next."""

from datetime import timedelta
from pathlib import Path

import pytest

from detent.config.catalogue import Catalogue
from detent.config.settings import Settings
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.session.events import Discovery
from detent.engine.project import Project
from tests.support.disk import FEATURE, FIX, Disk
from tests.support.hooked_project import Place
from tests.support.values import Clock

SPEC = "requirements-spec.md"
DISCOVERY_PHASES = {"02-impact-analysis", "02-tracing", "03-architecture"}


def write(root: Path, path: str) -> str:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("what search must do\n")
    return path


@pytest.mark.req("AC-007a")
def test_every_agent_of_a_phase_is_told_the_folder(tmp_path: Path) -> None:
    place = Place(tmp_path, settings='gates = "off"\n')
    place.detent("start", "feature", "Add search!")
    told = {}
    for number, phase in enumerate(FEATURE):
        workflow = place.disk.workflow()
        folder, agent = workflow["artifact_folder"], workflow["agents"][phase]
        told[phase] = place.hook("SubagentStart", agent_id=f"a{number}", agent_type=agent).told
        place.hook("SubagentStop", agent_id=f"a{number}", agent_type=agent, last_assistant_message="Summary: done")
        place.detent("finish", "-m", "done")
        if phase != FEATURE[-1]:
            place.detent("begin")

    assert folder == "REQ-0001-add-search"
    assert [phase for phase in FEATURE if f"docs/requirements/{folder}/" not in told[phase]] == []


@pytest.mark.req("AC-007a")
def test_every_handover_names_the_folder_of_the_document(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "Add search!")
    given = [handle.handover("01-requirements")]

    for _ in FEATURE[1:]:
        handle.finish("done")
        given.append(handle.begin().handover)
        project.flush()

    assert [handover.phase for handover in given] == list(FEATURE)
    assert disk.workflow()["artifact_folder"] == "REQ-0001-add-search"
    assert {handover.artifact_folder for handover in given} == {"REQ-0001-add-search"}


@pytest.mark.req("AC-007b", "TS-013")
def test_the_next_phase_finds_what_the_one_before_wrote(project: Project, root: Path, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    path = write(root, f"{handle.handover('01-requirements').artifact_path}/{SPEC}")
    handle.finish("requirements written", artifacts=[path], context="search is case-insensitive")

    begun = handle.begin()
    project.flush()

    [passed] = begun.handover.passed
    assert begun.handover.artifact_folder == disk.workflow()["artifact_folder"]
    assert passed.phase == "01-requirements"
    assert passed.artifacts == (f"docs/requirements/{begun.handover.artifact_folder}/{SPEC}",)
    assert (root / passed.artifacts[0]).read_text() == "what search must do\n"
    assert passed.context == "search is case-insensitive"
    assert begun.warnings == passed.missing == ()
    assert disk.state()["phases"]["01-requirements"]["artifacts"] == [path]


@pytest.mark.req("AC-007b")
def test_the_gate_looks_where_the_handover_says(project: Project) -> None:
    handle = project.start("feature", "add search")

    given = handle.handover("01-requirements")

    phase = handle.state.workflow.by_key["01-requirements"]
    [gate] = [gate for gate in phase.gates if isinstance(gate, ArtifactsGate)]
    assert [path.format(artifact_folder=given.artifact_folder) for path in gate.paths] == [
        f"{given.artifact_path}/{SPEC}"
    ]


@pytest.mark.req("AC-007c")
@pytest.mark.parametrize(("workflow", "phases"), [("feature", FEATURE), ("fix", FIX)])
def test_discovery_is_handed_to_phases_02_and_03_only(
    project: Project, clock: Clock, workflow: str, phases: tuple[str, ...]
) -> None:
    handle = project.start(workflow, "add search", discovery=Discovery(text="a Flask application", at=clock.now))
    given = [handle.handover(phases[0])]

    for _ in phases[1:]:
        handle.finish("done")
        given.append(handle.begin().handover)

    expected = ["a Flask application" if phase in DISCOVERY_PHASES else None for phase in phases]
    assert [handover.discovery for handover in given] == expected
    assert expected.count(None) < len(phases)


@pytest.mark.req("AC-007c")
def test_no_other_shipped_phase_asks_for_discovery() -> None:
    catalogue = Catalogue(Settings())

    asking = {phase.key for name in catalogue.names() for phase in catalogue.workflow(name).phases if phase.discovery}

    assert asking == DISCOVERY_PHASES


@pytest.mark.req("AC-007c")
@pytest.mark.parametrize(("hours", "warned"), [(0, False), (24, False), (24.01, True), (49, True)])
def test_discovery_older_than_a_day_comes_with_a_warning(
    project: Project, clock: Clock, hours: float, warned: bool
) -> None:
    found = Discovery(text="a Flask application", at=clock.now - timedelta(hours=hours))
    handle = project.start("feature", "add search", discovery=found)
    handle.finish("requirements written")

    begun = handle.begin()

    assert begun.handover.discovery == "a Flask application"
    assert [f"{int(hours)} hours old" in warning for warning in begun.warnings] == ([True] if warned else [])


@pytest.mark.req("AC-007d", "TS-013")
def test_a_missing_artifact_warns_and_the_phase_goes_on(project: Project, root: Path, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    path = write(root, f"{handle.handover('01-requirements').artifact_path}/{SPEC}")
    handle.finish("requirements written", artifacts=[path])
    (root / path).unlink()

    begun = handle.begin()
    project.flush()

    assert begun.warnings == (f"01-requirements recorded {path}, which is not there",)
    assert (begun.handover.passed[0].artifacts, begun.handover.passed[0].missing) == ((), (path,))
    assert disk.state()["phases"]["02-impact-analysis"]["status"] == "in_progress"


@pytest.mark.req("AC-007d")
def test_finishing_with_a_missing_artifact_only_warns(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")

    outcome = handle.finish("requirements written", artifacts=[f"docs/{SPEC}"])
    project.flush()

    assert outcome.warnings == (f"artifact docs/{SPEC} is not there",)
    assert disk.state()["phases"]["01-requirements"]["status"] == "completed"
