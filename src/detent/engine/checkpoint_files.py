"""The checkpoint documents of a session, kept in step with its journal.

The index says how far it has come, so that only what was taken since is written; without it everything is.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from detent.core.events import Commit
from detent.core.evolve import evolve
from detent.core.manifest import Manifest
from detent.core.session import Session
from detent.documents.checkpoint import INDEX, Position, document, file_name, summary
from detent.engine.checkpoints import commits, positions_of, standing
from detent.engine.publish import UNREADABLE, encode
from detent.engine.replica import Replica
from detent.store.port import Store

#: Of each run the index names the last ones; the others are found by their files, and by the journal.
MAX_INDEXED = 1_000
MAX_INDENTED = 256 * 1024

Files = Callable[[str], Manifest]
Step = tuple[Session | None, Commit]


class _Run(msgspec.Struct, kw_only=True):
    #: The journal version up to which all checkpoints have their files.
    version: int = 0
    count: int = 0
    checkpoints: list[dict[str, Any]] = []


class _Index(msgspec.Struct, kw_only=True):
    """The runs of all sessions; each is read only where it is about that one."""

    runs: dict[str, msgspec.Raw] = {}

    def of(self, session: str) -> _Run:
        found = self.runs.get(session)
        try:
            return _decode_run(found) if found is not None else _Run()
        except UNREADABLE:
            return _Run()


_decode = msgspec.json.Decoder(_Index).decode
_decode_run = msgspec.json.Decoder(_Run).decode


def publish_checkpoints(store: Store, replica: Replica, files: Files) -> None:
    """Write what is missing. The caller holds PROJECT."""
    index = _read(store)
    run = index.of(replica.id)
    taken = replica.taken_since(run.version)
    steps: Iterable[Step] = taken if taken is not None else _folded(store, replica.id, run.version)
    found = [taken for before, commit in steps for taken in standing(before, commit)]
    if not found:
        return
    for position, session in found:
        store.put(file_name(replica.id, position.event.name), encode(_document(session, position, files)))
    lines = [summary(replica.id, position) for position, _ in found]
    run = _Run(
        version=found[-1][0].version,
        count=run.count + len(lines),
        checkpoints=[*run.checkpoints, *lines][-MAX_INDEXED:],
    )
    index.runs[replica.id] = msgspec.Raw(msgspec.json.encode(run))
    data = msgspec.json.encode(index)
    # One line is all that a program needs, and more than a person reads.
    store.put(INDEX, data if len(data) > MAX_INDENTED else msgspec.json.format(data, indent=2) + b"\n")
    replica.forget_taken(found[-1][0].version)


def expected(store: Store, name: str, files: Files) -> Iterator[tuple[str, bytes]]:
    """The file of each checkpoint of the session, as it should be."""
    for before, commit in _folded(store, name, 0):
        for position, session in standing(before, commit):
            yield file_name(name, position.event.name), encode(_document(session, position, files))


def is_indexed(store: Store, name: str) -> bool:
    """Whether the index says of the session what it should."""
    run = _read(store).of(name)
    positions = [position for commit in commits(store, name) for position in positions_of(commit)]
    lines = [summary(name, position) for position in positions]
    wanted = (positions[-1].version if positions else 0, len(lines), lines[-MAX_INDEXED:])
    return (run.version, run.count, run.checkpoints) == wanted


def _document(session: Session, position: Position, files: Files) -> dict[str, Any]:
    return document(session, position, files(position.event.tree.manifest) if session.declared else {})


def _folded(store: Store, name: str, after: int) -> Iterator[Step]:
    session: Session | None = None
    for commit in commits(store, name):
        if commit.version > after:
            yield session, commit
        session = evolve(session, commit)


def _read(store: Store) -> _Index:
    data = store.get(INDEX)
    try:
        return _decode(data) if data else _Index()
    except UNREADABLE:
        return _Index()
