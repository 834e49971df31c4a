"""The lease of a run: one runner a session; another may take it after the runner died."""

import os
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.engine.run_lease import NAME, RunLease, live_lease, read_lease
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
        self, project: "Project", session: str, *, off: str | None = None, run: str | None = None, on: str = ""
    ) -> None:
        """`off` says why the run has no sandbox; None if it has one.

        `on` names the scheduler of machines that keeps one runner a session: a runner of the same one takes over.
        """
        self._project, self._session = project, session
        now = project.clock()
        self._own = RunLease(
            run=run or new_run(),
            owner=project.actor.name,
            host=os.uname().nodename,
            pid=os.getpid(),
            born=process.born(os.getpid()) or "",
            since=now,
            beat=now,
            sandbox="on" if off is None else f"off: {off}",
            on=on,
        )
        with project.store.lock(PROJECT):
            other = live_lease(project.store, session, now=now)
            if other is not None and not (on and other.on == on):
                raise Conflict(f"{session} is being run by {other}", way_out="detent watch")
            self._write()

    @property
    def run(self) -> str:
        return self._own.run

    def keep(self) -> bool:
        """Renew the lease at intervals; False if another runner took the session."""
        now = self._project.clock()
        if now - self._own.beat < timedelta(seconds=BEAT_S):
            return True
        try:
            with self._project.store.lock(PROJECT, wait_s=BEAT_WAIT_S):
                if not self._is_own():
                    return False
                self._own = msgspec.structs.replace(self._own, beat=now)
                self._write()
        except LockTimeout:
            # Another process holds the lock for long; the next beat renews the lease.
            return True
        return True

    def give_back(self) -> None:
        with self._project.store.lock(PROJECT):
            if self._is_own():
                self._project.store.delete(f"{self._session}/{NAME}")

    def _is_own(self) -> bool:
        lease = read_lease(self._project.store, self._session)
        return lease is not None and lease.run == self._own.run

    def _write(self) -> None:
        self._project.store.put(f"{self._session}/{NAME}", msgspec.json.encode(self._own))
