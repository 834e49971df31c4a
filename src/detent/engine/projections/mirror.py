"""Mirrors the session into the workflow document of a client that reads one, and the Markdown page beside it.

Both only show the session; nothing is read back. They are written if Detent is installed in such a client, or if their
directory exists. A file that cannot be written is reported and stops nothing: the next change writes it.
"""

import os

from detent.clients.registry import guarded_files, shown_to
from detent.config.place import Place, is_worktree
from detent.core.session.session import Session
from detent.engine.gates.applicable import INSTALLED
from detent.engine.stores import checkout_store
from detent.errors import DetentError, StoreFailed


def mirror(place: Place, session: Session) -> list[str]:
    """Write both files; returns a notice for each failure."""
    if not _is_wanted(place):
        return []
    from detent.documents import workflow  # noqa: PLC0415 - most projects never need it

    try:
        workflow.show(place.base, workflow.from_session(session))
    except (DetentError, OSError, UnicodeError) as error:
        return [f"{workflow.STATE} could not be brought up to date: {error}"]
    return []


def _is_wanted(place: Place) -> bool:
    """In a monorepo only a package that has the directory: the client is installed once, for all of them.

    Never in a worktree, from where it would be merged.
    """
    if is_worktree(place):
        return False
    if any(os.path.isdir(os.path.join(place.base, os.path.dirname(path))) for path in guarded_files()["document"]):
        return True
    if place.project is not None:
        return False
    try:
        manifest = checkout_store(place.root).get(INSTALLED) or b""
    except StoreFailed:
        return False
    return any(name.encode() in manifest for name in shown_to())
