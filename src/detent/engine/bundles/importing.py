"""Imports the session of a bundle into a project, completely or not at all.

An import first verifies every byte, and then that the content makes a session: a correct digest does not prove who
wrote a bundle. A kill leaves at most unused objects, which the next collection removes, and a hidden directory, which
the next import removes.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from detent.clients.registry import client_files
from detent.core.path_text import from_text, to_text
from detent.core.session.slug import check_session_id
from detent.engine.bundles import bundle_file
from detent.engine.bundles.bundle_file import FILES, OBJECTS, Progress, Reader
from detent.engine.bundles.contents import BundledObjects, Contents, check_contents, commits
from detent.engine.bundles.exporting import WITHOUT_FILES, Bundle, described
from detent.engine.policy import Decision, authorize
from detent.engine.projections.checkpoint_files import is_indexed
from detent.engine.session import SessionHandle
from detent.errors import Conflict, Corrupt, Refused
from detent.objects.manifest_object import Manifests
from detent.objects.walk import NEVER
from detent.store.port import PROJECT, START, SessionFile, Store

if TYPE_CHECKING:
    from detent.engine.project import Project


class WithoutFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The session was imported without the contents of its files."""

    #: Checkpoints up to this commit cannot be restored.
    commits: int


def inspect_bundle(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Bundle:
    """Verify every byte of a bundle and describe its content."""
    with bundle_file.opened(os.fspath(path)) as reader:
        reader.verify(progress)
        check_contents(reader)
        return described(reader.header, reader.digest, reader.size)


def import_session(
    project: "Project",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> SessionHandle:
    """Put the session of a bundle into the project. It does not become the active session.

    A session keeps its id, because its journal seals it: `name` can only repeat that id. If the session exists already,
    that is a `Conflict`, unless it is the same one: then its documents are rebuilt, which completes an interrupted
    import. A bundle with files adds them to the same session that was imported without.
    """
    # The decisions in its journal come with it.
    authorize(project.actor, Decision.IMPORT)
    store = project.store
    with bundle_file.opened(os.fspath(path)) as reader:
        reader.verify(progress)
        contents = check_contents(reader)
        session = reader.header.session
        if name is not None and check_session_id(name) != session:
            raise Refused(
                f"{reader.path} holds the journal of {session}, and a session cannot be renamed",
                way_out="leave the name out; to have both sessions, import it into another project",
            )
        _check_paths(reader, contents, client_files() if project.place.project is None else ())
        epoch = project.checkpoints.captures.epoch()
        if not _is_complete(store, reader):
            _store_objects(project, reader, contents)
            with store.lock(PROJECT):
                project.checkpoints.check_current(epoch)
                if not _is_present(store, reader):
                    _create(store, reader)
                elif reader.header.with_files:
                    _add_files(store, reader)
    project.touched(session)
    project.flush()
    if not is_indexed(store, session):
        # The documents are those of a removed session with the same id, which had more commits.
        project.rebuild()
    return project.session(session)


def without_files(store: Store, session: str) -> WithoutFiles | None:
    """The contents that a session lacks because it was imported without its files; None if it lacks nothing."""
    data = store.get(f"{session}/{WITHOUT_FILES}")
    if data is None:
        return None
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(data, type=WithoutFiles)
    return WithoutFiles(commits=0)


def _check_paths(reader: Reader, contents: Contents, own: Iterable[str]) -> None:
    """Refuse files that configure Detent (`own`), version control or an agent: a rollback would write them."""
    guarded = {path.lower() for path in own}
    for path in chain.from_iterable(Manifests(BundledObjects(reader)).names_since(contents.trees, "")):
        if path.lower() in guarded or NEVER & set(path.lower().split("/")):
            raise Refused(f"a checkpoint of {contents.session.id} holds {to_text(path)[:200]}, which no checkpoint may")


def _is_complete(store: Store, reader: Reader) -> bool:
    """Whether the store has this session, with everything that the bundle holds of it."""
    lacks_files = without_files(store, reader.header.session) is not None
    return _is_present(store, reader) and not (reader.header.with_files and lacks_files)


def _is_present(store: Store, reader: Reader) -> bool:
    """Whether the store has this session; `Conflict` if another session has its id."""
    header = reader.header
    if header.session not in store.sessions():
        return False
    with suppress(Corrupt):
        cursor, more = START, True
        while more:
            _, cursor, torn, more = store.read(header.session, cursor)
        if (cursor.version, cursor.sum, torn) == (header.commits, header.sum, 0):
            return True
    raise _other(reader)


def _other(reader: Reader) -> Conflict:
    return Conflict(
        f"there is already another session {reader.header.session} than the one of {reader.path}, and a session cannot "
        "be renamed",
        way_out="import it into another project, or move the existing session away",
    )


def _store_objects(project: "Project", reader: Reader, contents: Contents) -> None:
    parts = [part for part in reader.header.parts if part.name.startswith(OBJECTS)]
    if not parts:
        return
    with project.checkpoints.captures.storing(contents.session.checkpoint or contents.session.id) as batch:
        for part in parts:
            data = reader.read(part.name)
            if part.sha256 in contents.names:
                batch.add_data_as_file(data, name=contents.names[part.sha256])
            else:
                batch.add(data)


def _create(store: Store, reader: Reader) -> None:
    """Create the session with its files, durably and visible at once. The caller holds PROJECT."""
    lines = commits(reader)
    try:
        store.create(reader.header.session, next(lines), lines, _files(reader))
    except Conflict as error:
        raise _other(reader) from error


def _add_files(store: Store, reader: Reader) -> None:
    """Add the files that an import without them left out. The caller holds PROJECT."""
    session = reader.header.session
    for file, data in _files(reader):
        if store.get(f"{session}/{file.name}") is None:
            store.put(f"{session}/{file.name}", data, durable=True)
    store.delete(f"{session}/{WITHOUT_FILES}")


def _files(reader: Reader) -> Iterator[tuple[SessionFile, bytes]]:
    for part in reader.header.parts:
        if part.name.startswith(FILES):
            yield SessionFile(from_text(part.name.removeprefix(FILES)), part.executable), reader.read(part.name)
    if not reader.header.with_files:
        yield SessionFile(WITHOUT_FILES), msgspec.json.encode(WithoutFiles(commits=reader.header.commits))
