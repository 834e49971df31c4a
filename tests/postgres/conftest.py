"""The tests of this folder start a Postgres. They run only when the folder is named: `make test-postgres`."""

import shutil
import tempfile
from pathlib import Path

import pytest

from detent.doctor.finding import ERROR
from detent.doctor.invariants import check
from detent.engine.project import open_project
from tests.support.postgres import new_project, prepare, server_url, shared_project
from tests.support.postgres_server import PostgresServer, missing
from tests.support.workers import forked

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


def pytest_collection_modifyitems(items):
    if reason := missing():
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"skipped: {reason}"))


@pytest.fixture
def context():
    return forked("detent.store.postgres.store", "psycopg")


@pytest.fixture
def machines():
    """Makes checkouts of one project, as several machines have them. The doctor finds no error on any of them."""
    top, made = Path(tempfile.mkdtemp(prefix="detent-machines-", dir="/dev/shm")), []
    project = new_project(server_url())

    def make(count, **options):
        made.extend(shared_project(top / f"machine{number}", project=project, **options) for number in range(count))
        return made

    yield make
    for root in made:
        with open_project(root, actor="tester") as opened:
            opened.reconcile()
        with open_project(root, actor="tester") as opened:
            assert [found for found in check(opened) if found.severity == ERROR] == []
    shutil.rmtree(top)


@pytest.fixture
def own_server():
    """A server that a test may kill."""
    running = PostgresServer().start()
    prepare(running)
    yield running
    running.stop()
