"""Stores and projects in the Postgres of this test process, which is started on first use."""

import atexit
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.postgres_server import PostgresServer, missing
from tests.support.project import UNGATED, build_project

if TYPE_CHECKING:
    from detent.store.postgres.store import PostgresStore

#: The run-time role, with the least privileges.
ROLE = "detent_run"


@cache
def server() -> PostgresServer:
    """The server of this process, with the tables of Detent; skips the test if none can be started."""
    if reason := missing():
        pytest.skip(reason)
    running = PostgresServer().start()
    atexit.register(running.stop)
    prepare(running)
    return running


def prepare(running: PostgresServer, database: str = "postgres") -> str:
    """Make the tables as their owner, and give the run-time role its privileges; returns that role's URL."""
    from detent.store.postgres.migrating import migrate
    from detent.store.postgres.pool import Pool
    from detent.store.postgres.queries import roles_sql

    owner = Pool(running.url(database))
    migrate(owner)
    owner.close()
    if not running.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'"):
        running.execute(f"CREATE ROLE {ROLE} LOGIN")
    for statement in roles_sql().replace(':"role"', ROLE).split(";"):
        if any(line.strip() and not line.startswith("--") for line in statement.splitlines()):
            running.execute(statement, database)
    return running.url(database, user=ROLE)


def server_url() -> str:
    """The URL of the run-time role at the server of this process."""
    return server().url(user=ROLE)


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

    url = url or server_url()
    return PostgresStore(url, project or new_project(url), str(path / ".workflow"))


def with_table(settings: str, url: str, project: str) -> str:
    """The text of detent.toml with the store in it."""
    return f'{settings}\n[store]\nurl = "{url}"\nproject = "{project}"\n'


def shared_project(root: Path, *, url: str | None = None, project: str | None = None, settings: str = UNGATED) -> Path:
    """A project on disk whose journals are in Postgres; with `project`, another checkout of it."""
    url = url or server_url()
    return build_project(root, with_table(settings, url, project or new_project(url)))
