"""The tests of this folder run real clients. They are collected only when the folder is named: `make test-clients`."""

import tempfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.clients.client import CLIENTS, Client, ClientUnavailable, cache, install
from tests.clients.recorder import Recorder
from tests.clients.server import ModelServer
from tests.clients.stage import Stage

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture(scope="session")
def installed():
    """The command of every client, or why it cannot be had; each is tried once."""
    commands: dict[str, tuple[str, ...] | str] = {}

    def command(kind: ModuleType) -> tuple[str, ...]:
        if kind.NAME not in commands:
            try:
                commands[kind.NAME] = install(kind)
            except ClientUnavailable as why:
                commands[kind.NAME] = str(why)
        found = commands[kind.NAME]
        if isinstance(found, str):
            pytest.skip(found)
        return found

    return command


@pytest.fixture
def tmp_path():
    """A directory that is not for temporary files, as homes and projects are: the sandbox of a run has its own /tmp."""
    stages = cache() / "stages"
    stages.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=stages, ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


@pytest.fixture(params=CLIENTS, ids=lambda kind: kind.NAME)
def kind(request):
    return request.param


@pytest.fixture
def stage(kind, installed, server, tmp_path):
    """A client on its stage. When the test is over, no script was too short and nothing was tried outside."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    yield Stage(Client(kind, installed(kind), home), project, server, Recorder(tmp_path / "hook"))
    assert server.problems == []
    assert server.outward == []
