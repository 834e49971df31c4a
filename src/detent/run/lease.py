"""The lease of a run: one runner a session; another may take it after the runner died."""

import os
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.engine.run_lease import NAME, RunLease, lease_time, live_lease, read_lease
from detent.errors import Conflict, LockTimeout
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from detent.engine.project import Project

BEAT_S = 15.0
#: Maximum wait for the lock at a heartbeat.
BEAT_WAIT_S = 1.0


def new_run() -> str:
    """The id of a new run."""
    return f"run-{secrets.token_hex(4)}"


class Lease:
    """Held while a session is run. Raises `Conflict`, naming the holder, if another runner holds it."""

    def __init__(
        self,
        project: "Project",
        session: str,
        *,
        off: str | None = None,
        run: str | None = None,
        on: str = "",
        yields_to: Callable[[str], bool] = lambda run: False,  # noqa: ARG005
    ) -> None:
        """`off` says why the run has no sandbox; None if it has one.

        `on` names the scheduler of machines that keeps one runner a session: a runner of the same one takes over,
        unless it yields to the run that holds the lease.
        """
        self._project, self._name = project, f"{session}/{NAME}"
        #: By the clock of this machine, as the intervals between two beats are.
        self._beaten = now = project.clock()
        self._own = RunLease(
            run=run or new_run(),
            owner=project.actor.name,
            host=os.uname().nodename,
            pid=os.getpid(),
            born=process.born(os.getpid()) or "",
            since=now,
            beat=lease_time(project.store, now),
            sandbox="on" if off is None else f"off: {off}",
            on=on,
        )
        with project.store.lock(PROJECT):
            before = project.store.get(self._name)
            other = live_lease(project.store, session, now=now)
            is_free = other is None or (on != "" and other.on == on and not yields_to(other.run))
            # Of several machines that see no live lease, one takes it.
            if not is_free or not project.store.swap(self._name, before, msgspec.json.encode(self._own)):
                running = other or read_lease(project.store, session) or "a runner on another machine"
                raise Conflict(f"{session} is being run by {running}", way_out="detent watch")
        #: Whether an earlier runner did not give the session back: it died, or it may work on.
        self.took_over = before is not None

    @property
    def run(self) -> str:
        return self._own.run

    def keep(self) -> bool:
        """Renew the lease at intervals; False if another runner took the session."""
        now, store = self._project.clock(), self._project.store
        if now - self._beaten < timedelta(seconds=BEAT_S):
            return True
        try:
            with store.lock(PROJECT, wait_s=BEAT_WAIT_S):
                renewed = msgspec.structs.replace(self._own, beat=lease_time(store, now))
                if not store.swap(self._name, msgspec.json.encode(self._own), msgspec.json.encode(renewed)):
                    return False
                self._own, self._beaten = renewed, now
        except LockTimeout:
            # Another process holds the lock for long; the next beat renews the lease.
            return True
        return True

    def give_back(self) -> None:
        with self._project.store.lock(PROJECT):
            self._project.store.swap(self._name, msgspec.json.encode(self._own), None)
