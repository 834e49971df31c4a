"""A session as one file: taken out of one project, put into another, whole or not at all.

Everything is verified before anything is touched. A kill leaves at most objects that nothing names, which the next
collection removes, and a hidden directory, which the next try does.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent import __version__
from detent.clients.registry import client_files
from detent.core.path_text import from_text, to_text
from detent.core.session.events import CheckpointTaken, Commit
from detent.core.session.slug import check_session_id
from detent.engine.checkpoints import bundle_file
from detent.engine.checkpoints.bundle_check import DERIVED, Contents, archives, check_contents, check_paths, commits_of
from detent.engine.checkpoints.bundle_file import FILES, JOURNAL, OBJECTS, Header, Part, Progress, Reader, Writer
from detent.engine.projections.checkpoint_files import is_indexed
from detent.engine.projections.publish import LEDGER, read_ledger
from detent.engine.projections.publish import digest as digest_of
from detent.engine.session import SessionHandle
from detent.errors import Conflict, Corrupt, Refused
from detent.store import disk
from detent.store.line import encode_line
from detent.store.port import PROJECT, START, SessionFile, Store

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.objects.pack import Objects


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was written or looked at."""

    session: str
    commits: int
    objects: int
    files: int
    bytes: int
    digest: str
    #: Links and the like beside the journal, which are not part of the bundle.
    left_out: tuple[str, ...] = ()


class _Source(NamedTuple):
    part: Part
    copy: Callable[[int], None]


def export_session(
    project: "Project",
    name: str | None,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Bundle:
    """Write the session with all its checkpoints to one new file; without a name the active session.

    The same session makes the same bytes. What is committed meanwhile is not part of it.
    """
    session = project.session(name).id
    target = os.path.abspath(os.fspath(path))
    if not overwrite and os.path.lexists(target):
        raise _taken(target)
    journal, last, wanted = _journal(project, session)
    objects = [_object_source(project.checkpoints.objects, digest) for digest in sorted(wanted)]
    files, left_out = _session_files(project.store, session)
    sources = [journal, *objects, *files]
    header = Header(
        format=bundle_file.FORMAT,
        version=bundle_file.VERSION,
        written_by=__version__,
        session=session,
        commits=last.commit.version,
        sum=last.sum,
        objects=len(objects),
        files=len(files),
        parts=[source.part for source in sources],
    )
    digest, size = _write(target, header, sources, overwrite=overwrite, progress=progress)
    return _bundle(header, digest, size, left_out)


def inspect_bundle(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Bundle:
    """What the bundle holds, every byte of it verified."""
    with bundle_file.opened(os.fspath(path)) as reader:
        reader.verify(progress)
        check_contents(reader)
        return _bundle(reader.header, reader.digest, reader.size)


def import_session(
    project: "Project",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> SessionHandle:
    """Put the session of a bundle into the project. It does not become the active one.

    A session keeps its id, which its journal states and seals: `name` may repeat it and nothing else. One that is here
    already is a `Conflict`, unless it is this very one; then its documents are made good, which finishes an import that
    was interrupted.
    """
    store = project.store
    with bundle_file.opened(os.fspath(path)) as reader:
        reader.verify(progress)
        contents = check_contents(reader)
        session = reader.header.session
        if name is not None and check_session_id(name) != session:
            raise Refused(
                f"the journal in {reader.path} is that of {session}, which cannot be changed without forging it",
                way_out="give it no other name; to have both, import it into another project",
            )
        own = client_files() if project.place.project is None else ()
        check_paths(reader, contents, own)
        epoch = project.checkpoints.captures.epoch()
        if not _is_here(store, reader):
            _store_objects(project, reader, contents)
            with store.lock(PROJECT):
                project.checkpoints.check_current(epoch)
                if not _is_here(store, reader):
                    _create(store, reader)
    project.touched(session)
    project.flush()
    if not is_indexed(store, session):
        # What is there is of one of this id that was removed, and further than this one has come.
        project.rebuild()
    return project.session(session)


# Out


class _Line(NamedTuple):
    commit: Commit
    data: bytes
    sum: str


def _lines(store: Store, session: str) -> Iterator[_Line]:
    """The journal as the lines that every store agrees on."""
    cursor, total, more = START, START.sum, True
    while more:
        commits, cursor, _, more = store.read(session, cursor)
        for commit in commits:
            data, total = encode_line(commit, total)
            yield _Line(commit, data, total)
        if total != cursor.sum:
            raise Corrupt(f"the journal of {session} is not in the form that this Detent writes")


def _journal(project: "Project", session: str) -> tuple[_Source, _Line, set[str]]:
    """The journal, its last line, and every object that a checkpoint or an archive of the session needs."""
    size, digest, last = 0, hashlib.sha256(), None
    manifests: set[str] = set()
    objects: set[str] = set()
    for line in _lines(project.store, session):
        size, last = size + len(line.data), line
        digest.update(line.data)
        manifests.update(event.tree.manifest for event in line.commit.events if isinstance(event, CheckpointTaken))
        objects.update(archives(line.commit))
    if last is None:
        raise Corrupt(f"the journal of {session} is empty")
    for manifest in manifests:
        objects.update(project.checkpoints.captures.manifests.named(manifest))
    end = last.commit.version

    def copy(fd: int) -> None:
        for line in _lines(project.store, session):
            disk.write_all(fd, line.data)
            if line.commit.version == end:
                return

    return _Source(Part(JOURNAL, size, digest.hexdigest()), copy), last, objects


def _object_source(objects: "Objects", digest: str) -> _Source:
    size = objects.size(digest)
    if size is None:
        raise Corrupt(f"object {digest} is missing", way_out="detent checkpoint verify shows what is affected")
    return _Source(Part(OBJECTS + digest, size, digest), lambda fd: objects.copy_to(digest, fd))


def _session_files(store: Store, session: str) -> tuple[list[_Source], tuple[str, ...]]:
    """The files that people and agents put beside the journal, and evidence; then what is no document.

    Documents that Detent wrote, by the ledger, are written again by an import, unless they were edited since.
    """
    ledger = read_ledger(store, f"{session}/{LEDGER}")
    sources: list[_Source] = []
    left_out: list[str] = []
    for file in store.session_files(session):
        name = f"{session}/{file.name}"
        if file.name in DERIVED:
            continue
        if not file.is_document:
            left_out.append(to_text(file.name))
        elif (data := store.get(name)) is not None and digest_of(data) not in ledger.get(name, ()):
            part = Part(FILES + to_text(file.name), len(data), hashlib.sha256(data).hexdigest(), file.executable)
            sources.append(_Source(part, partial(_copy_document, store, name, part.sha256)))
    return sorted(sources, key=lambda source: source.part.name), tuple(sorted(left_out))


def _copy_document(store: Store, name: str, sha256: str, fd: int) -> None:
    """Reads the document again, so that not all of them are in memory; it must be the same."""
    data = store.get(name)
    if data is None or hashlib.sha256(data).hexdigest() != sha256:
        raise Conflict(f"{store.location(name)} was changed while it was exported", way_out="repeat the command")
    disk.write_all(fd, data)


def _write(
    target: str, header: Header, sources: list[_Source], *, overwrite: bool, progress: Progress | None
) -> tuple[str, int]:
    directory, name = os.path.split(target)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}{disk.TEMPORARY}")
    with disk.failing_as("write", target, way_out="nothing was exported; mend that and try again"):
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            try:
                written = Writer(fd, progress).write(header, (source.copy for source in sources))
                disk.sync(fd)
            finally:
                os.close(fd)
            _place(temporary, target, overwrite=overwrite)
            disk.sync_directory(directory)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    return written


def _place(temporary: str, target: str, *, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise _taken(target) from None
        except OSError:
            # No hard links here; somebody who writes the same name in this moment loses.
            if os.path.lexists(target):
                raise _taken(target) from None
        else:
            return
    os.replace(temporary, target)


def _taken(target: str) -> Conflict:
    return Conflict(f"{target} is there already", way_out="choose another name, or use --overwrite")


# In


def _is_here(store: Store, reader: Reader) -> bool:
    """True if the store has this very session; `Conflict` if another one has its id."""
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
        f"there is already a session {reader.header.session}, and it is not the one of {reader.path}; it cannot have "
        "another name, because a session keeps its id",
        way_out="import it into another project, or move the one that is here away",
    )


def _store_objects(project: "Project", reader: Reader, contents: Contents) -> None:
    parts = [part for part in reader.header.parts if part.name.startswith(OBJECTS)]
    if not parts:
        return
    with disk.failing_as("create", project.checkpoints.root):
        os.makedirs(project.checkpoints.root, exist_ok=True)
    with project.checkpoints.objects.batch(contents.session.checkpoint or contents.session.id) as batch:
        for part in parts:
            data = reader.read(part.name)
            if part.sha256 in contents.names:
                batch.add_data_as_file(data, name=contents.names[part.sha256])
            else:
                batch.add(data)


def _create(store: Store, reader: Reader) -> None:
    """The session with all that belongs to it, visible at once and durable. The caller holds PROJECT."""
    commits = commits_of(reader)
    files = (
        (SessionFile(from_text(part.name.removeprefix(FILES)), part.executable), reader.read(part.name))
        for part in reader.header.parts
        if part.name.startswith(FILES)
    )
    try:
        store.create(reader.header.session, next(commits), commits, files)
    except Conflict as error:
        raise _other(reader) from error


def _bundle(header: Header, digest: str, size: int, left_out: tuple[str, ...] = ()) -> Bundle:
    return Bundle(
        session=header.session,
        commits=header.commits,
        objects=header.objects,
        files=header.files,
        bytes=size,
        digest=digest,
        left_out=left_out,
    )
