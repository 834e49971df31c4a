"""`store`: copies journals between stores, and prepares a database."""

from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, Usage
from detent.cli.verb import VerbGroup, verb
from detent.core.counted import counted

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.store.port import Store

_FILES = "files"


@verb("copy", example="detent store copy files postgresql://detent_run@db.example.org/detent")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--name", metavar="NAME", help="The name of the project in the database, if detent.toml has none.")
def copy_sessions(request: Request, source: str, target: str, *, name: str | None) -> None:
    """Copy every session of this project to another store.

    FROM and TO are files, for the files of this project, or the URL of a database. Journals, evidence, protected files,
    summaries and notes are copied, and both stores are read whole and compared. Nothing is removed. A session that TO
    has already is continued from where it ends there. Then make TO the store of the project: detent init --store TO.
    """
    from detent.engine.store_copy import copy_store

    if source == target:
        raise Usage("FROM and TO are the same store", way_out="detent store copy --help")
    with request.changing(adopt=False) as project:
        stores = [_store(project, each, name, is_target=each is target) for each in (source, target)]
        progress = request.progress("copying sessions")
        copied = copy_store(*stores, actor=project.actor, now=project.clock(), progress=progress)
        database = next((each for each in (target, source) if each != _FILES), "")
        label = name or project.settings.store.project or _name_of(project)
    option = "" if target == _FILES else f" --store-project {label}"
    summary = (
        f"in both stores: {counted(copied.sessions, 'session')}; "
        f"copied: {counted(copied.commits, 'commit')} and {counted(copied.documents, 'document')}"
    )
    request.answer(
        lambda canvas: "\n".join([summary, *canvas.commands([f"detent init --store {target}{option}"])]),
        {**copied._asdict(), "database": database, "project": label},
    )


@verb("migrate", example="detent store migrate postgresql://detent_owner@db.example.org/detent")
@click.argument("url")
def migrate_tables(request: Request, url: str) -> None:
    """Make the tables in a database, or bring them up to date.

    The role of the URL owns the tables. Let another one work with them: detent store roles.
    """
    from detent.engine.stores import migrate_database
    from detent.store.address import check_address, described

    applied = migrate_database(check_address(url))
    text = f"applied {', '.join(applied)}" if applied else "the tables are up to date"
    request.answer(
        lambda canvas: "\n".join(canvas.wrap(f"{described(url)}: {text}")),
        {"applied": applied},
    )


@verb("roles", example="detent store roles | psql -v role=detent_run -d detent")
def print_roles(request: Request) -> None:
    """Print the SQL that gives the run-time role its privileges.

    The role may add commits and sessions, and can neither change nor remove one.
    """
    from detent.engine.stores import role_statements

    text = role_statements()
    request.answer(lambda _: text.rstrip(), {"sql": text})


store_verb = VerbGroup(
    "store",
    copy_sessions,
    migrate_tables,
    print_roles,
    help="Copy journals to another store, or prepare a database.",
    example="detent store copy files postgresql://detent_run@db.example.org/detent",
)


def _store(project: "Project", store: str, name: str | None, *, is_target: bool) -> "Store":
    from detent.config.settings import StoreSettings
    from detent.engine.choose_store import open_named
    from detent.engine.stores import prepare_database
    from detent.store.address import check_address

    if store == _FILES:
        return open_named(project.place, StoreSettings())
    url = check_address(store)
    chosen = name or project.settings.store.project or _name_of(project)
    if is_target:
        prepare_database(url, chosen)
    return open_named(project.place, StoreSettings(url=url, project=chosen))


def _name_of(project: "Project") -> str:
    """A name that stays the same when an interrupted copy is repeated."""
    from detent.engine.choose_store import default_name

    return default_name(project.place.root, project.id)
