"""Chooses the store of a project: records it in `detent.toml`, and refuses to leave sessions behind."""

import os
import secrets
from typing import NamedTuple

from detent.config import place as places
from detent.config.place import Place
from detent.config.settings import StoreSettings
from detent.config.store_table import write_store
from detent.core.actor import Actor
from detent.core.session.slug import slugify
from detent.engine.policy import Decision, authorize
from detent.engine.stores import database_store, file_store, prepare_database
from detent.errors import Invalid, Refused
from detent.store.address import check_address, is_address
from detent.store.port import START, Store

#: The word for the store in files of the project.
FILES = "files"
MAX_NAME = 40


class Chosen(NamedTuple):
    url: str | None
    project: str
    #: Whether it is another store than before.
    is_new: bool


def choose_store(root: str, store: str, name: str | None, actor: Actor) -> Chosen:
    """Make `store`, a URL or `files`, the store of the project at `root`.

    `name` is the name of the project in the database; a new one gets a name of its own.
    """
    before = places.read_settings(root).store
    if store != FILES and not is_address(store):
        raise Invalid(f"{store} is no store", way_out=f"give {FILES} or postgresql://USER@HOST:PORT/DATABASE")
    if store == FILES:
        chosen = StoreSettings()
    else:
        project = name or before.project or f"{slugify(os.path.basename(root))[:MAX_NAME] or 'project'}-{_suffix()}"
        chosen = StoreSettings(url=check_address(store), project=project)
        prepare_database(store, project)
    if chosen != before:
        for place in _places(root):
            _check_nothing_is_left(open_named(place, before), open_named(place, chosen), store, actor)
        write_store(root, chosen.url, chosen.project or "")
    return Chosen(chosen.url, chosen.project or "", chosen != before)


def open_named(place: Place, settings: StoreSettings) -> Store:
    return database_store(place, settings) if settings.url is not None else file_store(place)


def _places(root: str) -> list[Place]:
    packages = places.read_settings(root).projects
    return [places.find(root, project=name)[0] for name in packages] or [places.at_root(root)]


def _check_nothing_is_left(before: Store, after: Store, store: str, actor: Actor) -> None:
    sessions = before.sessions()
    if not sessions:
        return
    # Else an agent could leave the gates of its session behind.
    authorize(actor, Decision.STORE)
    there = after.sessions()
    missing = [name for name in sessions if name not in there or _end(before, name) != _end(after, name)]
    if missing:
        raise Refused(
            f"{len(missing)} sessions are not in the new store, or not as far: {', '.join(missing[:5])}",
            way_out=f"detent store copy {'URL' if before.is_shared else FILES} {store}, and then this again",
        )


def _end(store: Store, name: str) -> tuple[int, str]:
    cursor, more = START, True
    while more:
        _, cursor, _, more = store.read(name, cursor)
    return cursor.version, cursor.sum


def _suffix() -> str:
    return secrets.token_hex(3)
