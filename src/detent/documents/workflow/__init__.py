"""The workflow document: its shape, its views, the file that holds it, and what a session looks like in it."""

from detent.documents.workflow.file import (
    ARCHIVE,
    MARKDOWN,
    STATE,
    create_workflow_state,
    get_workflow_state,
    show,
    update_phase_status,
)
from detent.documents.workflow.projection import from_session
from detent.documents.workflow.shape import check, new, with_phase_status, workflow_id
from detent.documents.workflow.view import generate_markdown, todos

__all__ = [
    "ARCHIVE",
    "MARKDOWN",
    "STATE",
    "check",
    "create_workflow_state",
    "from_session",
    "generate_markdown",
    "get_workflow_state",
    "new",
    "show",
    "todos",
    "update_phase_status",
    "with_phase_status",
    "workflow_id",
]
