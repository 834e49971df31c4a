"""Says which snapshots of the shared place are no longer needed."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detent.engine.project import Project


def old_snapshots(project: "Project", names: Iterable[str], keep: timedelta) -> list[str]:
    """The snapshots of sessions of this project that ended longer ago than `keep`."""
    known, now = set(project.store.sessions()), project.clock()
    ended: dict[str, bool] = {}
    for session in {name.partition("/")[0] for name in names} & known:
        state = project.journal(session).session()
        ended[session] = state.has_ended and now - state.updated_at >= keep
    return sorted(name for name in names if ended.get(name.partition("/")[0], False))
