"""The report of a session, as a file beside its journal."""

import os
from typing import TYPE_CHECKING

from detent.store.port import PROJECT
from detent.views.report import NAME, report_text

if TYPE_CHECKING:
    from detent.engine.handle import SessionHandle
    from detent.engine.project import Project


def write_report(project: "Project", handle: "SessionHandle") -> str:
    """Where it is."""
    text = report_text(handle.state, handle.log())
    with project.store.lock(PROJECT):
        project.store.put(f"{handle.id}/{NAME}", text.encode("utf-8", "replace"))
    return os.path.join(project.place.state, handle.id, NAME)
