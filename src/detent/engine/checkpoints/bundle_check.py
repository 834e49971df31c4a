"""Whether what a bundle holds makes a session: its journal, the objects that the journal names, and their paths.

That every byte is as it was written says nothing about who wrote it, so nothing here is taken on trust.
"""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from detent.core.path_text import to_text
from detent.core.session.events import Commit, RolledBack, SessionStarted
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session
from detent.core.session.slug import check_session_id
from detent.documents import session as session_document
from detent.documents import task as task_document
from detent.engine.checkpoints import bundle_file
from detent.engine.checkpoints.bundle_file import FILES, JOURNAL, OBJECTS, Reader
from detent.engine.checkpoints.checkpoints import standing
from detent.engine.projections.publish import LEDGER
from detent.errors import Corrupt, DetentError, Refused
from detent.objects.batch import LARGE_BYTES
from detent.objects.manifest_object import Manifests
from detent.objects.walk import NEVER
from detent.store.line import decode_line, encode_line
from detent.store.port import START

#: What Detent makes anew from the journal, in the directory of a session, and trusts.
DERIVED = frozenset(
    {JOURNAL, "snapshot.json", LEDGER, session_document.NAME, f"{task_document.FOLDER}/.published.json"}
)


class Contents(NamedTuple):
    """What a bundle was found to hold, besides its files."""

    session: Session
    #: Contents that are kept as plain files, by digest with the name.
    names: dict[str, str]
    #: The manifests of its checkpoints.
    trees: set[str]


def check_contents(reader: Reader) -> Contents:
    """That the journal is one, and that the objects are exactly those that it needs."""
    for part in reader.header.parts:
        if part.name.removeprefix(FILES).lower() in DERIVED and part.name != JOURNAL:
            raise Corrupt(f"{reader.path} holds {part.name}, which is made from the journal and nothing else")
    manifests = Manifests(_ObjectsOf(reader))
    session: Session | None = None
    needed: set[str] = set()
    trees: set[str] = set()
    names: dict[str, str] = {}
    recorded = ""
    try:
        for commit in commits_of(reader):
            needed.update(archives(commit))
            for position, then in standing(session, commit):
                files = manifests.read(position.event.tree.manifest).files
                declared = {path for state in then.phases.values() for path in state.artifacts}
                for path in declared & files.keys():
                    names.setdefault(files[path].digest, os.path.basename(path))
                trees.add(position.event.tree.manifest)
            session, recorded = evolve(session, commit), commit.state
        for tree in trees:
            needed.update(_of_tree(reader, manifests, tree, names))
    except Corrupt as error:
        raise Corrupt(f"{reader.path}: {error.message}", way_out="export it again") from error
    except DetentError as error:
        raise Corrupt(f"{reader.path} cannot be followed: {error.message}", way_out="export it again") from error
    except (LookupError, ValueError, RecursionError) as error:
        # A journal that nobody has decided: it names phases that its workflow does not have, or the like.
        raise Corrupt(f"{reader.path} cannot be followed: {error!r}", way_out="export it again") from error
    there = {part.sha256 for part in reader.header.parts if part.name.startswith(OBJECTS)}
    if needed != there or session is None:
        odd = sorted(needed ^ there)[:3]
        raise Corrupt(f"{reader.path} does not hold exactly what its journal names: {', '.join(odd)}")
    if fingerprint(session) != recorded:
        raise Corrupt(
            f"replaying {reader.path} gives state {fingerprint(session)}, but its last commit recorded {recorded}",
            way_out=f"read it with Detent {reader.header.written_by}, which wrote it",
        )
    return Contents(session, names, trees)


def check_paths(reader: Reader, contents: Contents, own: Iterable[str]) -> None:
    """A rollback will write these files: none that says how Detent (`own`), version control or an agent works."""
    guarded = {path.lower() for path in own}
    for path in Manifests(_ObjectsOf(reader)).names_since(contents.trees, ""):
        if path.lower() in guarded or NEVER & set(path.lower().split("/")):
            raise Refused(
                f"a checkpoint of {contents.session.id} has {to_text(path)[:200]}, which is not part of any work"
            )


def archives(commit: Commit) -> Iterator[str]:
    """The lists of what rollbacks replaced."""
    for event in commit.events:
        if isinstance(event, RolledBack) and event.archive is not None:
            yield event.archive


def commits_of(reader: Reader) -> Iterator[Commit]:
    """The commits, each line checked against the one before it and the last against the header.

    A store writes them again: a line that would come out otherwise is refused.
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
        raise Corrupt(f"its journal ends at commit {version} and should at {header.commits}")


def _check_first(commit: Commit, session: str) -> None:
    started = commit.events[0] if commit.events else None
    if not isinstance(started, SessionStarted) or started.session != session or check_session_id(session) != session:
        raise Corrupt(f"its journal is not that of {session[:80]!r}")


def _of_tree(reader: Reader, manifests: Manifests, tree: str, names: dict[str, str]) -> Iterator[str]:
    files = manifests.read(tree).files
    directories = {parent for path in files for parent in bundle_file.parents(path)}
    for path, entry in files.items():
        part = OBJECTS + entry.digest
        if entry.kind not in ("f", "x", "l") or path in directories or not bundle_file.is_inside(path):
            raise Corrupt(f"manifest {tree} has {to_text(path)[:200]!r}, which no checkpoint can have")
        if part not in reader or reader.part(part).size != entry.size:
            raise Corrupt(f"the content of {to_text(path)} is missing (object {entry.digest})")
        if entry.size > LARGE_BYTES:
            names.setdefault(entry.digest, os.path.basename(path))
    yield from manifests.named(tree)


class _ObjectsOf:
    """The objects of a bundle, for reading manifests."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, digest: str) -> bytes:
        if OBJECTS + digest not in self._reader:
            raise Corrupt(f"object {digest} is missing")
        return self._reader.read(OBJECTS + digest)
