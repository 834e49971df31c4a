"""The journal of one session: folds it into a `Session`, and makes every commit (lock, catch up, decide, append)."""

import time
from _thread import RLock
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent import __version__
from detent.core.actor import Actor
from detent.core.decision.statement import Statement, read_statement
from detent.core.session.events import CheckpointTaken, Commit, Event, TailDropped
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import NO_TASKS, Session, decode_session, encode_session
from detent.core.task.plan import Plan
from detent.core.task.row import Row
from detent.engine.projections.publish import UNREADABLE
from detent.errors import Conflict, Corrupt, DetentError, Invalid, Refused
from detent.sha256 import sha256
from detent.store.port import START, Cursor, Store

if TYPE_CHECKING:
    from detent.engine.policy import Witness

#: A snapshot is written when this many events would otherwise be read again.
SNAPSHOT_EVERY = 250
#: Estimated size of an event in the journal, to weigh reading events against writing a snapshot.
_EVENT_BYTES = 256
#: Commits with checkpoints that are kept in memory until their documents are written.
_REMEMBERED = 4_000
#: Commits that are read at once to look for a signature that was used before.
_READ_AT_ONCE = 5_000
#: Tries of a commit that other machines overtake, and the pauses between them: about two seconds in all.
_MAX_TRIES, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 50, 0.001, 0.1
#: From this number on, their documents are written at once.
_CROWDED = _REMEMBERED // 4


class _Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The folded session at a position. It is a cache: if anything is wrong with it, the journal is read instead."""

    written_by: str
    cursor: Cursor
    digest: str
    #: Version of the last commit that took a checkpoint.
    taken: int
    session: msgspec.Raw
    #: Apart from the session, because rows are decoded in one call.
    tasks: msgspec.Raw


_decode_snapshot = msgspec.json.Decoder(_Snapshot).decode
_decode_rows = msgspec.json.Decoder(list[Row]).decode
_encode = msgspec.json.Encoder().encode


class Committed(NamedTuple):
    """A commit, and the session right after it."""

    commit: Commit
    session: Session


class Taking(NamedTuple):
    """A commit that took checkpoints, and the session right before and after it."""

    before: Session | None
    commit: Commit
    after: Session


class SessionJournal:
    def __init__(self, store: Store, session: str) -> None:
        self.id = session
        self._store = store
        self._mutex = RLock()
        self._session: Session | None = None
        self._cursor: Cursor = START
        self._torn = 0
        self._unsaved_events = self._snapshot_bytes = 0
        self._taken: deque[Taking] = deque()
        #: All commits with checkpoints behind this version are in `_taken`.
        self._remembers_from = self._last_taken = 0
        self._remembers = False

    def known(self) -> Session:
        """The session as last read, for decisions that are checked again under the lock."""
        with self._mutex:
            return self._session or self._catch_up()

    def session(self) -> Session:
        """The session at the end of the journal."""
        with self._mutex:
            return self._catch_up()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """The session while no other thread changes it: only one thread at a time may read tasks."""
        with self._mutex:
            yield self._catch_up()

    @property
    def is_loaded(self) -> bool:
        return self._session is not None

    def has_tasks(self) -> bool:
        with self.reading() as session:
            return len(session.tasks) > 0

    def taken_since(self, version: int) -> "list[Taking] | None":
        """The commits behind `version` that took checkpoints; None if they are no longer in memory."""
        with self._mutex:
            self._catch_up()
            if version < (self._remembers_from if self._remembers else self._last_taken):
                return None
            return [taking for taking in self._taken if taking.commit.version > version]

    @property
    def is_crowded(self) -> bool:
        """Whether many checkpoint documents are unwritten."""
        return len(self._taken) >= _CROWDED

    def forget_taken(self, version: int) -> None:
        """Drop the commits up to `version`: their documents are written."""
        with self._mutex:
            while self._taken and self._taken[0].commit.version <= version:
                self._taken.popleft()
            self._remembers_from = max(self._remembers_from, version)

    @property
    def end(self) -> Cursor:
        """The end of the journal when it was last read."""
        return self._cursor

    def commit(
        self,
        decide: Callable[[Session], tuple[Event, ...]],
        *,
        actor: Actor,
        now: datetime,
        witness: "Witness | None" = None,
    ) -> Committed:
        """Decide under the session's lock, authorize the actor, and append. A refusal changes nothing.

        Another machine may have committed since the session was read: then the commit is decided again, on what it is
        now. `witness` is what a signed decision is compared with.
        """
        with self._mutex, self._store.lock(self.id, meanwhile=self._catch_up):
            tries = 0
            while True:
                try:
                    return self._try_commit(decide, actor, now, witness, is_again=tries > 0)
                except _Overtaken as overtaken:
                    tries += 1
                    if tries == _MAX_TRIES:
                        raise overtaken.error from overtaken
                    time.sleep(_pause_s(tries))

    def _try_commit(
        self,
        decide: Callable[[Session], tuple[Event, ...]],
        actor: Actor,
        now: datetime,
        witness: "Witness | None",
        *,
        is_again: bool,
    ) -> Committed:
        # No lock excludes other machines. There the session as last read is as good: the append is refused if it is
        # old, and reading it costs as much as trying.
        is_shared = self._store.is_shared
        before = self._session if is_shared and not is_again and self._session is not None else self._catch_up()
        if not self._remembers:
            self._remembers, self._remembers_from = True, self._last_taken
        try:
            events = decide(before)
            author = self._authorize(actor, events, before, witness=witness, check_position=self._check_position)
        except DetentError as refusal:
            if is_shared and self._catch_up() is not before:
                # It was refused on what the session no longer is.
                raise _Overtaken(refusal) from refusal
            raise
        if self._torn:
            events = (TailDropped(bytes=self._torn), *events)
        draft = Commit(version=before.version + 1, at=now, actor=author, events=events, state="")
        after = evolve(before, draft)
        commit = msgspec.structs.replace(draft, state=fingerprint(after))
        try:
            self._cursor = self._store.append(self.id, self._cursor, commit)
        except Conflict as conflict:
            raise _Overtaken(conflict) from conflict
        self._session, self._torn = after, 0
        self._unsaved_events += len(events)
        self._remember(before, commit, after)
        return Committed(commit, after)

    @cached_property
    def _authorize(self) -> "Callable[..., Actor]":
        from detent.engine.policy import authorize_events  # noqa: PLC0415 - reading needs none of it

        return authorize_events

    def _check_position(self, statement: Statement) -> None:
        """Refuse a statement that is about no position of this journal, or that a decision has used before."""
        shown, cursor = START, START
        commits: list[Commit] = []
        more = True
        while more:
            behind = statement.version - cursor.version
            commits, cursor, _, more = self._store.read(
                self.id, cursor, min(behind, _READ_AT_ONCE) if behind > 0 else _READ_AT_ONCE
            )
            if behind > 0:
                shown = cursor
            elif any(_nonce(commit) == statement.nonce for commit in commits):
                raise Refused("the signature was used for a decision before", way_out="sign again")
            more = more and bool(commits)
        if (shown.version, shown.sum) != (statement.version, statement.sum):
            raise Refused(
                f"the signature is about version {statement.version} of another journal", way_out="sign again"
            )

    def _remember(self, before: Session | None, commit: Commit, after: Session) -> None:
        if CheckpointTaken in map(type, commit.events):
            self._last_taken = commit.version
            if not self._remembers:
                return
            while len(self._taken) > _REMEMBERED:
                self._remembers_from = self._taken.popleft().commit.version
            self._taken.append(Taking(before, commit, after))

    def save_snapshot(self) -> None:
        """Write a snapshot if it saves enough reading. The caller holds PROJECT."""
        with self._mutex:
            if self._session is None or not self._is_snapshot_due():
                return
            folded = encode_session(msgspec.structs.replace(self._session, tasks=NO_TASKS))
            tasks = _encode(list(self._session.tasks))
            snapshot = _Snapshot(
                written_by=__version__,
                cursor=self._cursor,
                digest=_digest(folded, tasks),
                taken=self._last_taken,
                session=msgspec.Raw(folded),
                tasks=msgspec.Raw(tasks),
            )
            data = _encode(snapshot)
            self._store.put(self._snapshot_name, data)
            self._unsaved_events, self._snapshot_bytes = 0, len(data)

    def _is_snapshot_due(self) -> bool:
        """Whether reading the events again would cost more than writing the snapshot."""
        return self._unsaved_events >= max(SNAPSHOT_EVERY, self._snapshot_bytes // 16 // _EVENT_BYTES)

    @property
    def _snapshot_name(self) -> str:
        return f"{self.id}/snapshot.json"

    def _catch_up(self) -> Session:
        session = self._session
        if session is None:
            session = self._load_snapshot()
        more = True
        while more:
            commits, cursor, torn, more = self._store.read(self.id, self._cursor)
            for commit in commits:
                before, session = session, evolve(session, commit)
                self._remember(before, commit, session)
                self._unsaved_events += len(commit.events)
            # Only now: a commit that cannot be applied must stop every later reading at the same place.
            self._session, self._cursor, self._torn = session, cursor, torn
        if session is None:
            raise no_commit(self.id)
        return session

    def _load_snapshot(self) -> Session | None:
        data = self._store.get(self._snapshot_name)
        if data is None:
            return None
        try:
            snapshot = _decode_snapshot(data)
            if snapshot.written_by != __version__ or _digest(snapshot.session, snapshot.tasks) != snapshot.digest:
                return None
            session = decode_session(snapshot.session)
            session = msgspec.structs.replace(session, tasks=Plan(_decode_rows(snapshot.tasks)))
            if session.version != snapshot.cursor.version:
                return None
            self._store.read(self.id, snapshot.cursor, limit=0)
        except (*UNREADABLE, Corrupt):
            return None
        self._cursor, self._snapshot_bytes = snapshot.cursor, len(data)
        self._remembers_from = self._last_taken = snapshot.taken
        return session


class _Overtaken(Exception):
    """The commit of another machine came first."""

    def __init__(self, error: DetentError) -> None:
        super().__init__(error.message)
        self.error = error


def _pause_s(tries: int) -> float:
    """A random pause, so that machines do not meet again and again."""
    from random import uniform  # noqa: PLC0415 - other machines are rare, and it is slow to load

    return uniform(0, min(_FIRST_PAUSE_S * 2**tries, _LONGEST_PAUSE_S))  # noqa: S311 - it is no secret


def no_commit(session: str) -> Corrupt:
    return Corrupt(
        f"the journal of {session} holds no whole commit",
        way_out="restore journal.jsonl from a backup, or remove the session's directory",
    )


def _nonce(commit: Commit) -> str | None:
    """The nonce of the signed statement of a commit."""
    proof = commit.actor.proof
    if proof is None or not proof.signature:
        return None
    try:
        return read_statement(proof.statement).nonce
    except Invalid:
        return None


def _digest(*parts: bytes | msgspec.Raw) -> str:
    total = sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()
