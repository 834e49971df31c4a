"""A session as an entry of a list."""

from datetime import datetime

import msgspec

from detent.core.session.events import Claim


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list. `problem` says why the rest is empty."""

    id: str
    status: str
    task: str = ""
    workflow: str = ""
    phase: str | None = None
    #: The name of the phase for people.
    where: str = ""
    started_at: datetime | None = None
    last_activity: datetime | None = None
    last_by: str = ""
    paused_at: datetime | None = None
    tasks_done: int = 0
    tasks: int = 0
    archived: bool = False
    #: Who works on which task.
    claims: dict[str, Claim] = {}
    problem: str | None = None
