"""The functions on `workflow.json`, as the seed names them. Where a session shows itself in it, they are its commands.

Without a session they work on the file alone (`documents/workflow/file.py`).
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any

from detent.core.actor import Channel
from detent.core.session.status import Status
from detent.documents.workflow import file, from_session, generate_markdown
from detent.documents.workflow.file import Root, get_workflow_state
from detent.documents.workflow.shape import STATUSES, Document
from detent.engine.session import SessionHandle
from detent.engine.workspace import Workspace
from detent.errors import Invalid, NotFound, Refused

__all__ = ["create_workflow_state", "generate_markdown", "get_workflow_state", "update_phase_status"]


def create_workflow_state(task: str, phases: Iterable[Any], *, root: Root = ".", now: datetime | None = None) -> str:
    """Create a workflow and archive the present one. Returns its id. Refused while a session shows its own."""
    with _session(root) as handle:
        if handle is not None:
            raise Refused(
                f"{handle.id} shows its workflow there, and would write over another one",
                way_out='detent complete, or detent start adhoc "TASK" --phase TITLE:AGENT',
            )
    return file.create_workflow_state(task, phases, root=root, now=now)


def update_phase_status(
    workflow_id: str,
    phase_id: str,
    status: str,
    deliverables: Sequence[str] | None = None,
    context_for_next: str | None = None,
    *,
    context: str | None = None,
    advance: bool = True,
    force: bool = False,
    root: Root = ".",
) -> None:
    """Set the status of one phase, and start the next phase when the current one is completed.

    `context` is another name for `context_for_next`. In a session the change is begin, finish, fail or redo: a closed
    gate refuses it, as it refuses any command.
    """
    given = context if context_for_next is None else context_for_next
    if context is not None and context_for_next not in (None, context):
        raise Invalid("context and context_for_next are two names of one thing and were given two texts")
    with _session(root) as handle:
        if handle is not None and from_session(handle.state)["id"] == workflow_id:
            _change(handle, phase_id, status, deliverables, given, advance=advance)
            return
    file.update_phase_status(
        workflow_id, phase_id, status, deliverables, given, advance=advance, force=force, root=root
    )


def _change(
    handle: SessionHandle,
    phase_id: str,
    status: str,
    deliverables: Sequence[str] | None,
    context: str | None,
    *,
    advance: bool,
) -> None:
    shown = from_session(handle.state)["phases"]
    entries: dict[str, tuple[str, Document]] = {
        phase["id"]: (key, phase) for key, phase in zip(handle.state.active_order, shown, strict=True)
    }
    if phase_id not in entries:
        raise NotFound(f"{handle.id} has no phase {phase_id!r}; its phases are {', '.join(entries)}")
    if status not in STATUSES:
        raise Invalid(f"status {status!r:.100} is none of {', '.join(STATUSES)}")
    key, phase = entries[phase_id]
    if status in (phase["status"], "pending"):
        raise Refused(f"{phase_id} is {phase['status']}; nothing else can be set without a change of its status")
    now = handle.state.phases[key].status
    if status == "active":
        _begin(handle, key, now)
        return
    if now is Status.PENDING:
        handle.begin(key)
    if status == "failed":
        handle.fail((context or "").strip() or f"{phase['title']} failed", phase=key)
        return
    handle.finish(f"{phase['title']} done", phase=key, deliverables=tuple(deliverables or ()), context=context or "")
    state = handle.state
    if advance and not state.has_ended and state.ready and not state.in_progress:
        handle.begin(state.ready[0])


def _begin(handle: SessionHandle, key: str, now: Status) -> None:
    if now is Status.PENDING:
        handle.begin(key)
    else:
        handle.redo(key, reason="set to active")


@contextmanager
def _session(root: Root) -> Iterator[SessionHandle | None]:
    """The active session of the project at `root`, to be changed; None if there is none."""
    workspace = Workspace(os.fspath(root))
    with ExitStack() as stack:
        try:
            project = stack.enter_context(workspace.change(workspace.actor(Channel.LIBRARY, changes=True)))
        except NotFound:
            yield None
            return
        is_here = os.path.realpath(os.fspath(root)) == os.path.realpath(project.place.base)
        yield project.session() if is_here and project.active() is not None else None
