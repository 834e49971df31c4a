"""Scenes for the tests of runs. The tests of the sandbox run only when they are named: `make test-sandbox`."""

from pathlib import Path

import pytest

from tests.support.run_process import Scene
from tests.support.scripted_run import scenes

SANDBOX = "test_sandbox"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [Path(argument.split("::")[0]).name for argument in config.args]
    is_left_out = collection_path.name.startswith(SANDBOX) and collection_path.name not in named
    return True if is_left_out else None


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
