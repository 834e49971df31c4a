"""Writes the report of a session to a file beside its journal."""

from typing import TYPE_CHECKING

from detent.engine.checkpoints.changes import changes_of
from detent.render.markdown.report import NAME, report_text
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle


def write_report(project: "Project", handle: "SessionHandle") -> str:
    """Write the report and return its location."""
    text = report_text(handle.state, handle.log(), changes_of(handle))
    name = f"{handle.id}/{NAME}"
    with project.store.lock(PROJECT):
        project.store.put(name, text.encode("utf-8", "replace"))
    return project.store.location(name)
