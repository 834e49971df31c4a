"""A session as one file: taken out of one project, put into another, whole or not at all.

Everything is verified before anything is touched. A kill leaves at most objects that nothing names, which the next
collection removes, and a hidden directory, which the next try does.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent import __version__
from detent.core.events import CheckpointTaken
from detent.core.guard.protected import CLIENT_FILES
from detent.core.path_text import from_text, to_text
from detent.core.slug import check_session_id
from detent.engine import bundle_file
from detent.engine.bundle_check import DERIVED, Contents, archives, check_contents, check_paths
from detent.engine.bundle_file import FILES, OBJECTS, Header, Part, Progress, Reader, Writer
from detent.engine.checkpoint_files import is_indexed
from detent.engine.handle import SessionHandle
from detent.engine.publish import LEDGER, read_ledger
from detent.engine.publish import digest as digest_of
from detent.errors import Conflict, Corrupt, Refused
from detent.store import disk
from detent.store.files import JOURNAL, FileStore
from detent.store.line import encode_line
from detent.store.port import PROJECT, START, Cursor, Store

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.objects.pack import Objects

_UNFINISHED = ".new-"
_CHUNK = 1 << 20


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was written or looked at."""

    session: str
    commits: int
    objects: int
    files: int
    bytes: int
    digest: str
    #: What stands in the session's directory and is no file, so that it is not part of the bundle.
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
    store = _on_disk(project)
    session = project.session(name).id
    target = os.path.abspath(os.fspath(path))
    if not overwrite and os.path.lexists(target):
        raise _taken(target)
    end, wanted = _named(project, session)
    directory = os.path.join(store.root, session)
    journal = _journal_source(store, session, end)
    objects = [_object_source(project.checkpoints.objects, digest) for digest in sorted(wanted)]
    files, left_out = _session_files(directory, read_ledger(store, f"{session}/{LEDGER}"))
    sources = [journal, *objects, *files]
    header = Header(
        format=bundle_file.FORMAT,
        version=bundle_file.VERSION,
        written_by=__version__,
        session=session,
        commits=end.version,
        sum=end.sum,
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
    store = _on_disk(project)
    with bundle_file.opened(os.fspath(path)) as reader:
        reader.verify(progress)
        found = check_contents(reader)
        session = reader.header.session
        if name is not None and check_session_id(name) != session:
            raise Refused(
                f"the journal in {reader.path} is that of {session}, which cannot be changed without forging it",
                way_out="give it no other name; to have both, import it into another project",
            )
        own = CLIENT_FILES if project.place.project is None else ()
        check_paths(reader, found, own)
        epoch = project.checkpoints.captures.epoch()
        if not _is_here(store, reader):
            _store_objects(project, reader, found)
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


def _named(project: "Project", session: str) -> tuple[Cursor, set[str]]:
    """Where the journal ends, and every object that a checkpoint or an archive of the session needs."""
    cursor, more = START, True
    manifests: set[str] = set()
    found: set[str] = set()
    while more:
        commits, cursor, _, more = project.store.read(session, cursor)
        for commit in commits:
            manifests.update(event.tree.manifest for event in commit.events if isinstance(event, CheckpointTaken))
            found.update(archives(commit))
    for manifest in manifests:
        found.update(project.checkpoints.captures.manifests.named(manifest))
    return cursor, found


def _journal_source(store: Store, session: str, end: Cursor) -> _Source:
    """The journal up to `end`, as the lines that a file has."""
    digest, length = hashlib.sha256(), 0
    for line in _journal_lines(store, session, end):
        digest.update(line)
        length += len(line)

    def copy(fd: int) -> None:
        for line in _journal_lines(store, session, end):
            disk.write_all(fd, line)

    return _Source(Part(JOURNAL, length, digest.hexdigest()), copy)


def _journal_lines(store: Store, session: str, end: Cursor) -> Iterator[bytes]:
    cursor, total = START, START.sum
    while cursor.version < end.version:
        tail = store.read(session, cursor, limit=min(5_000, end.version - cursor.version))
        cursor = tail.end
        for commit in tail.commits:
            line, total = encode_line(commit, total)
            yield line
    if total != end.sum:
        raise Conflict(f"the journal of {session} was changed while it was exported", way_out="repeat the command")


def _object_source(objects: "Objects", digest: str) -> _Source:
    size = objects.size(digest)
    if size is None:
        raise Corrupt(f"object {digest} is missing", way_out="detent checkpoint verify shows what is affected")
    return _Source(Part(OBJECTS + digest, size, digest), lambda fd: objects.copy_to(digest, fd))


def _file_source(path: str, name: str, size: int | None = None) -> _Source:
    """The file, or the first `size` bytes of it. It is read twice, and must be the same both times."""
    with disk.failing_as("read", path):
        status = os.stat(path, follow_symlinks=False)
        length = status.st_size if size is None else size
        digest = hashlib.sha256()
        for chunk in _read(path, length):
            digest.update(chunk)
    executable = bool(status.st_mode & stat.S_IXUSR)
    part = Part(name, length, digest.hexdigest(), executable)

    def copy(fd: int) -> None:
        again = hashlib.sha256()
        for chunk in _read(path, length):
            again.update(chunk)
            disk.write_all(fd, chunk)
        if again.hexdigest() != part.sha256:
            raise Conflict(f"{path} was changed while it was exported", way_out="repeat the command")

    return _Source(part, copy)


def _read(path: str, length: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while length and (chunk := file.read(min(length, _CHUNK))):
            yield chunk
            length -= len(chunk)


def _session_files(directory: str, ledger: Mapping[str, Collection[str]]) -> tuple[list[_Source], tuple[str, ...]]:
    """What people and agents put beside the journal, and evidence; then what is neither file nor directory.

    What Detent wrote, by the `ledger`, it writes again; but not what somebody has made of it.
    """
    found: list[_Source] = []
    left_out: list[str] = []
    for place, folders, names in os.walk(directory):
        for entry in (*names, *(folder for folder in folders if os.path.islink(os.path.join(place, folder)))):
            full = os.path.join(place, entry)
            inside = os.path.relpath(full, directory)
            if inside in DERIVED or entry.endswith(disk.TEMPORARY):
                continue
            if not stat.S_ISREG(os.lstat(full).st_mode):
                left_out.append(to_text(inside))
            elif not _is_written(full, ledger.get(os.path.join(os.path.basename(directory), inside), ())):
                found.append(_file_source(full, FILES + to_text(inside)))
    return sorted(found, key=lambda source: source.part.name), tuple(sorted(left_out))


def _is_written(path: str, digests: Collection[str]) -> bool:
    if not digests:
        return False
    with open(path, "rb") as file:
        return digest_of(file.read()) in digests


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


def _is_here(store: FileStore, reader: Reader) -> bool:
    """Whether the very same session is; `Conflict` if another has its id."""
    header = reader.header
    if not os.path.lexists(os.path.join(store.root, header.session)):
        return False
    if header.session in store.sessions():
        with disk.failing_as("read", header.session):
            size = reader.part(JOURNAL).size
            with open(os.path.join(store.root, header.session, JOURNAL), "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                same = digest == reader.part(JOURNAL).sha256 and file.tell() == size
        if same:
            return True
    raise Conflict(
        f"there is already a session {header.session}, and it is not the one of {reader.path}; it cannot have another "
        "name, because a session keeps its id",
        way_out="import it into another project, or move the one that is here away",
    )


def _store_objects(project: "Project", reader: Reader, found: Contents) -> None:
    parts = [part for part in reader.header.parts if part.name.startswith(OBJECTS)]
    if not parts:
        return
    with disk.failing_as("create", project.checkpoints.root):
        os.makedirs(project.checkpoints.root, exist_ok=True)
    with project.checkpoints.objects.batch(found.session.checkpoint or found.session.id) as batch:
        for part in parts:
            data = reader.read(part.name)
            if part.sha256 in found.names:
                batch.add_data_as_file(data, name=found.names[part.sha256])
            else:
                batch.add(data)


def _create(store: FileStore, reader: Reader) -> None:
    """The directory with all that belongs in it, visible at once and durable. The caller holds PROJECT."""
    session = reader.header.session
    path, unfinished = (os.path.join(store.root, prefix + session) for prefix in ("", _UNFINISHED))
    with disk.failing_as("create", path):
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            os.makedirs(unfinished)
            for part in reader.header.parts:
                if not part.name.startswith(OBJECTS):
                    _write_file(reader, part, os.path.join(unfinished, _inside(part.name)))
            for place, _, _ in os.walk(unfinished, topdown=False):
                disk.sync_directory(place)
            os.rename(unfinished, path)
            try:
                disk.sync_directory(store.root)
            except OSError:
                with suppress(OSError):
                    os.rename(path, unfinished)
                raise
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def _inside(name: str) -> str:
    return from_text(name.removeprefix(FILES))


def _write_file(reader: Reader, part: Part, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o777 if part.executable else 0o666)
    try:
        for chunk in reader.chunks(part.name):
            disk.write_all(fd, chunk)
        disk.sync(fd)
    finally:
        os.close(fd)


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


def _on_disk(project: "Project") -> FileStore:
    if not isinstance(project.store, FileStore):
        raise Refused("only sessions that are kept in files can be exported and imported")
    return project.store
