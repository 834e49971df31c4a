"""Sessions side by side: which there are, which one is active, and going from one to another."""

from typing import TYPE_CHECKING

from detent.core.actor import Actor
from detent.core.gate.evidence import Facts
from detent.core.session.commands import Archive, Pause, Reopen, Resume
from detent.core.session.decide import decide
from detent.core.session.listed import Listed
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.core.session.slug import matching_id
from detent.documents.state.writing import current_phase
from detent.engine.policy import Decision, authorize
from detent.engine.projections.projector import LEAVING, MARKER
from detent.engine.run_lease import live_lease
from detent.engine.session import SessionHandle
from detent.errors import Corrupt, DetentError, NotFound, Refused
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from datetime import datetime

    from detent.engine.project import Project


class Sessions:
    """Operations on the sessions of a project."""

    def __init__(self, project: "Project") -> None:
        self._project = project
        self._store = project.store

    def sessions(self, *, archived: bool = False) -> list[Listed]:
        """Every session, the active one first, then by last activity. A damaged one is listed as such."""
        active = self._project.active()
        listed = [self._listed(name, active) for name in self._store.sessions()]
        shown = [entry for entry in listed if archived or not entry.archived]
        by_time = sorted(shown, key=lambda entry: _seconds(entry.last_activity), reverse=True)
        return sorted(by_time, key=lambda entry: entry.id != active)

    def find(self, text: str) -> str:
        """Find a session by its id, a unique part of it, or its number in the list."""
        listed = self.sessions(archived=True)
        ids = [entry.id for entry in listed]
        wanted = text.strip()
        is_id = wanted in ids or f"WFS-{wanted}" in ids
        if not is_id and wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(ids):
            return ids[int(wanted) - 1]
        return matching_id(wanted, ids)

    def last(self) -> str | None:
        """The session in which something happened last, whether or not it has ended; None if there is none."""
        known = [entry for entry in self.sessions(archived=True) if not entry.problem]
        return max(known, key=lambda entry: _seconds(entry.last_activity)).id if known else None

    def switch(self, text: str) -> SessionHandle:
        """Make a session the active one; the one before it is paused."""
        name = self.find(text)
        with self._store.lock(PROJECT):
            session = self._project.journal(name).session()
            if session.has_ended:
                raise Refused(f"{name} was {session.status}", way_out=f"detent reopen {name}")
            before = self._project.active()
            author = self._project.actor
            if before is not None and before != name:
                author = authorize(author, Decision.SWITCH)
            if before != name:
                # The new marker first: a kill between the two leaves both, and the higher one wins.
                self._store.put(MARKER + name, b"%d" % (self._project.rank(before) + 1 if before else 1))
                if session.paused_at is not None:
                    self._commit(name, Resume(), author)
                # The old marker goes when its session's documents are written.
                # A damaged one keeps it until it is mended.
                before = before if before is not None and not self._project.is_damaged(before) else None
                if before is not None and not self._project.journal(before).session().has_ended:
                    self._commit(before, Pause(reason=f"switched to {name}"), author)
        for touched in (name, before):
            if touched is not None:
                self._project.touched(touched)
        return SessionHandle(self._project, name)

    def pause(self, reason: str = "") -> Session:
        """Pause the active session. Tasks in progress are released."""
        with self._store.lock(PROJECT):
            name = self._project.active()
            if name is None:
                raise NotFound("no session is active", way_out="detent sessions")
            author = authorize(self._project.actor, Decision.PAUSE)
            session = self._commit(name, Pause(reason=reason), author)
            # Publishing removes it, when the documents say what happened.
            self._store.put(MARKER + name, LEAVING)
        self._project.touched(name)
        return session

    def resume(self, text: str | None = None) -> SessionHandle:
        """The session named, or the one that was paused last. Tasks whose holders are gone are released."""
        handle = self._resumed(text)
        released = handle.tasks.release_abandoned()
        if released:
            self._project.notices.append(f"given back, because their holders are gone: {', '.join(released)}")
        return handle

    def _resumed(self, text: str | None) -> SessionHandle:
        if text is not None:
            return self.switch(text)
        if self._project.active() is not None:
            return SessionHandle(self._project, str(self._project.active()))
        paused = self.paused()
        if paused is None:
            raise NotFound("no session is paused", way_out='detent start WORKFLOW "TASK"')
        return self.switch(paused)

    def paused(self) -> str | None:
        """The session that was paused last."""
        paused = [entry for entry in self.sessions() if entry.status == "paused"]
        if not paused:
            return None
        return max(paused, key=lambda entry: (_seconds(entry.paused_at), _seconds(entry.last_activity))).id

    def reopen(self, text: str, reason: str = "") -> SessionHandle:
        """Reopen an ended session at its last phase, and make it the active one."""
        name = self.find(text)
        SessionHandle(self._project, name).execute(Reopen(reason=reason))
        return self.switch(name)

    def archive(self, text: str) -> Session:
        """Hide an ended session from lists. Nothing is moved or removed."""
        name = self.find(text)
        return SessionHandle(self._project, name).execute(Archive()).session

    def _commit(self, name: str, command: Pause | Resume, author: Actor) -> Session:
        facts = Facts(now=self._project.clock())
        return (
            self._project.journal(name)
            .commit(lambda session: decide(session, command, facts), actor=author, now=facts.now)
            .session
        )

    def _listed(self, name: str, active: str | None) -> Listed:
        try:
            with self._project.journal(name).reading() as session:
                counts = session.tasks.counts
                status = session.status.value
                if not session.has_ended and name != active:
                    is_run = live_lease(self._store, name, now=self._project.clock()) is not None
                    status = "running" if is_run else "paused"
                last = session.notes[-1] if session.notes else None
                phase = current_phase(session)
                return Listed(
                    id=name,
                    status=status,
                    task=session.task,
                    workflow=session.workflow.name,
                    phase=phase,
                    where=phase_name(session, phase) if phase else "",
                    started_at=session.started_at,
                    last_activity=last.timestamp if last else None,
                    last_by=last.agent if last else "",
                    paused_at=session.paused_at,
                    tasks_done=sum(count for kind, count in counts.items() if kind == "completed"),
                    tasks=sum(counts.values()),
                    archived=session.archived,
                    claims=session.claims,
                )
        except (Corrupt, DetentError) as error:
            return Listed(id=name, status="damaged", problem=error.message)


def _seconds(at: "datetime | None") -> float:
    return at.timestamp() if at is not None else 0.0
