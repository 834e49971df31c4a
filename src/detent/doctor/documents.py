"""Checks the documents that are computed from the journals.

I2: every document and the history equal their projection, or are a pending edit. I6: the index, the status maps and the
current phase of the state document agree.
"""

from collections.abc import Iterator

from detent.core.session.session import Session
from detent.doctor.finding import FIX, WARNING, Finding, finding
from detent.documents import SESSION_DOCUMENT, STATE_DOCUMENT
from detent.documents.state import history_entry, mirror_violations
from detent.engine.project import Project
from detent.engine.projections import history
from detent.engine.projections.publish import decoded, edited_documents
from detent.errors import DetentError


def shown_here(project: Project, folded: dict[str, Session]) -> dict[str, Session]:
    """The sessions whose views on this machine should be up to date.

    Other machines commit to a shared journal. The views here follow when a command here is about the session.
    """
    if not project.store.is_shared:
        return folded
    return {name: session for name, session in folded.items() if _shown_version(project, name) == session.version}


def _shown_version(project: Project, name: str) -> object:
    document = decoded(project.store.get(f"{name}/{SESSION_DOCUMENT}"))
    return document.get("version") if isinstance(document, dict) else None


def check_documents(project: Project, folded: dict[str, Session]) -> Iterator[Finding]:
    active = project.active()
    names = [f"{name}/{SESSION_DOCUMENT}" for name in folded]
    pending = edited_documents(project.store, [*names, STATE_DOCUMENT])
    for name in pending:
        yield finding("I2", name, "it was edited by hand", "detent adopt", severity=WARNING)
    for name, expected in project.documents(folded).items():
        current = project.store.get(name)
        if name not in pending and current != expected:
            what = "is missing" if current is None else "is behind the journal"
            yield finding("I2", name, what, "any command that changes something rewrites it, or detent adopt")
    if active is not None and STATE_DOCUMENT not in pending:
        for violation in mirror_violations(decoded(project.store.get(STATE_DOCUMENT))):
            if violation.rule != "V9-C":  # assumes that phases come one after another
                yield finding("I6", STATE_DOCUMENT, f"{violation.path}: {violation.message}", FIX)


def check_history(project: Project, folded: dict[str, Session]) -> Iterator[Finding]:
    try:
        entries = {entry.get("session_id"): entry for entry in history.read_history(project.store)}
    except DetentError as error:
        yield finding("I2", history.NAME, error.message, FIX)
        return
    for name, session in folded.items():
        ended = session.has_ended
        if ended and entries.get(name) != history_entry(session):
            what = "has no line" if name not in entries else "has a line that does not match its journal"
            yield finding("I2", history.NAME, f"{name} was {session.status} but {what}", FIX)
