"""The contents of a bundle: its commits, its manifests, and whether they make a session."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from detent.core.path_text import is_inside, to_text
from detent.core.session.events import Commit, SessionStarted
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session
from detent.core.session.slug import check_session_id
from detent.engine.bundles import bundle_file
from detent.engine.bundles.bundle_file import FILES, JOURNAL, OBJECTS, Reader
from detent.engine.bundles.exporting import DERIVED, archives
from detent.engine.checkpoints.checkpoints import sessions_at
from detent.errors import Corrupt, DetentError
from detent.objects.manifest_object import Manifests
from detent.objects.pack import LARGE_BYTES
from detent.store.line import decode_line, encode_line
from detent.store.port import START


class Contents(NamedTuple):
    session: Session
    #: Contents that are kept as plain files: their names by digest.
    names: dict[str, str]
    #: The manifests of the checkpoints.
    trees: set[str]


def check_contents(reader: Reader) -> Contents:
    """Check that the journal can be replayed, and that the objects are exactly those that it names."""
    for part in reader.header.parts:
        if part.name.removeprefix(FILES).lower() in DERIVED and part.name != JOURNAL:
            raise Corrupt(f"{reader.path} holds {part.name}, which Detent computes from the journal")
    manifests = Manifests(BundledObjects(reader))
    session: Session | None = None
    needed: set[str] = set()
    trees: set[str] = set()
    names: dict[str, str] = {}
    recorded = ""
    try:
        for commit in commits(reader):
            needed.update(archives(commit) if reader.header.with_files else ())
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
    return Contents(session, names, trees)


def commits(reader: Reader) -> Iterator[Commit]:
    return (commit for commit, _ in lines(reader))


def lines(reader: Reader) -> Iterator[tuple[Commit, str]]:
    """The commits, each with the sum of its line. Each line is checked against the one before it, and the last against
    the header.

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
            yield commit, total
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
        if not reader.header.with_files:
            continue
        if part not in reader.parts or reader.parts[part].size != entry.size:
            raise Corrupt(f"the content of {to_text(path)} is missing (object {entry.digest})")
        if entry.size > LARGE_BYTES:
            names.setdefault(entry.digest, os.path.basename(path))
    yield from manifests.named(tree) if reader.header.with_files else manifests.rests_on(tree)


class BundledObjects:
    """The objects of a bundle, for reading manifests."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, digest: str) -> bytes:
        if OBJECTS + digest not in self._reader.parts:
            raise Corrupt(f"object {digest} is missing")
        return self._reader.read(OBJECTS + digest)
