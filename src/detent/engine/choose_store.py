"""Chooses the store of a project: records it in `detent.toml`, and refuses to leave sessions behind."""

import os
import secrets
from typing import NamedTuple

from detent.config import place as places
from detent.config.place import Place
from detent.config.settings import StoreSettings
from detent.config.store_table import write_store
from detent.core.actor import Actor
from detent.core.counted import counted
from detent.core.session.slug import slugify
from detent.engine.policy import Decision, authorize
from detent.engine.stores import database_store, file_store, prepare_database
from detent.errors import Invalid, Refused
from detent.store.address import check_address, is_address
from detent.store.port import START, Store
from detent.store.shared_names import PROJECT_ID

#: The word for the store in files of the project.
FILES = "files"
MAX_NAME = 40
#: Digits of the id of a project in its name.
_SUFFIX = 6


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
        project = name or before.project or default_name(root, _id_of(root, before))
        chosen = StoreSettings(url=check_address(store), project=project)
        prepare_database(store, project)
    if chosen != before:
        for place in _places(root):
            _check_nothing_is_left(open_named(place, before), open_named(place, chosen), store, actor)
        write_store(root, chosen.url, chosen.project or "")
    return Chosen(chosen.url, chosen.project or "", chosen != before)


def default_name(root: str, known: str) -> str:
    """The name of a project in a database. One that has an id gets the same name each time."""
    suffix = known[:_SUFFIX] or secrets.token_hex(_SUFFIX // 2)
    return f"{slugify(os.path.basename(root))[:MAX_NAME] or 'project'}-{suffix}"


def _id_of(root: str, settings: StoreSettings) -> str:
    return (open_named(places.at_root(root), settings).get(PROJECT_ID) or b"").decode("ascii", "replace").strip()


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
            f"{counted(len(missing), 'session')} {'is' if len(missing) == 1 else 'are'} not in the new store, "
            f"or not as far: {', '.join(missing[:5])}",
            way_out=f"detent store copy {'URL' if before.is_shared else FILES} {store}, and then this again",
        )


def _end(store: Store, name: str) -> tuple[int, str]:
    cursor, more = START, True
    while more:
        _, cursor, _, more = store.read(name, cursor)
    return cursor.version, cursor.sum
