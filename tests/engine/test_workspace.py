"""The door: one change opens, recovers, adopts, publishes once and collects notices; reading writes nothing."""

import json

import pytest

from detent.core.actor import ActorKind, Channel
from detent.engine.projections.projector import Projector
from detent.engine.workspace import Workspace
from detent.errors import NotFound
from tests.support.project import build_project
from tests.support.values import row


@pytest.fixture
def workspace(tmp_path, clock):
    build_project(tmp_path)
    return Workspace(str(tmp_path), environment={"USER": "ada"}, clock=clock)


@pytest.fixture
def ada(workspace):
    return workspace.actor(Channel.TERMINAL)


@pytest.fixture
def published(monkeypatch):
    """The sessions whose documents were published, in order."""
    names = []
    publish = Projector.publish

    def counted(projector, name, *, overwrite=False):
        names.append(name)
        publish(projector, name, overwrite=overwrite)

    monkeypatch.setattr(Projector, "publish", counted)
    return names


def test_one_change_publishes_once(workspace, ada, published):
    with workspace.change(ada) as project:
        project.start(row("a", "b"), "try it").finish("done")
    published.clear()

    with workspace.change(ada) as project:
        project.session().begin("b")

    assert published == ["WFS-try-it"]


def test_a_change_that_is_refused_still_repairs_documents(workspace, ada, tmp_path):
    with workspace.change(ada) as project:
        project.start(row("a", "b"), "try it")
    (tmp_path / ".workflow" / "state.json").unlink()

    with pytest.raises(NotFound), workspace.change(ada) as project:
        project.session().begin("nowhere")

    assert json.loads((tmp_path / ".workflow" / "state.json").read_text())["current_phase"] == "a"


def test_an_edit_is_adopted_first_and_told(workspace, ada, tmp_path):
    with workspace.change(ada) as project:
        project.start(row("a", "b"), "try it")
    path = tmp_path / ".workflow" / "state.json"
    document = json.loads(path.read_text())
    document["state_version"] += 1
    document["phases"]["a"] |= {"status": "completed", "summary": "by hand"}
    path.write_text(json.dumps(document))

    with workspace.read(ada) as project:
        assert "edited by hand" in workspace.notices.pop()
        assert path.read_text() == json.dumps(document)
    with workspace.change(ada) as project:
        project.session().begin("b")

    assert workspace.notices == ["adopted the edit of state.json"]


def test_inspect_can_stop_a_change_before_anything_is_written(workspace, ada, tmp_path, published):
    with workspace.change(ada) as project:
        project.start(row("a", "b"), "try it")
    published.clear()

    def inspect(project):
        raise NotFound("this is not the place")

    with pytest.raises(NotFound), workspace.change(ada, inspect=inspect):
        pytest.fail("the change went on")

    assert published == []


def test_an_agent_of_a_run_gets_its_own_session(workspace, ada, tmp_path, clock):
    with workspace.change(ada) as project:
        token = project.start(row("a", "b"), "first").state.token("a")
        project.start(row("a", "b"), "second")
    environment = {"DETENT_SESSION": "WFS-first", "DETENT_PHASE": "a", "DETENT_TOKEN": str(token)}
    agent = Workspace(str(tmp_path), environment=environment, clock=clock)

    with agent.read(agent.actor(Channel.TERMINAL)) as project:
        assert project.actor.kind is ActorKind.AGENT
        assert project.session().id == "WFS-first"
        assert project.binding.phase == "a"
