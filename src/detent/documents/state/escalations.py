"""The pending escalations of a state document: repeats are dropped, and the list never outgrows its limit."""

from detent.core.session.escalation import DEDUP_S, MAX_ESCALATIONS, add_distinct
from detent.documents.state.shape import Document, mapping, sequence
from detent.documents.state.stamp import parse_stamp

__all__ = ["DEDUP_S", "MAX_ESCALATIONS", "add_escalation", "pending_escalations", "with_escalation"]


def pending_escalations(doc: object) -> list[Document]:
    return sequence(mapping(doc).get("pending_escalations"))


def with_escalation(doc: Document, entry: Document) -> Document:
    """The document with the entry pending; the very same document if it only repeats a pending one."""
    pending = pending_escalations(doc)
    extended = add_escalation(pending, entry)
    return doc if extended is pending else {**doc, "pending_escalations": extended}


def add_escalation(pending: list[Document], entry: Document) -> list[Document]:
    """A new list with the entry at its end; the very same list if the entry only repeats a recent one."""
    extended = add_distinct(pending, entry, kind=_kind, at=lambda one: parse_stamp(mapping(one).get("timestamp")))
    return pending if extended is pending else list(extended)


def _kind(entry: object) -> tuple[object, ...]:
    return tuple(mapping(entry).get(field) for field in ("hook", "phase", "type"))
