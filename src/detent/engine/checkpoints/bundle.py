"""Bundles: exports a session into one file and imports it into another project, completely or not at all.

An import first verifies every byte, and then that the content makes a session: a correct digest does not prove who
wrote a bundle. A kill leaves at most unused objects, which the next collection removes, and a hidden directory, which
the next import removes.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent import __version__
from detent.clients.registry import client_files
from detent.core.path_text import from_text, is_inside, to_text
from detent.core.session.events import CheckpointTaken, Commit, RolledBack, SessionStarted
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session
from detent.core.session.slug import check_session_id
from detent.documents import SESSION_DOCUMENT
from detent.documents import task as task_document
from detent.engine.checkpoints import bundle_file
from detent.engine.checkpoints.bundle_file import FILES, JOURNAL, OBJECTS, Header, Part, Progress, Reader
from detent.engine.checkpoints.checkpoints import sessions_at
from detent.engine.policy import Decision, authorize
from detent.engine.projections.checkpoint_files import is_indexed
from detent.engine.projections.publish import LEDGER, read_ledger
from detent.engine.projections.publish import digest as digest_of
from detent.engine.session import SessionHandle
from detent.errors import Conflict, Corrupt, DetentError, Refused
from detent.objects.manifest_object import Manifests
from detent.objects.pack import LARGE_BYTES
from detent.objects.walk import NEVER
from detent.store import disk
from detent.store.line import decode_line, encode_line
from detent.store.port import PROJECT, START, SessionFile, Store

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.objects.pack import Objects

#: Files in the directory of a session that Detent computes from the journal, and trusts.
_DERIVED = frozenset({JOURNAL, "snapshot.json", LEDGER, SESSION_DOCUMENT, f"{task_document.FOLDER}/.published.json"})


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was written or inspected."""

    session: str
    commits: int
    objects: int
    files: int
    bytes: int
    digest: str
    #: Links and other special files beside the journal, which are not part of the bundle.
    left_out: tuple[str, ...] = ()


def export_session(
    project: "Project",
    name: str | None,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Bundle:
    """Write the session with all its checkpoints to a new file; without a name the active session.

    The same session gives the same bytes. Commits that are made meanwhile are not included.
    """
    session = project.session(name).id
    target = os.path.abspath(os.fspath(path))
    if not overwrite and os.path.lexists(target):
        raise _exists(target)
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
        parts=[source.part for source in sources],
    )
    digest, size = _write(target, header, sources, overwrite=overwrite, progress=progress)
    return _bundle(header, digest, size, left_out)


def inspect_bundle(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Bundle:
    """Verify every byte of a bundle and describe its content."""
    with bundle_file.opened(os.fspath(path)) as reader:
        reader.verify(progress)
        _check_contents(reader)
        return _bundle(reader.header, reader.digest, reader.size)


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
    import.
    """
    # The decisions in its journal come with it.
    authorize(project.actor, Decision.IMPORT)
    store = project.store
    with bundle_file.opened(os.fspath(path)) as reader:
        reader.verify(progress)
        contents = _check_contents(reader)
        session = reader.header.session
        if name is not None and check_session_id(name) != session:
            raise Refused(
                f"{reader.path} holds the journal of {session}, and a session cannot be renamed",
                way_out="leave the name out; to have both sessions, import it into another project",
            )
        _check_paths(reader, contents, client_files() if project.place.project is None else ())
        epoch = project.checkpoints.captures.epoch()
        if not _is_present(store, reader):
            _store_objects(project, reader, contents)
            with store.lock(PROJECT):
                project.checkpoints.check_current(epoch)
                if not _is_present(store, reader):
                    _create(store, reader)
    project.touched(session)
    project.flush()
    if not is_indexed(store, session):
        # The documents are those of a removed session with the same id, which had more commits.
        project.rebuild()
    return project.session(session)


def _bundle(header: Header, digest: str, size: int, left_out: tuple[str, ...] = ()) -> Bundle:
    names = [part.name for part in header.parts]
    return Bundle(
        session=header.session,
        commits=header.commits,
        objects=sum(name.startswith(OBJECTS) for name in names),
        files=sum(name.startswith(FILES) for name in names),
        bytes=size,
        digest=digest,
        left_out=left_out,
    )


# Export


class _Source(NamedTuple):
    part: Part
    copy: Callable[[int], None]


class _Line(NamedTuple):
    commit: Commit
    data: bytes
    sum: str


def _lines(store: Store, session: str) -> Iterator[_Line]:
    """The lines of the journal, in the encoding that all stores share."""
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
        objects.update(_archives(line.commit))
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


def _archives(commit: Commit) -> Iterator[str]:
    """The listings of the files that rollbacks replaced."""
    for event in commit.events:
        if isinstance(event, RolledBack) and event.archive is not None:
            yield event.archive


def _object_source(objects: "Objects", digest: str) -> _Source:
    size = objects.size(digest)
    if size is None:
        raise Corrupt(f"object {digest} is missing", way_out="detent checkpoint verify shows the affected files")
    return _Source(Part(OBJECTS + digest, size, digest), lambda fd: objects.copy_to(digest, fd))


def _session_files(store: Store, session: str) -> tuple[list[_Source], tuple[str, ...]]:
    """The files that people and agents put beside the journal, and evidence; then the names of special files.

    Documents that Detent wrote, by the ledger, are left out unless they were edited: the import writes them again.
    """
    ledger = read_ledger(store, f"{session}/{LEDGER}")
    sources: list[_Source] = []
    left_out: list[str] = []
    for file in store.session_files(session):
        name = f"{session}/{file.name}"
        if file.name in _DERIVED:
            continue
        if not file.is_document:
            left_out.append(to_text(file.name))
        elif (data := store.get(name)) is not None and digest_of(data) not in ledger.get(name, ()):
            part = Part(FILES + to_text(file.name), len(data), hashlib.sha256(data).hexdigest(), file.executable)
            sources.append(_Source(part, partial(_copy_document, store, name, part.sha256)))
    return sorted(sources, key=lambda source: source.part.name), tuple(sorted(left_out))


def _copy_document(store: Store, name: str, sha256: str, fd: int) -> None:
    """Read the document again, so that not all of them are in memory at once; it must be unchanged."""
    data = store.get(name)
    if data is None or hashlib.sha256(data).hexdigest() != sha256:
        raise Conflict(f"{store.location(name)} was changed while it was exported", way_out="repeat the command")
    disk.write_all(fd, data)


def _write(
    target: str, header: Header, sources: list[_Source], *, overwrite: bool, progress: Progress | None
) -> tuple[str, int]:
    directory, name = os.path.split(target)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}{disk.TEMPORARY}")
    with disk.failing_as("write", target, way_out="nothing was exported; fix the problem and retry"):
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, disk.PRIVATE_FILE)
        try:
            try:
                written = bundle_file.write(fd, header, (source.copy for source in sources), progress)
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
            raise _exists(target) from None
        except OSError:
            # No hard links here. A process that writes the same name at this moment loses its file.
            if os.path.lexists(target):
                raise _exists(target) from None
        else:
            return
    os.replace(temporary, target)


def _exists(target: str) -> Conflict:
    return Conflict(f"{target} exists already", way_out="choose another name, or use --overwrite")


# Import


class _Contents(NamedTuple):
    session: Session
    #: Contents that are kept as plain files: their names by digest.
    names: dict[str, str]
    #: The manifests of the checkpoints.
    trees: set[str]


def _check_contents(reader: Reader) -> _Contents:
    """Check that the journal can be replayed, and that the objects are exactly those that it names."""
    for part in reader.header.parts:
        if part.name.removeprefix(FILES).lower() in _DERIVED and part.name != JOURNAL:
            raise Corrupt(f"{reader.path} holds {part.name}, which Detent computes from the journal")
    manifests = Manifests(_BundledObjects(reader))
    session: Session | None = None
    needed: set[str] = set()
    trees: set[str] = set()
    names: dict[str, str] = {}
    recorded = ""
    try:
        for commit in _commits(reader):
            needed.update(_archives(commit))
            for position, then in sessions_at(session, commit):
                files = manifests.read(position.event.tree.manifest).files
                declared = {path for state in then.phases.values() for path in state.artifacts}
                for path in declared & files.keys():
                    names.setdefault(files[path].digest, os.path.basename(path))
                trees.add(position.event.tree.manifest)
            session, recorded = evolve(session, commit), commit.state
        for tree in trees:
            needed.update(_tree_objects(reader, manifests, tree, names))
    except Corrupt as error:
        raise Corrupt(f"{reader.path}: {error.message}", way_out="export it again") from error
    except DetentError as error:
        raise Corrupt(f"{reader.path} cannot be replayed: {error.message}", way_out="export it again") from error
    except (LookupError, ValueError, RecursionError) as error:
        # A forged journal: it names phases that its workflow does not have, or the like.
        raise Corrupt(f"{reader.path} cannot be replayed: {error!r}", way_out="export it again") from error
    present = {part.sha256 for part in reader.header.parts if part.name.startswith(OBJECTS)}
    if needed != present or session is None:
        differing = ", ".join(sorted(needed ^ present)[:3])
        raise Corrupt(f"{reader.path} does not hold exactly the objects that its journal names: {differing}")
    if fingerprint(session) != recorded:
        raise Corrupt(
            f"replaying {reader.path} gives state {fingerprint(session)}, but its last commit recorded {recorded}",
            way_out=f"read it with Detent {reader.header.written_by}, which wrote it",
        )
    return _Contents(session, names, trees)


def _check_paths(reader: Reader, contents: _Contents, own: Iterable[str]) -> None:
    """Refuse files that configure Detent (`own`), version control or an agent: a rollback would write them."""
    guarded = {path.lower() for path in own}
    for path in chain.from_iterable(Manifests(_BundledObjects(reader)).names_since(contents.trees, "")):
        if path.lower() in guarded or NEVER & set(path.lower().split("/")):
            raise Refused(f"a checkpoint of {contents.session.id} holds {to_text(path)[:200]}, which no checkpoint may")


def _commits(reader: Reader) -> Iterator[Commit]:
    """The commits. Each line is checked against the one before it, and the last against the header.

    The store encodes them again, so a line in another encoding is refused.
    """
    header = reader.header
    version, total, pending = 0, START.sum, b""
    for chunk in reader.chunks(JOURNAL):
        *bodies, pending = (pending + chunk).split(b"\n")
        for body in bodies:
            line, previous = body + b"\n", total
            commit, total = decode_line(line, previous, version + 1, header.session)
            version += 1
            if encode_line(commit, previous)[0] != line:
                raise Corrupt(f"line {version} of its journal is not in the form that this Detent writes")
            if version == 1:
                _check_first(commit, header.session)
            yield commit
    if pending or (version, total) != (header.commits, header.sum) or not version:
        raise Corrupt(f"its journal ends at commit {version} and should end at {header.commits}")


def _check_first(commit: Commit, session: str) -> None:
    started = commit.events[0] if commit.events else None
    if not isinstance(started, SessionStarted) or started.session != session or check_session_id(session) != session:
        raise Corrupt(f"its journal is not that of {session[:80]!r}")


def _tree_objects(reader: Reader, manifests: Manifests, tree: str, names: dict[str, str]) -> Iterator[str]:
    """The objects of a manifest, whose entries are checked."""
    files = manifests.read(tree).files
    directories = {parent for path in files for parent in bundle_file.parents(path)}
    for path, entry in files.items():
        part = OBJECTS + entry.digest
        if (
            entry.kind not in ("f", "x", "l")
            or entry.mode not in range(0o1000)
            or path in directories
            or not is_inside(path)
        ):
            raise Corrupt(f"manifest {tree} has the impossible entry {to_text(path)[:200]!r}")
        if part not in reader.parts or reader.parts[part].size != entry.size:
            raise Corrupt(f"the content of {to_text(path)} is missing (object {entry.digest})")
        if entry.size > LARGE_BYTES:
            names.setdefault(entry.digest, os.path.basename(path))
    yield from manifests.named(tree)


class _BundledObjects:
    """The objects of a bundle, for reading manifests."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, digest: str) -> bytes:
        if OBJECTS + digest not in self._reader.parts:
            raise Corrupt(f"object {digest} is missing")
        return self._reader.read(OBJECTS + digest)


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


def _store_objects(project: "Project", reader: Reader, contents: _Contents) -> None:
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
    commits = _commits(reader)
    files = (
        (SessionFile(from_text(part.name.removeprefix(FILES)), part.executable), reader.read(part.name))
        for part in reader.header.parts
        if part.name.startswith(FILES)
    )
    try:
        store.create(reader.header.session, next(commits), commits, files)
    except Conflict as error:
        raise _other(reader) from error
