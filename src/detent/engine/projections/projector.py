"""Projects journals into markers, documents and history."""

from _thread import allocate_lock
from _weakref import ref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from detent.config.place import Place
from detent.core.session.session import Session
from detent.documents import SESSION_DOCUMENT, STATE_DOCUMENT
from detent.engine.journal import SessionJournal
from detent.engine.projections.publish import encode, shown_session, witness
from detent.engine.projections.publish import publish as write_documents
from detent.errors import Corrupt
from detent.store.port import Store

if TYPE_CHECKING:
    from detent.core.checkpoint.manifest import Manifest

MARKER = ".active-"
#: Content of the marker of a session that is being paused: it no longer counts as active.
LEAVING = b"paused"

#: Folded sessions that are kept in memory without a user.
MOST_KEPT = 4


class Projector:
    """Never decides or commits. The caller of a method that writes holds PROJECT."""

    def __init__(self, store: Store, place: Place, files: "Callable[[str], Manifest]") -> None:
        """`files` reads the manifest of a checkpoint."""
        self._store = store
        self._place = place
        self._files = files
        #: One for each session in use, so that no journal is folded twice.
        self._journals: dict[str, ref[SessionJournal]] = {}
        self._recent: deque[SessionJournal] = deque(maxlen=MOST_KEPT)
        self._mutex = allocate_lock()
        #: For a person; none of them stopped anything.
        self.notices: list[str] = []

    def journal(self, session: str) -> SessionJournal:
        with self._mutex:
            journal = self._kept(session)
            if journal is None:
                journal = SessionJournal(self._store, session)
                self._journals[session] = ref(journal)
            if journal in self._recent:
                self._recent.remove(journal)
            self._recent.append(journal)
            return journal

    def is_in_use(self, session: str) -> bool:
        """Whether the journal of a session by this id is in memory."""
        journal = self._kept(session)
        return journal is not None and journal.is_loaded

    def forget(self, session: str) -> None:
        """Read the journal again from its start when it is next used: it was mended."""
        with self._mutex:
            journal = self._kept(session)
            self._journals.pop(session, None)
            if journal is not None and journal in self._recent:
                self._recent.remove(journal)

    def _kept(self, session: str) -> SessionJournal | None:
        known = self._journals.get(session)
        return known() if known is not None else None

    def active(self) -> str | None:
        """The session that the marker names; of several markers, the latest."""
        marked = [name.removeprefix(MARKER) for name in self._store.names(MARKER)]
        known = set(self._store.sessions()) if marked else set()
        alive = [name for name in marked if name in known and self._store.get(MARKER + name) != LEAVING]
        if len(alive) < 2:
            return alive[0] if alive else None
        counted = max(alive, key=self.rank)
        # A marker that a person made after Detent's own wins; otherwise the highest count does.
        by_hand = [name for name in alive if not (self._store.get(MARKER + name) or b"").isdigit()]
        latest = max(by_hand, key=self._made, default=None)
        return latest if latest is not None and self._made(latest) > self._made(counted) else counted

    def documents(self, sessions: Mapping[str, Session]) -> dict[str, bytes]:
        """The expected documents of `sessions`; the state document is that of the active one."""
        from detent.documents import session as session_document  # noqa: PLC0415
        from detent.documents import state as state_document  # noqa: PLC0415
        from detent.engine.projections import history  # noqa: PLC0415

        active = self.active()
        contents = {
            f"{name}/{SESSION_DOCUMENT}": encode(session_document.write(session, active=name == active))
            for name, session in sessions.items()
        }
        idle = self._idle(active, sessions)
        if idle is not None:
            contents[STATE_DOCUMENT] = idle
        if active is not None and active in sessions:
            past = history.recent_history(self._store)
            journal = self.journal(active)
            # Only a few journals are kept in memory.
            journal.known()
            document = state_document.write(sessions[active], workflow_history=past, journal=journal.end._asdict())
            contents[STATE_DOCUMENT] = encode(document)
        return contents

    def _idle(self, active: str | None, sessions: Mapping[str, Session]) -> bytes | None:
        """The state document without an active session, if it still shows one of `sessions` that another machine ended.

        Or one that was paused.
        """
        from detent.documents import state as state_document  # noqa: PLC0415
        from detent.engine.projections import history  # noqa: PLC0415

        if active is not None:
            return None
        name = shown_session(self._store) or ""
        if name not in sessions or (sessions[name].paused_at is None and not sessions[name].has_ended):
            return None
        past = history.recent_history(self._store)
        return encode(state_document.write(sessions[name], workflow_history=past, idle=True))

    def publish(self, name: str, *, overwrite: bool = False) -> None:
        """Write the documents of a session.

        The marker of a session that ended or is not active goes last, so that after a crash the next command sees the
        unfinished work.
        """
        from detent.engine.projections import history  # noqa: PLC0415
        from detent.engine.projections.mirror import mirror, update_task_page  # noqa: PLC0415
        from detent.engine.projections.rejected_edits import keep_rejected  # noqa: PLC0415

        self._store.back_up(name)
        marker = self._store.get(MARKER + name)
        journal = self.journal(name)
        session = journal.session()
        if session.checkpoint is not None:
            from detent.engine.projections.checkpoint_files import publish_checkpoints  # noqa: PLC0415 - looking needs none of it

            # Before the snapshot: after it, earlier commits are costly to read.
            publish_checkpoints(self._store, journal, self._files)
        self._publish_tasks(journal)
        journal.save_snapshot()
        ended = session.has_ended
        recorded = history.record(self._store, session) if ended else history.withdraw(self._store, session.id)
        if recorded:
            witness(self._store, history.NAME)
        with journal.reading() as latest:
            # Only one thread at a time may read tasks.
            documents = self.documents({name: latest})
        if (latest.status, latest.paused_at) != (session.status, session.paused_at):
            # The session ended, paused or went on meanwhile: history, marker and documents must be of one version. A
            # session that only went on has no part in the history, and a busy run commits faster than this publishes.
            self.publish(name, overwrite=overwrite)
            return
        edited = write_documents(self._store, documents, overwrite=overwrite)
        if edited and ended:
            kept = [keep_rejected(self._store, document) for document in edited]
            self.notices.append(f"the session ended before an edit was adopted; the text is in {', '.join(kept)}")
            write_documents(self._store, documents, overwrite=True)
        elif edited:
            self.notices.extend(f"{document} was edited by hand; the next command adopts it" for document in edited)
        active = self.active()
        if active == name:
            self.notices.extend(mirror(self._store, self._place, latest))
            self.notices.extend(update_task_page(self._place, latest))
        if ended or active != name:
            self._remove_marker(name, marker)
        if recorded and active not in (name, None):
            # The state document repeats the history.
            with suppress(Corrupt):
                self.publish(str(active))

    def _publish_tasks(self, journal: SessionJournal) -> None:
        from detent.engine.projections.task_files import TaskFiles  # noqa: PLC0415 - looking needs none of it

        edited, kept = TaskFiles(self._store, journal).publish()
        if edited:
            self.notices.append(f"{', '.join(edited[:5])} was edited by hand; the next command adopts it")
        self.notices.extend(f"{view} is generated; what was written there is kept as {view}.bak" for view in kept)

    def clear_markers(self) -> str | None:
        """Remove every marker but that of the active session, and return that session."""
        # In this order: the marker of a session that another machine creates comes with its session.
        markers, known = self._store.names(MARKER), self._store.sessions()
        for marker in markers:
            if marker.removeprefix(MARKER) not in known:
                self._remove_marker(marker.removeprefix(MARKER), self._store.get(marker))
        active = self.active()
        for marker in self._store.names(MARKER):
            if marker != MARKER + str(active):
                # The marker of a damaged session stays until it is mended.
                with suppress(Corrupt):
                    self.publish(marker.removeprefix(MARKER))
        return active

    def _remove_marker(self, name: str, seen: bytes | None) -> None:
        """Remove a marker as it was seen: another machine may have made the session the active one meanwhile."""
        if seen is not None:
            self._store.swap(MARKER + name, seen, None)

    def rebuild(self) -> None:
        """Rebuild the history and the documents of every session. A session with a damaged journal is left as it is."""
        from detent.engine.projections import history  # noqa: PLC0415
        from detent.engine.projections.rejected_edits import keep_rejected  # noqa: PLC0415

        sessions = []
        for name in self._store.sessions():
            with suppress(Corrupt):
                sessions.append(self.journal(name).session())
        if self.is_history_damaged():
            keep_rejected(self._store, history.NAME)
        active = frozenset(session.id for session in sessions if not session.has_ended)
        history.rebuild(self._store, [session for session in sessions if session.id not in active], active)
        from detent.documents.checkpoint import INDEX  # noqa: PLC0415 - looking needs none of it

        self._store.delete(INDEX)
        witness(self._store, history.NAME)
        for session in sessions:
            self.publish(session.id)

    def rank(self, name: str) -> tuple[int, int, datetime, str]:
        """The rank of a marker: its count, then the time of a marker that a person made, then the last commit."""
        count = self._store.get(MARKER + name) or b""
        number = int(count) if count.isdigit() else 0
        touched = self._made(name) if not count.isdigit() else 0
        try:
            last = self.journal(name).session().updated_at
        except Corrupt:
            last = datetime.min.replace(tzinfo=UTC)
        return number, touched, last, name

    def _made(self, name: str) -> int:
        return self._store.written(MARKER + name)

    def is_history_damaged(self) -> bool:
        from detent.engine.projections import history  # noqa: PLC0415

        try:
            history.read_history(self._store)
        except Corrupt:
            return True
        return False
