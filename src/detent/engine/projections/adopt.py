"""Adopts an edited document: turns the edit into events, or keeps it aside with every reason."""

import msgspec

from detent.core.actor import Actor
from detent.core.gate.evidence import Facts
from detent.core.session.events import DocumentAdopted, Event
from detent.core.session.session import Session
from detent.documents import STATE_DOCUMENT
from detent.documents.state.edits import edit_events
from detent.engine.journal import SessionJournal
from detent.engine.projections.publish import UNREADABLE, digest
from detent.engine.projections.rejected_edits import keep_rejected
from detent.errors import Corrupt, Refused
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


def adopt_workflow(
    store: Store, journal: SessionJournal, data: bytes, *, actor: Actor, facts: Facts
) -> Adoption | None:
    """Adopt the edit of the workflow document; None if it is about another workflow."""
    from detent.documents import workflow  # noqa: PLC0415 - most projects have none
    from detent.documents.workflow.edits import edit_events as workflow_events  # noqa: PLC0415

    reasons: list[str] = []

    def decide_edit(session: Session) -> tuple[Event, ...]:
        if session.adopted.get(workflow.STATE) == digest(data):
            raise Refused("it was adopted before")
        try:
            events, problems = workflow_events(session, workflow.decode(data), facts=facts)
        except Corrupt as error:
            events, problems = (), [error.message]
        reasons.extend(problems)
        if problems or not events:
            raise Refused("the edit is not adopted")
        return (DocumentAdopted(document=workflow.STATE, digest=digest(data)), *events)

    try:
        if workflow.decode(data)["id"] != workflow.from_session(journal.session())["id"]:
            return None
        journal.commit(decide_edit, actor=actor, now=facts.now)
    except Corrupt as error:
        reasons.append(error.message)
    except Refused as error:
        reasons.extend([] if reasons or error.message in _UNCHANGED else [error.message])
    if not reasons:
        return Adoption(document=workflow.STATE, adopted=True)
    copy = f"{journal.id}/workflow.json"
    store.put(copy, data)
    kept = keep_rejected(store, copy)
    store.delete(copy)
    return Adoption(document=workflow.STATE, adopted=False, reasons=tuple(reasons), kept=kept)


_UNCHANGED = ("it was adopted before", "the edit is not adopted")


def _read_edit(session: Session, name: str, text: bytes, facts: Facts) -> tuple[tuple[Event, ...], list[str]]:
    if session.adopted.get(name) == digest(text):
        return (), []
    if name != STATE_DOCUMENT:
        return (), [f"{name} only shows the session; change it with detent, or edit {STATE_DOCUMENT}"]
    if session.has_ended:
        return (), [f"session {session.id} is {session.status}"]
    try:
        edited = msgspec.json.decode(text)
        events, violations = edit_events(session, edited, facts=facts)
    except UNREADABLE as error:
        return (), [f"it is not JSON that can be read: {error}"]
    return events, [f"{violation.rule} {violation.path}: {violation.message}" for violation in violations]
