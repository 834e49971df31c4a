"""The session as Claude Code's own tools look for it: `.claude/state/workflow.json` and a Markdown page beside it.

Both only show the session; nothing is read back. They are written where that client is installed, or where somebody
made the directory for them. What cannot be written is said and stops nothing: it is written with the next change.
"""

import os

from detent.config.place import Place, is_worktree
from detent.core.session import Session
from detent.engine.applicable import INSTALLED
from detent.engine.stores import checkout_store
from detent.errors import DetentError, StoreFailed

_CLIENT = b"claude-code"
_DIRECTORY = os.path.join(".claude", "state")


def mirror(place: Place, session: Session) -> list[str]:
    """Bring both files up to date; what went wrong, in words."""
    if not _is_wanted(place):
        return []
    # Only where they are wanted: most projects never load this.
    from detent.documents import workflow  # noqa: PLC0415

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
    if os.path.isdir(os.path.join(place.base, _DIRECTORY)):
        return True
    if place.project is not None:
        return False
    try:
        return _CLIENT in (checkout_store(place.root).get(INSTALLED) or b"")
    except StoreFailed:
        return False
