"""The lease of a run: which process runs a session. `run/lease.py` writes it; every surface may read it.

On the same machine the process id and its start time show whether the holder is alive. On another machine only the
heartbeat does.
"""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from detent.engine.projections.publish import UNREADABLE
from detent.store.port import Store

#: A time without a zone could not be compared.
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
NAME = ".process/runner.json"
#: A holder on another machine is dead after this long without a heartbeat.
LEASE_S = 60.0


class RunLease(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    owner: str
    host: str
    pid: int
    #: Start time of the process; a later process may have the same id.
    born: str
    since: Moment
    beat: Moment
    #: `on`, or `off` and the reason.
    sandbox: str = ""
    #: The scheduler of machines that started the runner; empty for a run of this machine alone.
    on: str = ""

    def __str__(self) -> str:
        return f"{self.owner} (process {self.pid} on {self.host}, since {self.since.astimezone():%H:%M})"


def live_lease(store: Store, session: str, *, now: datetime) -> RunLease | None:
    """The lease of the session, if its holder is alive."""
    lease = read_lease(store, session)
    return lease if lease is not None and _is_alive(lease, store, now) else None


def lease_time(store: Store, now: datetime) -> datetime:
    """The time of a heartbeat: that of the clock which all machines share, if there is one."""
    return store.now() or now


def live_leases(store: Store, *, now: datetime) -> dict[str, RunLease]:
    """The live leases of all sessions, by session."""
    return {name: lease for name, lease in _leases(store) if _is_alive(lease, store, now)}


def dead_leases(store: Store, *, now: datetime) -> list[str]:
    """The sessions whose holder died."""
    return [name for name, lease in _leases(store) if not _is_alive(lease, store, now)]


def _leases(store: Store) -> Iterator[tuple[str, RunLease]]:
    for name, data in store.of_sessions(NAME).items():
        if (lease := _decoded(data)) is not None:
            yield name, lease


def read_lease(store: Store, session: str) -> RunLease | None:
    """The lease that was written last, whether or not its holder is alive."""
    return _decoded(store.get(f"{session}/{NAME}"))


def _decoded(data: bytes | None) -> RunLease | None:
    try:
        return msgspec.json.decode(data, type=RunLease) if data else None
    except UNREADABLE:
        # The fence in the token decides about commits. An unreadable lease only hides the runner from `status`.
        return None


def is_here(lease: RunLease) -> bool:
    """Whether the run works with the processes and files of this machine."""
    return not lease.on and lease.host == os.uname().nodename


def _is_alive(lease: RunLease, store: Store, now: datetime) -> bool:
    if not is_here(lease):
        # A beat of the future is no sign of life either: such a lease would never end.
        return abs(lease_time(store, now) - lease.beat) < timedelta(seconds=LEASE_S)
    from detent import process  # noqa: PLC0415 - slow to load, and most sessions have no lease

    return process.born(lease.pid) == lease.born
