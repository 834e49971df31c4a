import pytest

from tests.support.run_process import Scene
from tests.support.scripted_run import scenes

ONE_PHASE = '{ key = "a" }'


@pytest.fixture
def play(tmp_path):
    """A scene in which the script is the agent."""
    made = []

    def make(script, phases=ONE_PHASE, **settings):
        made.append(Scene(tmp_path / "project", phases, script, **settings))
        return made[-1]

    yield make
    for one in made:
        one.clear()


@pytest.fixture
def scene(tmp_path):
    """Makes projects whose agents are functions of the test."""
    with scenes(tmp_path) as make:
        yield make
