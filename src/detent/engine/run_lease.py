"""The note of who runs a session. A runner writes it (`run/lease.py`); everybody may have to know.

On one machine the process tells whether the one who wrote it lives; from another one only its beat does.
"""

import os
from datetime import datetime, timedelta

import msgspec

from detent.store.port import Store

NAME = ".process/runner.json"
#: Somebody on another machine who was not heard of for so long is dead.
LEASE_S = 60.0


class RunLease(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    owner: str
    host: str
    pid: int
    #: Tells the process from a later one with the same number.
    born: str
    since: datetime
    beat: datetime

    def __str__(self) -> str:
        return f"{self.owner} (process {self.pid} on {self.host}, since {self.since.astimezone():%H:%M})"


def live_lease(store: Store, session: str, *, now: datetime) -> RunLease | None:
    """Who runs the session, if whoever said so last is alive."""
    found = read_lease(store, session)
    return found if found is not None and _is_alive(found, now) else None


def live_leases(store: Store, *, now: datetime) -> dict[str, RunLease]:
    """The sessions that somebody runs now."""
    found = {name: live_lease(store, name, now=now) for name in store.sessions()}
    return {name: one for name, one in found.items() if one is not None}


def read_lease(store: Store, session: str) -> RunLease | None:
    """Who said so last, alive or not."""
    data = store.get(f"{session}/{NAME}")
    try:
        return msgspec.json.decode(data, type=RunLease) if data else None
    except msgspec.DecodeError:
        # Only a note of who is at work: one that cannot be read is of nobody.
        return None


def _is_alive(found: RunLease, now: datetime) -> bool:
    if found.host != os.uname().nodename:
        return now - found.beat < timedelta(seconds=LEASE_S)
    from detent import process  # noqa: PLC0415 - slow to load, and mostly nobody runs it

    return process.born(found.pid) == found.born
