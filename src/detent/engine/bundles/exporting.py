"""Exports a session into one file. The same session and the same files give the same bytes.

Text was redacted when it entered the journal. Without files, only the journal, digests and names of files and tests are
exported. The contents of files are exported as they are, so a bundle with files is as private as they are.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent import __version__
from detent.core.path_text import to_text
from detent.core.session.events import CheckpointTaken, Commit, RolledBack
from detent.documents import SESSION_DOCUMENT
from detent.documents import task as task_document
from detent.engine.bundles import bundle_file
from detent.engine.bundles.bundle_file import FILES, JOURNAL, OBJECTS, Header, Part, Progress
from detent.engine.bundles.git_tree import git_tree
from detent.engine.gates.stored import EVIDENCE
from detent.engine.projections.publish import LEDGER, read_ledger
from detent.engine.projections.publish import digest as digest_of
from detent.errors import Conflict, Corrupt
from detent.store import disk
from detent.store.line import encode_line
from detent.store.port import START, Store

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.objects.pack import Objects

#: The document of a session that was imported without the contents of its files.
WITHOUT_FILES = ".without-files.json"
#: Files in the directory of a session that Detent computes from the journal, and trusts.
DERIVED = frozenset(
    {JOURNAL, "snapshot.json", LEDGER, SESSION_DOCUMENT, f"{task_document.FOLDER}/.published.json", WITHOUT_FILES}
)


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was written or inspected."""

    session: str
    commits: int
    with_files: bool
    objects: int
    files: int
    bytes: int
    digest: str
    git: bundle_file.GitTree | None = None
    #: Links and other special files beside the journal, which are not part of the bundle.
    left_out: tuple[str, ...] = ()


def export_session(
    project: "Project",
    name: str | None,
    path: str | os.PathLike[str],
    *,
    with_files: bool = False,
    progress: Progress | None = None,
) -> Bundle:
    """Write the session to a file; without a name the active session.

    It holds the journal with its receipts and proofs, the manifests of the checkpoints, and the evidence of gates;
    `with_files` adds the contents of files. Commits that are made meanwhile are not included. An older bundle at the
    path is replaced, any other file is not.
    """
    session = project.session(name).id
    target = os.path.abspath(os.fspath(path))
    if os.path.lexists(target) and not bundle_file.is_bundle(target):
        raise Conflict(f"{target} exists already and is no bundle", way_out="choose another name, or move it away")
    journal, last, wanted = _journal(project, session, with_files=with_files)
    objects = [_object_source(project.checkpoints.objects, digest) for digest in sorted(wanted)]
    files, left_out = _session_files(project.store, session, with_files=with_files)
    sources = [journal, *objects, *files]
    header = Header(
        format=bundle_file.FORMAT,
        version=bundle_file.VERSION,
        written_by=__version__,
        session=session,
        with_files=with_files,
        git=git_tree(project.place.base, project.notices),
        commits=last.commit.version,
        sum=last.sum,
        parts=[source.part for source in sources],
    )
    digest, size = _write(target, header, sources, progress)
    return described(header, digest, size, left_out)


def described(header: Header, digest: str, size: int, left_out: tuple[str, ...] = ()) -> Bundle:
    names = [part.name for part in header.parts]
    return Bundle(
        session=header.session,
        commits=header.commits,
        with_files=header.with_files,
        objects=sum(name.startswith(OBJECTS) for name in names),
        files=sum(name.startswith(FILES) for name in names),
        bytes=size,
        digest=digest,
        git=header.git,
        left_out=left_out,
    )


class _Source(NamedTuple):
    part: Part
    copy: Callable[[int], None]


class Line(NamedTuple):
    """A commit, its line in the journal, and the sum of the line."""

    commit: Commit
    data: bytes
    sum: str


def lines(store: Store, session: str) -> Iterator[Line]:
    """The lines of the journal, in the encoding that all stores share."""
    cursor, total, more = START, START.sum, True
    while more:
        commits, cursor, _, more = store.read(session, cursor)
        for commit in commits:
            data, total = encode_line(commit, total)
            yield Line(commit, data, total)
        if total != cursor.sum:
            raise Corrupt(f"the journal of {session} is not in the form that this Detent writes")


def _journal(project: "Project", session: str, *, with_files: bool) -> tuple[_Source, Line, set[str]]:
    """The journal, its last line, and the objects of its checkpoints: manifests; with files also contents, archives."""
    size, digest, last = 0, hashlib.sha256(), None
    manifests: set[str] = set()
    objects: set[str] = set()
    for line in lines(project.store, session):
        size, last = size + len(line.data), line
        digest.update(line.data)
        manifests.update(event.tree.manifest for event in line.commit.events if isinstance(event, CheckpointTaken))
        objects.update(archives(line.commit) if with_files else ())
    if last is None:
        raise Corrupt(f"the journal of {session} is empty")
    known = project.checkpoints.captures.manifests
    for manifest in manifests:
        objects.update(known.named(manifest) if with_files else known.rests_on(manifest))
    end = last.commit.version

    def copy(fd: int) -> None:
        for line in lines(project.store, session):
            disk.write_all(fd, line.data)
            if line.commit.version == end:
                return

    return _Source(Part(JOURNAL, size, digest.hexdigest()), copy), last, objects


def archives(commit: Commit) -> Iterator[str]:
    """The listings of the files that rollbacks replaced."""
    for event in commit.events:
        if isinstance(event, RolledBack) and event.archive is not None:
            yield event.archive


def _object_source(objects: "Objects", digest: str) -> _Source:
    size = objects.size(digest)
    if size is None:
        raise Corrupt(f"object {digest} is missing", way_out="detent checkpoint verify shows the affected files")
    return _Source(Part(OBJECTS + digest, size, digest), lambda fd: objects.copy_to(digest, fd))


def _session_files(store: Store, session: str, *, with_files: bool) -> tuple[list[_Source], tuple[str, ...]]:
    """The evidence of gates; with files also those that people and agents put beside the journal, and the tests of the
    start. Then the names of special files.

    Documents that Detent wrote, by the ledger, are left out unless they were edited: the import writes them again.
    """
    ledger = read_ledger(store, f"{session}/{LEDGER}")
    sources: list[_Source] = []
    left_out: list[str] = []
    for file in store.session_files(session):
        name = f"{session}/{file.name}"
        if file.name in DERIVED or not (with_files or file.name.startswith(f"{EVIDENCE}/")):
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


def _write(target: str, header: Header, sources: list[_Source], progress: Progress | None) -> tuple[str, int]:
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
            os.replace(temporary, target)
            disk.sync_directory(directory)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    return written
