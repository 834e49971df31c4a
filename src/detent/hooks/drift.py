"""Detects changes that other programs made to Detent's files."""

from typing import Any, NamedTuple

import msgspec

from detent.documents import STATE_DOCUMENT
from detent.engine.project import Project
from detent.engine.projections import history
from detent.engine.projections.projector import MARKER
from detent.engine.projections.publish import LEDGER, UNREADABLE, digest, edited_documents, read_ledger
from detent.hooks.files import has_prefix, unmarked
from detent.store.port import PROJECT

#: The problems that were reported last, and to which client session: they are not repeated after every call.
REPORTED = ".drift"


class Drift(NamedTuple):
    #: Sentences for people.
    problems: list[str]
    #: Whether the journal itself was changed. Nothing may be written then.
    is_grave: bool = False


def look(project: Project) -> Drift:
    """Find drift. Call it before any document is published again."""
    document, active = _written(project), project.active()
    flow = document.get("active_workflow") or {}
    name = flow.get("session_id")
    if name and not has_prefix(document, project.store.location("")):
        return Drift([f"the journal of {name} no longer holds what {STATE_DOCUMENT} was made from"], is_grave=True)
    problems = []
    if active is None:
        gone = [f"{MARKER}{name}"] if name else unmarked(project.store.location(""))
        problems += [f"the marker {each} was removed, so no session is active any more" for each in gone]
    if active is not None:
        if name and active != name:
            problems.append(f"the marker {MARKER}{active} was added, and {name} was the active session")
        if project.store.get(STATE_DOCUMENT) is None:
            problems.append(f"{STATE_DOCUMENT} was missing and was written again")
        torn = _torn_bytes(project, active)
        if torn:
            problems.append(f"{torn} bytes follow the last commit of the journal of {active}; they are ignored")
    past, known = project.store.get(history.NAME), read_ledger(project.store, LEDGER).get(history.NAME)
    if known and (past is None or digest(past) not in known):
        problems.append(f"{history.NAME} was changed; detent doctor says what is wrong")
    return Drift(problems)


def only_new(project: Project, client_session: str, problems: list[str]) -> list[str]:
    """The problems; none if the last report to this client session was the same."""
    text = "\n".join((client_session, *problems)).encode("utf-8", "replace")
    if not problems or project.store.get(REPORTED) == text:
        return []
    with project.store.lock(PROJECT):
        project.store.put(REPORTED, text)
    return problems


def _torn_bytes(project: Project, session: str) -> int:
    journal = project.journal(session)
    journal.session()
    # Without the lock, a commit that is being written looks torn.
    with project.store.lock(session):
        return project.store.read(session, journal.end).torn


def _written(project: Project) -> dict[str, Any]:
    """The state document if it is as Detent wrote it; an edited one proves nothing about the journal."""
    data = project.store.get(STATE_DOCUMENT)
    if data is None or edited_documents(project.store, [STATE_DOCUMENT]):
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except UNREADABLE:
        return {}
