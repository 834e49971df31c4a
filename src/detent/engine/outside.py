"""Changes that no command made: documents that were edited by hand, and detent.toml.

Reading says that they are there. The next command that changes something adopts or records them (`reconcile.py`).
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from detent.config import place as places
from detent.core.gate.evidence import Facts
from detent.documents import SESSION_DOCUMENT, SHOWN_WORKFLOW, STATE_DOCUMENT
from detent.engine.projections.publish import edited_documents
from detent.engine.projections.task_progress import MAX_WATCHED, read_progress
from detent.errors import Refused

if TYPE_CHECKING:
    from detent.engine.project import Project


def pending_edits(project: "Project") -> list[str]:
    """The documents of the active session that were edited by hand."""
    active, store = project.active(), project.store
    if active is None:
        return []
    documents = edited_session_documents(project, active)
    if edited_workflow(project) is not None:
        from detent.documents import workflow  # noqa: PLC0415

        documents.append(workflow.STATE)
    count = read_progress(store, active).count
    if count > MAX_WATCHED or (not count and not store.names(f"{active}/.task/IMPL")):
        return documents
    if project.is_damaged(active):
        return documents
    from detent.engine.projections.task_files import TaskFiles  # noqa: PLC0415 - few sessions have tasks

    return [*documents, *TaskFiles(store, project.journal(active)).edited()]


def edited_session_documents(project: "Project", active: str) -> list[str]:
    """The state document and the session document, if they were edited by hand."""
    return edited_documents(project.store, [STATE_DOCUMENT, f"{active}/{SESSION_DOCUMENT}"])


def edited_workflow(project: "Project") -> bytes | None:
    """The workflow document of a client, if it was edited by hand."""
    if project.store.get(SHOWN_WORKFLOW) is None:
        return None
    from detent.engine.projections import mirror  # noqa: PLC0415 - most projects have none

    return mirror.edited_workflow(project.store, project.place)


def pending_settings(project: "Project") -> list[str]:
    """Says that detent.toml was changed since the active session last saw it."""
    active = project.active()
    if active is None or _has_old_settings(project, active) or project.is_damaged(active):
        return []
    session, digest = project.journal(active).session(), places.settings_digest(project.place.root)
    if session.options.settings == digest:
        return []
    from detent.core.session.commands import RecordSettings  # noqa: PLC0415
    from detent.core.session.decide import decide  # noqa: PLC0415
    from detent.core.session.describe import event_lines  # noqa: PLC0415

    return event_lines(decide(session, RecordSettings(digest=digest)))


def notice_settings(project: "Project", name: str) -> None:
    """Record once that detent.toml was changed, and who was at work."""
    journal, digest = project.journal(name), places.settings_digest(project.place.root)
    session = journal.session()
    if session.options.settings == digest or session.has_ended:
        return
    from detent.core.session.commands import RecordSettings  # noqa: PLC0415
    from detent.core.session.decide import decide  # noqa: PLC0415
    from detent.core.session.describe import event_lines  # noqa: PLC0415

    command, facts = RecordSettings(digest=digest), Facts(now=project.clock())
    # Another process may be faster.
    with suppress(Refused):
        done = journal.commit(lambda session: decide(session, command, facts), actor=project.actor, now=facts.now)
        project.notices.extend(event_lines(done.commit.events))


def _has_old_settings(project: "Project", name: str) -> bool:
    """Whether detent.toml is older than the documents of the session, which saves reading a long journal."""
    if project.journal(name).is_loaded:
        return False
    root = project.place.root
    config = os.path.join(root, places.CONFIG)
    # A file that is not there may have been removed, which changes the directory.
    changed = os.stat(config).st_ctime_ns if os.path.exists(config) else os.stat(root).st_mtime_ns
    return changed < project.store.written(f"{name}/{SESSION_DOCUMENT}")
