"""Who runs a session: one at a time, and whoever died is succeeded."""

import os
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.core.actor import as_runner
from detent.engine.run_lease import NAME, RunLease, live_lease, read_lease
from detent.errors import Conflict, LockTimeout
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

BEAT_S = 15.0
#: A beat is not worth waiting longer for.
BEAT_WAIT_S = 1.0


def left_behind(project: "Project") -> "list[SessionHandle]":
    """The sessions whose runner died without giving them back."""
    found = [name for name in project.store.sessions() if read_lease(project.store, name) is not None]
    dead = [name for name in found if live_lease(project.store, name, now=project.clock()) is None]
    return [project.session(name, actor=as_runner(project.actor)) for name in dead]


class Lease:
    """Held while a session is run. `Conflict`, naming who has it, if somebody else does."""

    def __init__(self, project: "Project", session: str) -> None:
        self._project, self._session = project, session
        now = project.clock()
        self._own = RunLease(
            run=f"run-{secrets.token_hex(4)}",
            owner=project.actor.name,
            host=os.uname().nodename,
            pid=os.getpid(),
            born=process.born(os.getpid()) or "",
            since=now,
            beat=now,
        )
        with project.store.lock(PROJECT):
            other = live_lease(project.store, session, now=now)
            if other is not None:
                raise Conflict(f"{session} is being run by {other}", way_out="detent watch")
            self._write()

    @property
    def run(self) -> str:
        return self._own.run

    def keep(self) -> bool:
        """Say that the holder is alive, now and then; False if somebody took the session over meanwhile."""
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
            # Somebody writes long documents; the next beat is early enough.
            return True
        return True

    def give_back(self) -> None:
        with self._project.store.lock(PROJECT):
            if self._is_own():
                self._project.store.delete(f"{self._session}/{NAME}")

    def _is_own(self) -> bool:
        found = read_lease(self._project.store, self._session)
        return found is not None and found.run == self._own.run

    def _write(self) -> None:
        self._project.store.put(f"{self._session}/{NAME}", msgspec.json.encode(self._own))
