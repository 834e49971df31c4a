"""Projects checkpoints into documents.

The index holds the journal version of the last publication, so that only newer checkpoints are written.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from detent.core.checkpoint.manifest import Manifest
from detent.core.session.events import CheckpointTaken
from detent.core.session.evolve import evolve
from detent.core.session.session import Session
from detent.documents.checkpoint import INDEX, EncodedAgents, Position, document, file_name, summary
from detent.engine.checkpoints.checkpoints import positions_of, sessions_at
from detent.engine.journal import SessionJournal, Taking
from detent.engine.projections.publish import UNREADABLE, encode
from detent.store.port import Store, all_commits

#: Checkpoints of a session in the index; older ones have their files and the journal.
MAX_INDEXED = 1_000
#: The index is rewritten with each checkpoint, so long runs of other sessions are shortened to this.
MAX_OTHER_BYTES, MAX_OTHER_INDEXED = 64 * 1024, 100
MAX_INDENTED = 256 * 1024

Files = Callable[[str], Manifest]


class _Run(msgspec.Struct, kw_only=True):
    #: The journal version up to which all checkpoints have their files.
    version: int = 0
    count: int = 0
    checkpoints: list[dict[str, Any]] = []


class _Index(msgspec.Struct, kw_only=True):
    """The runs of all sessions, each decoded only when it is needed."""

    runs: dict[str, msgspec.Raw] = {}

    def of(self, session: str) -> _Run:
        run = self.runs.get(session)
        try:
            return _decode_run(run) if run is not None else _Run()
        except UNREADABLE:
            return _Run()

    def shortened(self, session: str) -> msgspec.Raw:
        """The run with its last checkpoints only, if it is long."""
        if memoryview(self.runs[session]).nbytes <= MAX_OTHER_BYTES:
            return self.runs[session]
        run = self.of(session)
        return _encoded(msgspec.structs.replace(run, checkpoints=run.checkpoints[-MAX_OTHER_INDEXED:]))


_decode = msgspec.json.Decoder(_Index).decode
_decode_run = msgspec.json.Decoder(_Run).decode


def _encoded(run: _Run) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(run))


def publish_checkpoints(store: Store, journal: SessionJournal, files: Files) -> None:
    """Write the documents of new checkpoints, and the index. The caller holds PROJECT."""
    index = _read(store)
    run = index.of(journal.id)
    taken = journal.taken_since(run.version)
    steps: Iterable[Taking] = taken if taken is not None else _folded(store, journal.id, run.version)
    version, count, lines = run.version, run.count, deque(run.checkpoints, maxlen=MAX_INDEXED)
    agents = EncodedAgents()
    # One at a time: there may be thousands.
    for step in steps:
        for position, session in _checkpoints(step):
            data = encode(_document(session, position, files, agents))
            store.put(file_name(journal.id, position.event.name), data)
            version, count = position.version, count + 1
            lines.append(summary(journal.id, position))
    if count == run.count:
        # Nothing is new, or another process wrote it.
        journal.forget_taken(version)
        return
    run = _Run(version=version, count=count, checkpoints=list(lines))
    index.runs = {name: index.shortened(name) for name in index.runs} | {journal.id: _encoded(run)}
    data = msgspec.json.encode(index)
    # A large index is not indented: only programs read it.
    store.put(INDEX, data if len(data) > MAX_INDENTED else msgspec.json.format(data, indent=2) + b"\n")
    journal.forget_taken(version)


def expected(store: Store, name: str, files: Files) -> Iterator[tuple[str, bytes]]:
    """The expected document of each checkpoint of the session."""
    agents = EncodedAgents()
    for before, commit, _ in _folded(store, name, 0):
        for position, session in sessions_at(before, commit):
            yield file_name(name, position.event.name), encode(_document(session, position, files, agents))


def is_indexed(store: Store, name: str) -> bool:
    """Whether the index is right about the session."""
    run = _read(store).of(name)
    positions = [position for commit in all_commits(store, name) for position in positions_of(commit)]
    lines = [summary(name, position) for position in positions]
    listed = len(run.checkpoints)
    if (run.version, run.count) != (positions[-1].version if positions else 0, len(lines)):
        return False
    return listed >= min(len(lines), MAX_OTHER_INDEXED) and run.checkpoints == lines[len(lines) - listed :]


def _document(session: Session, position: Position, files: Files, agents: EncodedAgents) -> dict[str, Any]:
    return document(session, position, files(position.event.tree.manifest) if session.declared else {}, agents)


def _checkpoints(step: Taking) -> Iterable[tuple[Position, Session]]:
    """The checkpoints of a commit, each with the session at it."""
    *others, last = step.commit.events
    if isinstance(last, CheckpointTaken) and not any(isinstance(event, CheckpointTaken) for event in others):
        # The usual case. The phases are those after the commit, and nothing has to be applied again.
        return ((position, step.after) for position in positions_of(step.commit))
    return sessions_at(step.before, step.commit)


def _folded(store: Store, name: str, version: int) -> Iterator[Taking]:
    session: Session | None = None
    for commit in all_commits(store, name):
        before, session = session, evolve(session, commit)
        if commit.version > version:
            yield Taking(before, commit, session)


def _read(store: Store) -> _Index:
    data = store.get(INDEX)
    try:
        return _decode(data) if data else _Index()
    except UNREADABLE:
        return _Index()
