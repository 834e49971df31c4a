"""Mirrors the session into the workflow document of a client that reads one, and the Markdown page beside it.

They are written if Detent is installed in such a client, or if their directory exists. A file that cannot be written is
reported and stops nothing: the next change writes it. An edit of the document is adopted, as one of the state document
is (`adopt_workflow`); the page is never read back.
"""

import os

import msgspec

from detent.clients.registry import guarded_files, shown_to
from detent.config.place import Place, is_worktree
from detent.core.session.session import Session
from detent.documents import INSTALLED, SHOWN_WORKFLOW, TASK_PAGE
from detent.engine.projections.publish import UNREADABLE, digest
from detent.engine.stores import checkout_store
from detent.errors import DetentError, StoreFailed
from detent.store.disk import replace
from detent.store.port import Store

#: Characters of a page of tasks that is kept up to date.
MAX_PAGE = 1024 * 1024


def mirror(store: Store, place: Place, session: Session) -> list[str]:
    """Write both files; returns a notice for each failure."""
    if not _is_wanted(place):
        return []
    from detent.documents import workflow  # noqa: PLC0415 - most projects never need it

    document = workflow.from_session(session)
    try:
        shown = digest(workflow.encode(document))
        before = _shown(store)
        if shown not in before:
            # The one before too: a crash may come before the document is written.
            store.put(SHOWN_WORKFLOW, msgspec.json.encode((*before[-1:], shown)))
        workflow.show(place.base, document)
    except (DetentError, OSError, UnicodeError) as error:
        return [f"{workflow.STATE} could not be brought up to date: {error}"]
    return []


def edited_workflow(store: Store, place: Place) -> bytes | None:
    """The workflow document, if it was changed after Detent wrote it."""
    before = _shown(store)
    if not before or not _is_wanted(place):
        return None
    from detent.documents import workflow  # noqa: PLC0415 - most projects never need it

    try:
        with open(os.path.join(place.base, workflow.STATE), "rb") as file:
            data = file.read()
    except OSError:
        return None
    return data if digest(data) not in before else None


def _shown(store: Store) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(store.get(SHOWN_WORKFLOW) or b"[]", type=tuple[str, ...])
    except UNREADABLE:
        return ()


def update_task_page(place: Place, session: Session) -> list[str]:
    """Bring `tasks.md` of the artifacts up to date, if there is one; returns a notice if that failed."""
    path = os.path.join(place.base, TASK_PAGE.format(folder=session.folder))
    if not os.path.isfile(path) or os.path.islink(path):
        return []
    from detent.documents import task_page  # noqa: PLC0415 - few projects have one

    statuses = {key: session.phases[key].status for key in session.workflow.order}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            before = file.read(MAX_PAGE)
        after = task_page.updated(before, statuses)
        if after != before and len(before) < MAX_PAGE:
            replace(path, after.encode())
    except (DetentError, OSError, UnicodeError) as error:
        return [f"{path} could not be brought up to date: {error}"]
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
