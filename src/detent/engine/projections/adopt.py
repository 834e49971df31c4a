"""Adopts an edited document: turns the edit into events, or keeps it aside with every reason."""

import msgspec

from detent.core.actor import Actor
from detent.core.gate.evidence import Facts
from detent.core.session.events import DocumentAdopted, Event
from detent.core.session.session import Session, SessionStatus
from detent.documents import STATE_DOCUMENT
from detent.documents.state.edits import edit_events
from detent.engine.journal import SessionJournal
from detent.engine.projections.publish import UNREADABLE, digest
from detent.engine.projections.rejected_edits import keep_rejected
from detent.errors import Refused
from detent.store.port import Store


class Adoption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one edit."""

    document: str
    adopted: bool
    reasons: tuple[str, ...] = ()
    #: The name under which a rejected edit is kept.
    kept: str | None = None

    def describe(self) -> str:
        if self.adopted:
            return f"adopted the edit of {self.document}"
        if self.kept is None:
            return f"{self.document}: {'; '.join(self.reasons)}"
        reasons = "".join(f"\n  - {reason}" for reason in self.reasons)
        return f"the edit of {self.document} was not adopted and is kept as {self.kept}:{reasons}"


def adopt(store: Store, journal: SessionJournal, name: str, *, actor: Actor, facts: Facts) -> Adoption:
    """Adopt the edit of one document. The caller holds PROJECT and then publishes over the edit."""
    text = store.get(name) or b""
    reasons: list[str] = []

    def decide_edit(session: Session) -> tuple[Event, ...]:
        events, problems = _read_edit(session, name, text, facts)
        reasons.extend(problems)
        if problems or not events:
            raise Refused("the edit is not adopted")
        return (DocumentAdopted(document=name, digest=digest(text)), *events)

    try:
        journal.commit(decide_edit, actor=actor, now=facts.now)
    except Refused:
        if not reasons:
            return Adoption(document=name, adopted=True)
        return Adoption(document=name, adopted=False, reasons=tuple(reasons), kept=keep_rejected(store, name))
    return Adoption(document=name, adopted=True)


def _read_edit(session: Session, name: str, text: bytes, facts: Facts) -> tuple[tuple[Event, ...], list[str]]:
    if session.adopted.get(name) == digest(text):
        return (), []
    if name != STATE_DOCUMENT:
        return (), [f"{name} only shows the session; change it with detent, or edit {STATE_DOCUMENT}"]
    if session.status is not SessionStatus.ACTIVE:
        return (), [f"session {session.id} is {session.status}"]
    try:
        edited = msgspec.json.decode(text)
        events, violations = edit_events(session, edited, facts=facts)
    except UNREADABLE as error:
        return (), [f"it is not JSON that can be read: {error}"]
    return events, [f"{violation.rule} {violation.path}: {violation.message}" for violation in violations]
