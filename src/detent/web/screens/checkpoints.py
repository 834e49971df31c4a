"""The list of checkpoints, and the plan of a rollback."""

from typing import Any

from detent.documents.checkpoint import Position
from detent.engine.project import Project

#: Checkpoints of one answer.
MAX_LISTED = 2_000


def checkpoints_screen(project: Project, name: str) -> dict[str, Any]:
    positions = project.checkpoints.positions(name)
    return {
        "checkpoints": [_record(position) for position in reversed(positions[-MAX_LISTED:])],
        "left_out": max(0, len(positions) - MAX_LISTED),
        "undo": project.journal(name).session().rollback is not None,
    }


def _record(position: Position) -> dict[str, Any]:
    event = position.event
    return {
        "id": event.id,
        "name": event.name,
        "taken": event.taken,
        "kind": event.kind,
        "phase": event.phase,
        "attempt": event.attempt,
        "at": position.at,
        "by": position.actor.shown,
        "files": event.tree.files,
        "bytes": event.tree.bytes,
        "left_out": event.tree.left_out,
        "note": event.note,
        "version": position.version,
    }
