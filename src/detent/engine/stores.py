"""The composition root: the only place that chooses and constructs a store."""

import os
from collections.abc import Callable

from detent.config import place as places
from detent.config.place import Place
from detent.config.settings import StoreSettings
from detent.errors import Invalid
from detent.store.files import FileStore
from detent.store.port import Store
from detent.store.second_copy import Registration, SecondCopies
from detent.store.state_home import lost_sessions, registered_roots, state_home


def open_store(place: Place, settings: StoreSettings | None = None) -> Store:
    """The store that the settings of the project name; by default its files.

    `settings` are those of `detent.toml` if they are not given.
    """
    if settings is None:
        settings = places.read_settings(place.root).store
    return database_store(place, settings) if settings.url is not None else file_store(place)


def database_store(place: Place, settings: StoreSettings) -> Store:
    """The journals in Postgres, with views in the state directory of this machine."""
    from detent.store.address import check_address  # noqa: PLC0415 - most projects have no database
    from detent.store.postgres.store import PostgresStore  # noqa: PLC0415

    url = check_address(str(settings.url))
    if not settings.project:
        raise Invalid(
            f"[store] in {places.CONFIG} of {place.root} has a url and no project",
            way_out="detent init --store URL writes both",
        )
    name = settings.project if place.project is None else f"{settings.project}/{place.project}"
    return PostgresStore(url, name, place.state, _registration(place), tell=_tell)


def tell_waiting(tell: Callable[[str], object]) -> None:
    """Give a line for a person to `tell` while a command waits for a database."""
    global _tell  # noqa: PLW0603 - one process, one person
    _tell = tell


_tell: Callable[[str], object] | None = None


def prepare_database(url: str, project: str) -> list[str]:
    """Make the tables that the database lacks, and add the project; returns the names of the migrations."""
    from detent.store.postgres.migrating import check_schema, has_schema, migrate  # noqa: PLC0415
    from detent.store.postgres.pool import pool_of  # noqa: PLC0415
    from detent.store.postgres.projects import add_project  # noqa: PLC0415

    pool = pool_of(url)
    applied = [] if has_schema(pool) else migrate(pool)
    check_schema(pool)
    add_project(pool, project)
    return applied


def migrate_database(url: str) -> list[str]:
    """Apply the migrations that the database lacks; returns their names."""
    from detent.store.postgres.migrating import migrate  # noqa: PLC0415
    from detent.store.postgres.pool import pool_of  # noqa: PLC0415

    return migrate(pool_of(url))


def role_statements() -> str:
    """The SQL that gives the run-time role its privileges."""
    from detent.store.postgres.queries import roles_sql  # noqa: PLC0415

    return roles_sql()


def file_store(place: Place) -> Store:
    """The journals in files, with second copies in the user's state directory."""
    state, registration = places.at_root(place.root).state, _registration(place)
    return FileStore(place.state, SecondCopies(registration, os.path.relpath(place.state, state).removeprefix(".")))


def _registration(place: Place) -> Registration:
    return Registration(_home(), place.root, places.at_root(place.root).state)


def lost_project(start: str, below: str = "") -> tuple[str, list[str]] | None:
    """The nearest project around `start` whose whole state is gone, and its sessions; only `below` that directory."""
    directory, home = os.path.realpath(start), _home()
    while home and directory != below:
        sessions = lost_sessions(home, directory, places.at_root(directory).state)
        if sessions and not _has_database(directory):
            return directory, sessions
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return None


def _has_database(root: str) -> bool:
    """Whether the journals are in a database: a state directory holds views then, and can be made again."""
    try:
        return places.read_settings(root).store.url is not None
    except Invalid:
        return False


def project_roots() -> list[str]:
    """The roots of the projects that this user has worked on and that are still there."""
    return [root for root in registered_roots(_home()) if os.path.isdir(places.at_root(root).state)]


def user_state() -> str:
    """Detent's directory in the user's state; empty if the environment names none."""
    return _home()


def _home() -> str:
    return state_home(os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", ""))


# What follows is about this checkout, so it is in files wherever the journals are.


def checkout_store(root: str) -> Store:
    """The installed clients, and the failures of their hooks."""
    return FileStore(places.at_root(root).state)


def scratch_store(directory: str) -> Store:
    """A store for the time of one command, in a temporary directory that the caller removes."""
    return FileStore(directory)


def worktree_store(root: str) -> Store:
    """The records of the worktrees."""
    return FileStore(places.worktrees(root))
