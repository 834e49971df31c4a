"""The workflow document: its shape, its views and its file."""

from detent.documents.workflow.file import (
    ARCHIVE,
    MARKDOWN,
    STATE,
    create_workflow_state,
    decode,
    encode,
    get_workflow_state,
    seconds_until_free,
    show,
    update_phase_status,
)
from detent.documents.workflow.shape import (
    check,
    from_session,
    generate_markdown,
    new,
    todos,
    with_phase_status,
    workflow_id,
)

__all__ = [
    "ARCHIVE",
    "MARKDOWN",
    "STATE",
    "check",
    "create_workflow_state",
    "decode",
    "encode",
    "from_session",
    "generate_markdown",
    "get_workflow_state",
    "new",
    "seconds_until_free",
    "show",
    "todos",
    "update_phase_status",
    "with_phase_status",
    "workflow_id",
]
