"""The line for a client's status bar: progress, phases in progress, pending decisions."""

import os
from typing import Any

import msgspec

from detent.core.actor import Channel
from detent.core.session.status import Status
from detent.engine.workspace import Workspace
from detent.errors import DetentError


def main(data: bytes) -> str:
    try:
        payload: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        return ""
    where = (payload.get("workspace") or {}).get("project_dir") or payload.get("cwd") or os.getcwd()
    try:
        workspace = Workspace(where)
        with workspace.read(workspace.actor(Channel.HOOK)) as project:
            session = project.session().state
    except DetentError:
        return ""
    done, total = len(session.with_status(Status.COMPLETED)), len(session.active_order)
    live = ", ".join(session.with_status(Status.IN_PROGRESS)) or (
        f"next {session.ready[0]}" if session.ready else "waiting"
    )
    held = f" · {len(session.escalations)} to decide" if session.escalations else ""
    return f"detent {done}/{total} {live}{held}"
