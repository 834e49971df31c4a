"""Who stands for the work of a run: the agent and its model, and never the account that started the run."""

import pytest

from detent.core.run.agent_event import Started
from detent.core.session.describe import event_lines
from detent.core.session.phase_state import Worker
from detent.render.report_facts import work_of
from tests.support.scripted_run import GATED, ROW, Cast, broken, done, scenes

MODEL = Started(conversation="1", model="m-5", version="1.2")


@pytest.fixture
def scene(tmp_path):
    with scenes(tmp_path / "shop") as make:
        yield make


def with_model(*ends):
    """An agent that says its model, and ends its turns one after the other in these ways."""
    left = iter(ends)
    return Cast(lambda turn, stopping: (MODEL, next(left, done())))


def lines_of(scene):
    return [(commit.by, line) for commit in scene.handle.log() for line in event_lines(commit.events)]


@pytest.mark.parametrize("phases", [ROW, GATED], ids=["without gates", "with gates"])
def test_a_turn_is_credited_to_the_agent_and_its_model(scene, phases):
    one = scene(phases)
    (one.root / "ok").touch()

    one.run(with_model())

    lines = lines_of(one)
    assert ("actor", "actor (m-5) finished its turn at a") in lines
    assert ("actor", "actor (m-5) finished its turn at b") in lines


def test_nothing_that_a_run_did_is_credited_to_the_account_that_started_it(scene):
    one = scene()

    one.run(with_model())

    by = [commit.by for commit in one.handle.log()]
    assert by[0] == "tester"
    assert set(by[1:]) == {"run", "actor"}
    assert {note.agent for note in one.session.notes} == {"tester", "run", "actor"}


def test_a_failed_turn_is_credited_too(scene):
    one = scene('["a"]')

    one.run(with_model(broken()))

    assert ("actor", "actor (m-5) failed its turn at a") in lines_of(one)
    assert [(work.worker, work.turns) for work in work_of(one.handle.log())] == [
        (Worker(agent="actor", model="m-5", version="1.2"), 2)
    ]


def test_an_agent_with_a_role_is_named_with_it(scene):
    one = scene('["x", {key="a", agent="architect"}]')

    one.run(with_model())

    assert ("run", "launched actor as architect for a") in lines_of(one)
