"""The packages of a monorepo, each with a state of its own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from detent.engine.project import Project, open_project
from detent.errors import NotFound
from tests.support.disk import Disk
from tests.support.project import build_project

SETTINGS = """
default_project = "web-frontend"

[projects.api-service]
path = "services/api"

[projects.web-frontend]
path = "web"
"""
THIRD = "03-architecture"


@pytest.fixture
def monorepo(tmp_path: Path) -> Path:
    (tmp_path / "detent.toml").write_text('gates = "off"\n' + SETTINGS)
    for path in ("services/api/src", "web"):
        (tmp_path / path).mkdir(parents=True)
    build_project(tmp_path)
    return tmp_path


@pytest.fixture
def api(monorepo: Path) -> Iterator[Project]:
    """The API service, at its third phase."""
    with open_project(monorepo, project="api-service") as project:
        handle = project.start("feature", "add search")
        for _ in range(2):
            handle.finish("done")
            handle.begin()
        project.flush()
        yield project


@pytest.fixture
def web(monorepo: Path) -> Iterator[Project]:
    with open_project(monorepo, project="web-frontend") as project:
        yield project


@pytest.mark.req("TS-012")
def test_each_project_has_its_own_state_document(monorepo: Path, api: Project, web: Project) -> None:
    directory = monorepo / ".workflow" / "projects"

    assert Disk(directory / "api-service").state()["current_phase"] == THIRD
    assert not (directory / "web-frontend" / "state.json").exists()
    assert not (monorepo / ".workflow" / "state.json").exists()
    assert (api.place.state, web.place.state) == (str(directory / "api-service"), str(directory / "web-frontend"))


@pytest.mark.req("TS-012")
def test_the_work_of_one_project_does_not_bind_the_other(monorepo: Path, api: Project, web: Project) -> None:
    directory = monorepo / ".workflow" / "projects"
    before = (directory / "api-service" / "state.json").read_bytes()
    with pytest.raises(NotFound, match="no session is active"):
        web.session()

    handle = web.start("fix", "add search")
    handle.finish("traced")
    handle.begin()
    handle.cancel("not wanted after all")
    web.flush()
    api.reconcile()

    assert (directory / "api-service" / "state.json").read_bytes() == before
    assert api.session().state.phases[THIRD].status == "in_progress"
    assert Disk(directory / "web-frontend").history()[0]["status"] == "cancelled"
    assert not (directory / "api-service" / "history.jsonl").exists()


@pytest.mark.req("TS-012")
def test_a_named_project_is_read_whatever_the_default_is(monorepo: Path, api: Project) -> None:
    with open_project(monorepo, project="api-service") as named, open_project(monorepo) as default:
        document = json.loads((Path(named.place.state) / "state.json").read_bytes())

        assert document["active_workflow"]["session_id"] == named.active() == "WFS-add-search"
        assert default.place.project == "web-frontend"
        assert default.active() is None


@pytest.mark.req("TS-012")
@pytest.mark.parametrize(
    ("directory", "project"),
    [("services/api", "api-service"), ("services/api/src", "api-service"), ("web", "web-frontend")],
)
def test_the_directory_chooses_the_project(monorepo: Path, directory: str, project: str) -> None:
    with open_project(monorepo / directory) as opened:
        assert opened.place.project == project


@pytest.mark.req("AC-007e", "TS-012")
def test_artifacts_belong_to_the_directory_of_their_project(monorepo: Path) -> None:
    with open_project(monorepo / "services/api") as project:
        handle = project.start("feature", "add search")
        path = f"{handle.handover('01-requirements').artifact_path}/requirements-spec.md"
        spec = monorepo / "services/api" / path
        spec.parent.mkdir(parents=True)
        spec.write_text("what search must do\n")

        outcome = handle.finish("requirements written", artifacts=[str(spec)])
        begun = handle.begin()

        assert path == "docs/requirements/REQ-0001-add-search/requirements-spec.md"
        assert begun.handover.passed[0].artifacts == (path,)
        assert outcome.warnings == begun.warnings == ()


@pytest.mark.req("AC-007e")
def test_the_file_of_another_project_is_not_taken_for_ones_own(monorepo: Path) -> None:
    path = "docs/requirements/REQ-0001-add-search/requirements-spec.md"
    for elsewhere in ("web", "."):
        (monorepo / elsewhere / path).parent.mkdir(parents=True)
        (monorepo / elsewhere / path).write_text("what another search must do\n")

    with open_project(monorepo, project="api-service") as project:
        handle = project.start("feature", "add search")
        handle.finish("requirements written", artifacts=[path])
        begun = handle.begin()

    assert begun.handover.passed[0].missing == (path,)
    assert begun.warnings == (f"01-requirements recorded {path}, which is not there",)
