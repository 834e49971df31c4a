"""How long a phase was meant to take at most. Nothing is stopped for it: it is said, and a person may look."""

from datetime import datetime

import msgspec

from detent.core.session.session import Session
from detent.core.session.status import Status


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    phase: str
    minutes: int
    limit: int


def overdue(session: Session, now: datetime) -> tuple[Overdue, ...]:
    """The phases in progress whose attempt has run longer than they were meant to, in graph order."""
    found = []
    for key in session.with_status(Status.IN_PROGRESS):
        limit, begun = session.workflow.by_key[key].timeout_minutes, session.phases[key].begun
        minutes = int((now - begun).total_seconds() // 60) if begun is not None else 0
        if limit is not None and minutes > limit:
            found.append(Overdue(phase=key, minutes=minutes, limit=limit))
    return tuple(found)
