"""The store port: the contract of every store. `tests/store/test_contract.py` checks each implementation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from detent.core.session.events import Commit
from detent.errors import Corrupt
from detent.store.line import GENESIS

if TYPE_CHECKING:
    from detent.store.repairs import Repairs

#: The lock of the project as a whole: markers, project documents, creation of sessions.
PROJECT = ""


class Cursor(NamedTuple):
    """A position in a journal: behind commit `version`, whose sum is `sum`."""

    version: int
    sum: str
    #: A position inside the store. Only the store that made the cursor can read it.
    hint: int = 0


START = Cursor(0, GENESIS)


class Tail(NamedTuple):
    """The commits behind a cursor."""

    commits: list[Commit]
    end: Cursor
    #: Bytes of an unfinished write behind the last whole line; the next append cuts them off.
    torn: int
    #: More commits may follow.
    more: bool


class SessionFile(NamedTuple):
    """A file beside a session's journal; `name` is relative to the session."""

    name: str
    executable: bool = False
    #: False for a link, a socket or the like: it cannot be read as a document.
    is_document: bool = True


class Changes(NamedTuple):
    names: list[str]
    #: Pass it as `since` to get the changes after this call.
    mark: int


class FeedWriter(Protocol):
    """Writes the feed of a session's runs, for one process. Nothing that it meets stops the run, or lets it wait."""

    def write(self, line: bytes, *, starts: bool, head: Sequence[bytes]) -> None:
        """Add a line. One that `starts` a run begins the feed anew.

        `head` are the lines that a later reader needs if the feed is cut; this one may be among them.
        """
        ...

    def close(self) -> None:
        """No line follows. What other machines have not got yet is sent, if that takes no long time."""
        ...


class FeedReader(Protocol):
    def read(self) -> Iterator[bytes]:
        """The lines that are new: of the latest run from its start, or from a head on. A line may come twice."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """Journals and named documents of one project.

    Names are relative, with `/` between their parts; they need not be paths of files. Every method may raise
    `StoreFailed`; after that nothing has changed, unless it says that a server did not answer.

    Several machines may share a store. Its locks exclude the processes of one machine, which share views and files.
    Between machines, `append`, `create` and `swap` decide: each is done only if its caller has seen the latest.
    """

    def sessions(self) -> list[str]:
        """Ids of all sessions that have a journal, sorted."""
        ...

    def create(
        self,
        session: str,
        first: Commit,
        rest: Iterable[Commit] = (),
        files: Iterable[tuple[SessionFile, bytes]] = (),
        *,
        beside: Iterable[tuple[str, bytes]] = (),
        seen: int | None = None,
    ) -> Cursor:
        """Create the session with its first commit, durably and atomically; `Conflict` if it exists.

        An imported session has the `rest` of its commits and its `files`. The documents `beside` it stand before the
        session does, and are removed if it cannot be created. `seen` is the number of sessions that its id was
        chosen among: `Conflict` if another machine has created one since.
        """
        ...

    def read(self, session: str, after: Cursor, limit: int = 5_000) -> Tail:
        """At most `limit` verified commits behind `after`, without a lock.

        `NotFound` without such a session, `Corrupt` naming the line that is damaged, or if `after` is not a
        position of this journal.
        """
        ...

    def append(self, session: str, after: Cursor, commit: Commit) -> Cursor:
        """Add one commit; it is durable when this returns. The caller holds the session's lock.

        `Conflict` if anything was committed behind `after`. A torn tail is cut off first.
        """
        ...

    def back_up(self, session: str) -> None:
        """Bring the second copy of the journal up to date, if the store has one.

        It takes the session's lock. It is done with the documents, before an agent or a check starts, and by `close`.
        """
        ...

    def positions(self) -> dict[str, int]:
        """For every session a number that changes with each of its commits. Reads no commit."""
        ...

    def may_have_news(self, session: str, version: int) -> bool:
        """False if the store knows that no commit follows `version`; asked often, by those that follow a journal."""
        ...

    def waking(self, session: str, wake: Callable[[], object]) -> AbstractContextManager[None]:
        """While it is open, `wake` is called in another thread when the store hears of a commit of the session.

        A message may be lost, and a store may hear of none: the caller looks from time to time all the same.
        """
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other machines may use the same journals. Views and directories are of this machine all the same."""
        ...

    def now(self) -> datetime | None:
        """The time of the clock that all machines share, for leases; None if the clock of this machine is theirs."""
        ...

    def lock(
        self, name: str, *, wait_s: float = 10.0, meanwhile: Callable[[], object] | None = None
    ) -> AbstractContextManager[None]:
        """Exclusive among the processes and threads of this machine, not reentrant: a session id, or `PROJECT`.

        `LockTimeout` after `wait_s`. `meanwhile` may be called while waiting, to do work before the lock is held. Take
        `PROJECT` before a session's lock, never after.
        """
        ...

    def get(self, name: str) -> bytes | None:
        """The document's content, or None if there is none."""
        ...

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Replace the document atomically: a reader sees the old one or the new one. The caller holds `PROJECT`.

        Without `durable` a crash of the machine may lose it: for documents that can be rebuilt.
        """
        ...

    def swap(self, name: str, before: bytes | None, after: bytes | None) -> bool:
        """Replace the document only if its content is `before`; None is no document. False if it is another.

        Of several machines that swap the same content, one succeeds. The caller holds `PROJECT`.
        """
        ...

    def delete(self, name: str) -> None:
        """Remove the document if it is there."""
        ...

    def names(self, prefix: str) -> list[str]:
        """Names that start with `prefix` and have no `/` behind it; sorted."""
        ...

    def of_sessions(self, name: str) -> dict[str, bytes]:
        """The document `SESSION/name` of each session that has one, by session; sorted."""
        ...

    def changed(self, prefix: str, since: int = 0) -> Changes:
        """The part of `names(prefix)` that may have been written since the mark; all of them since 0. Reads none."""
        ...

    def written(self, name: str) -> int:
        """A number that is higher for a document that was written later; 0 if there is none."""
        ...

    def session_files(self, session: str) -> list[SessionFile]:
        """All files of the session except its journal, at any depth; sorted."""
        ...

    def directory(self, name: str) -> str:
        """The path of a directory on this machine that belongs to the store: for packs of objects, staging and logs.

        The caller creates it. Its content lasts as long as the journals and is not visible on other machines. A store
        may keep documents there too: never use the name of a document.
        """
        ...

    def location(self, name: str) -> str:
        """The location of a document, for people and for started programs; "" is the store itself.

        It is a path only if the store keeps its documents as files. No other store has the same location.
        """
        ...

    def feed_writer(self, session: str) -> FeedWriter:
        """Writes the feed of the session's runs. Its size is limited."""
        ...

    def feed_reader(self, session: str) -> FeedReader:
        """Reads the feed of the session's runs, whichever machine they are on; a line may be late by a second."""
        ...

    @property
    def notices(self) -> list[str]:
        """Notices about files that were in the place of a document and are kept elsewhere."""
        ...

    @property
    def repairs(self) -> "Repairs | None":
        """Second copies of the journals, and the repair of damaged ones. None for a store that needs none."""
        ...

    def warnings(self) -> list[tuple[str, str]]:
        """Warnings about the store itself, each with its way out."""
        ...

    def reopen(self) -> "Store":
        """The same journals and documents for another thread; closing one does not close the other."""
        ...

    def close(self) -> None:
        """Close files. The store can still be used and opens them again."""
        ...


def all_commits(store: Store, session: str) -> Iterator[Commit]:
    """Every commit of a session, oldest first."""
    cursor, more = START, True
    while more:
        commits, cursor, _, more = store.read(session, cursor)
        yield from commits


def displaced(session: str, after: Cursor) -> Corrupt:
    return Corrupt(
        f"the journal of {session} no longer holds commit {after.version} at its place: it was cut or replaced",
        way_out=f"detent doctor shows what is missing, detent doctor --restore {session} puts it back",
    )
