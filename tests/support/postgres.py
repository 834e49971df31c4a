"""Stores and projects in the Postgres of this test process, which is started on first use."""

import atexit
import os
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.postgres_server import PostgresServer, missing
from tests.support.project import UNGATED, build_project

if TYPE_CHECKING:
    from detent.store.postgres.store import PostgresStore

#: Set by `make test-postgres`: the tests that any store must pass run against Postgres too.
WANTED = "DETENT_TEST_POSTGRES"


def is_wanted() -> bool:
    return bool(os.environ.get(WANTED))


@cache
def server() -> PostgresServer:
    """The server of this process, with the tables of Detent; skips the test if none can be started."""
    if reason := missing():
        pytest.skip(reason)
    running = PostgresServer().start()
    atexit.register(running.stop)
    prepare(running.url())
    return running


def prepare(url: str) -> None:
    from detent.store.postgres.migrating import migrate
    from detent.store.postgres.pool import pool_of

    migrate(pool_of(url))


def new_project(url: str) -> str:
    """Add a project to the database; returns its name."""
    from detent.store.postgres.pool import pool_of
    from detent.store.postgres.projects import add_project

    name = f"trial-{uuid.uuid4().hex[:12]}"
    assert add_project(pool_of(url), name)
    return name


def postgres_store(path: Path, project: str | None = None, *, url: str | None = None) -> "PostgresStore":
    """A store with a project of its own, and its views below `path`; another machine of `project` if it is named."""
    from detent.store.postgres.store import PostgresStore

    url = url or server().url()
    return PostgresStore(url, project or new_project(url), str(path / ".workflow"))


def settings(url: str, project: str, others: str = UNGATED) -> str:
    """The text of detent.toml."""
    return f'{others}\n[store]\nurl = "{url}"\nproject = "{project}"\n'


def shared_project(root: Path, *, url: str | None = None, project: str | None = None, others: str = UNGATED) -> Path:
    """A project on disk whose journals are in Postgres; with `project`, another checkout of it."""
    url = url or server().url()
    return build_project(root, settings(url, project or new_project(url), others))
