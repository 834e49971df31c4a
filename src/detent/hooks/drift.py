"""What was changed behind Detent's back, as far as a look at its files can tell."""

from typing import Any, NamedTuple

import msgspec

from detent.engine.project import Project
from detent.engine.projections import history
from detent.engine.projections.adopt import STATE_DOCUMENT
from detent.engine.projections.projector import MARKER
from detent.engine.projections.publish import LEDGER, UNREADABLE, digest, edited_documents, read_ledger
from detent.hooks.record import has_prefix
from detent.store.port import PROJECT

#: What was told last, and to whom: the same is not said after every call.
TOLD = ".drift"


class Drift(NamedTuple):
    #: In words, each with what to do about it.
    problems: list[str]
    #: Whether the record itself is in doubt; nothing must be written over it then.
    is_grave: bool = False


def look(project: Project) -> Drift:
    """Call it before anything is brought up to date."""
    document, active = _written(project), project.active()
    flow = document.get("active_workflow") or {}
    name = flow.get("session_id")
    if name and not has_prefix(document, project.store.location("")):
        return Drift([f"the journal of {name} no longer holds what {STATE_DOCUMENT} was made from"], is_grave=True)
    problems = []
    if name and active is None:
        problems.append(f"the marker {MARKER}{name} was removed, so no session is active any more")
    if active is not None:
        if project.store.get(STATE_DOCUMENT) is None:
            problems.append(f"{STATE_DOCUMENT} was missing and was written anew")
        torn = _torn_bytes(project, active)
        if torn:
            problems.append(
                f"{torn} bytes stand behind the last commit of the journal of {active}; they count for nothing"
            )
    past, known = project.store.get(history.NAME), read_ledger(project.store, LEDGER).get(history.NAME)
    if known and (past is None or digest(past) not in known):
        problems.append(f"{history.NAME} was changed; detent doctor tells what is wrong with it")
    return Drift(problems)


def only_new(project: Project, client_session: str, problems: list[str]) -> list[str]:
    """None if this client session was told just that the last time."""
    text = "\n".join((client_session, *problems)).encode("utf-8", "replace")
    if not problems or project.store.get(TOLD) == text:
        return []
    with project.store.lock(PROJECT):
        project.store.put(TOLD, text)
    return problems


def _torn_bytes(project: Project, session: str) -> int:
    journal = project.journal(session)
    journal.session()
    # A commit that is just being written looks torn to whoever does not wait for it.
    with project.store.lock(session):
        return project.store.read(session, journal.end).torn


def _written(project: Project) -> dict[str, Any]:
    """The state document, if it is as Detent wrote it: what an edit says about the journal proves nothing."""
    data = project.store.get(STATE_DOCUMENT)
    if data is None or edited_documents(project.store, [STATE_DOCUMENT]):
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except UNREADABLE:
        return {}
