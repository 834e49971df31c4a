"""Chooses the id, the number and the first state version of a new session. The caller holds PROJECT."""

from contextlib import suppress

from detent.core.session.events import SessionStarted
from detent.core.session.slug import check_session_id, session_id
from detent.documents import STATE_DOCUMENT
from detent.documents import state as state_document
from detent.engine.projections.projector import Projector
from detent.engine.projections.publish import decoded
from detent.errors import Corrupt, Invalid
from detent.store.port import START, Store


def new_id(store: Store, task: str, name: str | None) -> str:
    taken = store.sessions()
    if name is None:
        return session_id(task, taken)
    chosen = check_session_id(name)
    if chosen in taken:
        raise Invalid(f"there is already a session {chosen}", way_out=f"use --name {session_id(chosen[4:], taken)[4:]}")
    return chosen


def next_number(store: Store, prefix: str | None) -> int | None:
    """One more than any session of that prefix has used, ended or not."""
    if prefix is None:
        return None
    used = [0]
    for name in store.sessions():
        # A damaged session does not keep another from starting.
        with suppress(Corrupt):
            commits = store.read(name, START, limit=1).commits
            first = commits[0].events[0] if commits else None
            if isinstance(first, SessionStarted) and first.workflow.prefix == prefix:
                used.append(first.number or 0)
    return max(used) + 1


def state_version(store: Store, projector: Projector) -> int:
    """The current version of the state document, from which the next session continues.

    If the document is lost or damaged, the version comes from the journals.
    """
    active = projector.active()
    stated = state_document.next_version(decoded(store.get(STATE_DOCUMENT))) - 1
    known = store.sessions() if stated == 0 else [active] if active else []
    versions = [stated]
    for name in known:
        with suppress(Corrupt):
            versions.append(projector.journal(name).session().state_version)
    return max(versions)
