"""Opening projects, choosing packages of a monorepo, starting sessions, importing state documents."""

import json
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings

from detent.config.catalogue import Catalogue
from detent.config.settings import Settings
from detent.core.session.events import PhaseSkipped
from detent.core.session.status import Status
from detent.doctor.invariants import check
from detent.documents.state import running
from detent.engine.project import init_project, open_project
from detent.errors import DetentError, Invalid, NotFound, Refused
from tests.support.arbitrary import documents
from tests.support.project import build_project
from tests.support.values import TickingClock, row, workflow

MONOREPO = """
default_project = "shop"

[projects.shop]
path = "packages/shop"

[projects.shop-admin]
path = "packages/shop/admin"

[projects.api]
path = "services/api"
"""


def test_the_state_of_a_project_is_ignored_by_git_without_init_too(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "detent.toml").write_text('gates = "off"\n')

    with open_project(tmp_path, actor="tester") as project:
        project.start("fix", "mend it")

    status = subprocess.run(["git", "status", "--short"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert status.stdout == "?? detent.toml\n"


@pytest.fixture
def monorepo(tmp_path, monkeypatch):
    monkeypatch.delenv("DETENT_PROJECT", raising=False)
    (tmp_path / "detent.toml").write_text('gates = "off"\n' + MONOREPO)
    for path in ("packages/shop/admin/src", "packages/shop-front", "services/api"):
        (tmp_path / path).mkdir(parents=True)
    return tmp_path


# Where a project is


def test_a_directory_becomes_a_project_once(tmp_path):
    assert init_project(tmp_path)[1] is True
    assert init_project(tmp_path)[1] is False

    with open_project(tmp_path) as project:
        assert project.active() is None
        assert check(project) == []


def test_a_project_is_found_from_any_directory_inside(project, tmp_path):
    inside = tmp_path / "a/b/c"
    inside.mkdir(parents=True)
    project.start(row("a"), "try it")

    with open_project(inside) as other:
        assert other.active() == "WFS-try-it"


def test_outside_of_every_project_the_way_in_is_told(tmp_path):
    with pytest.raises(NotFound, match="no Detent project") as refusal:
        open_project(tmp_path)

    assert refusal.value.way_out == "detent init"


@pytest.mark.parametrize(
    ("inside", "chosen"),
    [
        (".", "shop"),
        ("packages/shop", "shop"),
        ("packages/shop/admin/src", "shop-admin"),
        ("packages/shop-front", "shop"),
        ("services/api", "api"),
    ],
)
def test_a_package_is_chosen_by_the_longest_path_around_the_directory(monorepo, inside, chosen):
    with open_project(monorepo / inside) as project:
        assert project.place.project == chosen


def test_a_name_counts_more_than_the_environment_and_that_more_than_the_directory(monorepo, monkeypatch):
    monkeypatch.setenv("DETENT_PROJECT", "api")

    with open_project(monorepo / "packages/shop") as project:
        assert project.place.project == "api"
    with open_project(monorepo / "packages/shop", project="shop-admin") as project:
        assert project.place.project == "shop-admin"


def test_packages_have_sessions_of_their_own(monorepo):
    for name in ("shop", "api"):
        with open_project(monorepo, project=name, actor="tester", clock=TickingClock()) as project:
            project.start(workflow(prefix="REQ"), "try it").finish("done", artifacts=["docs/x.md"])

    for name in ("shop", "api"):
        with open_project(monorepo, project=name, actor="tester") as project:
            assert project.store.sessions() == ["WFS-try-it"]
            assert project.session().state.work_id == "REQ-0001"
            assert check(project) == []
            assert (monorepo / f".workflow/projects/{name}/state.json").exists()


def test_artifacts_are_paths_inside_the_package(monorepo):
    with open_project(monorepo, project="api", actor="tester") as project:
        handle = project.start(row("a", "b"), "try it")

        outcome = handle.finish("done", artifacts=[str(monorepo / "services/api/docs/x.md"), "./docs//y.md"])

        assert outcome.session.phases["a"].artifacts == ("docs/x.md", "docs/y.md")
        assert outcome.warnings == ("artifact docs/x.md is not there", "artifact docs/y.md is not there")
        with pytest.raises(Invalid, match="leads out of the project"):
            handle.redo("a") and handle.finish("done", artifacts=[str(monorepo / "packages/shop/x.md")])


@pytest.mark.parametrize("name", ["nowhere", "../etc"])
def test_a_package_that_is_not_there_is_told_with_those_that_are(monorepo, name):
    with pytest.raises(NotFound, match="shop, shop-admin, api"):
        open_project(monorepo, project=name)


def test_a_package_name_without_a_monorepo_is_told(project, tmp_path):
    with pytest.raises(NotFound, match="has no"):
        open_project(tmp_path, project="shop")


@pytest.mark.parametrize("path", ["/etc", "../outside", "a/../../b"])
def test_a_package_outside_of_the_repository_is_refused(tmp_path, path):
    (tmp_path / "detent.toml").write_text(f'[projects.x]\npath = "{path}"\n')

    with pytest.raises(Invalid, match="leads out of the repository"):
        open_project(tmp_path)


# Starting


def test_starting_makes_the_session_active_with_its_first_phase_in_progress(project, tmp_path):
    handle = project.start(row("a", "b"), "Add OAuth login")

    assert handle.id == project.active() == "WFS-add-oauth-login"
    assert handle.state.phases["a"].status is Status.IN_PROGRESS
    document = json.loads((tmp_path / ".workflow/state.json").read_text())
    assert document["current_phase"] == document["active_workflow"]["current_phase"] == "a"


def test_a_second_session_pauses_the_first_and_keeps_it(project):
    first = project.start(row("a"), "first")

    project.start(row("a"), "second")

    assert project.active() == "WFS-second"
    assert first.finish("done").session.status == "completed"


def test_numbers_count_per_prefix_and_are_never_used_again(project):
    for prefix, expected in (("REQ", 1), ("BUG", 1), ("REQ", 2), ("REQ", 3), ("BUG", 2)):
        handle = project.start(workflow(prefix=prefix), "try it")
        assert handle.state.number == expected
        handle.cancel("next")


def test_a_name_that_is_taken_is_refused_and_a_free_one_proposed(project):
    project.start(row("a"), "try it", name="mine")

    with pytest.raises(Invalid, match="already a session WFS-mine") as refusal:
        project.start(row("a"), "try it", name="mine")

    assert refusal.value.way_out == "use --name mine-002"


def test_a_start_that_is_refused_leaves_nothing(project, tmp_path):
    graph = workflow({"a": ("b",), "b": ("a",)})

    with pytest.raises(Invalid, match="circle"):
        project.start(graph, "try it")
    with pytest.raises(Invalid, match="empty"):
        project.start(row("a"), "  ")
    with pytest.raises(NotFound, match="no workflow featur"):
        project.start("featur", "try it")

    assert project.store.sessions() == []
    assert list((tmp_path / ".workflow").glob(".active-*")) == []


def test_a_directory_in_the_way_of_a_session_is_left_alone(project, tmp_path):
    (tmp_path / ".workflow/WFS-try-it").mkdir()
    (tmp_path / ".workflow/WFS-try-it/notes.txt").write_text("mine")

    with pytest.raises(DetentError, match="WFS-try-it"):
        project.start(row("a"), "try it")

    assert list((tmp_path / ".workflow").glob(".active-*")) == []
    assert (tmp_path / ".workflow/WFS-try-it/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", Catalogue(Settings()).names())
def test_every_workflow_can_be_started_in_every_size_and_done_to_the_end(project, name):
    sizes = [None, *project.catalogue.workflow(name).sizes]

    for size in sizes:
        handle = project.start(name, f"{name} {size}", size=size)
        while handle.state.status == "active":
            if not handle.state.with_status(Status.IN_PROGRESS):
                handle.begin()
            handle.finish("done")
        skipped = [event for commit in handle.log() for event in commit.events if isinstance(event, PhaseSkipped)]
        assert len(skipped) == (len(handle.state.workflow.sizes[size]) if size else 0)
    project.flush()

    assert len(project.history()) == len(sizes)


@pytest.mark.parametrize("bad", ["\ud800", "x" * 5_000])
def test_an_actor_that_no_journal_could_hold_is_refused_in_words(tmp_path, bad):
    build_project(tmp_path)

    with pytest.raises(Invalid):
        open_project(tmp_path, actor=bad)


def test_without_a_session_the_way_to_one_is_told(project):
    with pytest.raises(NotFound, match="no session is active") as refusal:
        project.session()
    with pytest.raises(NotFound, match="there is no session WFS-nowhere"):
        project.session("nowhere")

    assert refusal.value.way_out == 'detent start WORKFLOW "TASK"'


# Importing


STATE = {
    "state_version": 12,
    "current_phase": "06-implementation",
    "active_workflow": {
        "type": "feature",
        "description": "Add login",
        "phases": ["01-requirements", "06-implementation", "13-test-deploy"],
        "current_phase": "06-implementation",
        "phase_status": {"01-requirements": "completed", "06-implementation": "in_progress"},
        "artifact_prefix": "REQ",
        "artifact_folder": "REQ-0007-login",
        "counter_used": 7,
        "their_own": {"deep": [1, 2]},
    },
    "phases": {
        "01-requirements": {"status": "completed", "summary": "asked", "artifacts": ["docs/r.md"]},
        "06-implementation": {"status": "in_progress", "started": "2026-02-01T10:00:00Z", "timing": {"retries": 2}},
    },
    "their_setting": True,
}


def test_an_imported_session_stands_where_the_document_says_and_goes_on_from_there(project):
    handle = project.import_state(STATE, source="state.json")

    state = handle.state
    assert [str(phase.status) for phase in state.phases.values()] == ["completed", "in_progress", "pending"]
    assert list(state.phases)[-1] == "12-test-deploy"
    assert (state.work_id, state.folder, state.phases["06-implementation"].attempt) == ("REQ-0007", "REQ-0007-login", 3)
    handle.finish("done")
    assert handle.begin().phase == "12-test-deploy"


def test_what_the_document_held_besides_is_given_back(project, tmp_path):
    handle = project.import_state(STATE, source="state.json")
    project.flush()

    document = json.loads((tmp_path / ".workflow/state.json").read_text())
    assert document["their_setting"] is True
    assert document["active_workflow"]["their_own"] == {"deep": [1, 2]}
    assert document["state_version"] == 13
    assert document["active_workflow"].pop("journal")["version"] > 0
    assert document == json.loads(json.dumps(running(handle.state) | {"workflow_history": []}))


def test_a_document_that_was_written_and_imported_again_says_the_same(project, tmp_path):
    handle = project.start("feature", "Add login")
    handle.finish("asked everybody", artifacts=["docs/r.md"])
    handle.begin()
    written = running(handle.state)

    again = project.import_state(json.loads(json.dumps(written)), source="elsewhere")
    back = running(again.state)

    for key in ("phases", "current_phase", "active_agent"):
        assert back[key] == written[key]
    differing = {key for key, value in written["active_workflow"].items() if back["active_workflow"][key] != value}
    assert differing <= {"session_id"}
    assert back["state_version"] > written["state_version"]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({}, "no active workflow"),
        ([], "no active workflow"),
        (None, "no active workflow"),
        ({"active_workflow": {"phases": []}}, "no active workflow"),
        ({"active_workflow": {"phases": ["a b"]}}, "make no workflow"),
        (
            {"active_workflow": {"phases": ["a", "b"], "phase_status": {"a": "pending", "b": "completed"}}},
            "contradicts itself",
        ),
    ],
)
def test_a_document_that_makes_no_session_is_refused_and_leaves_nothing(project, document, reason):
    with pytest.raises(Invalid, match=reason):
        project.import_state(document, source="state.json")

    assert project.store.sessions() == []


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(document=documents)
def test_whatever_a_document_holds_it_is_imported_or_refused_in_words(document, tmp_path_factory):
    directory = tmp_path_factory.mktemp("any")
    build_project(directory)

    with open_project(directory, actor="tester", clock=TickingClock()) as project:
        try:
            project.import_state(document, source="state.json")
        except DetentError as refusal:
            assert refusal.message  # noqa: PT017
            assert project.store.sessions() == []
        project.flush()

        assert [finding for finding in check(project) if finding.invariant != "I5"] == []


@pytest.mark.parametrize("number", [1e308, float("inf"), float("nan"), -5, 2**70, 1.5, "7", True])
@pytest.mark.parametrize("place", ["state_version", "counter_used", "retries"])
def test_numbers_that_no_counter_could_hold_are_imported_or_refused_in_words(project, place, number):
    document = json.loads(json.dumps(STATE))
    match place:
        case "state_version":
            document["state_version"] = number
        case "counter_used":
            document["active_workflow"]["counter_used"] = number
        case "retries":
            document["phases"]["06-implementation"]["timing"]["retries"] = number

    try:
        project.import_state(document, source="state.json")
    except Invalid:
        assert project.store.sessions() == []


@pytest.mark.parametrize("text", ["lone \ud800 surrogate", "nul \0 here", "x" * 100_000])
@pytest.mark.parametrize("place", ["description", "type", "artifact_folder", "summary", "their_own", "git_branch"])
def test_texts_that_no_journal_could_hold_are_imported_or_refused_in_words(project, place, text):
    document = json.loads(json.dumps(STATE))
    match place:
        case "summary":
            document["phases"]["01-requirements"]["summary"] = text
        case "git_branch":
            document["active_workflow"]["git_branch"] = {"name": text}
        case _:
            document["active_workflow"][place] = text

    try:
        project.import_state(document, source="state.json")
    except (Invalid, Refused):
        assert project.store.sessions() == []
