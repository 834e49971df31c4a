"""Who runs a session: one at a time, and whoever died is succeeded.

On one machine the process tells whether the holder lives; from another one only its beat does.
"""

import os
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.config.place import RUNNER
from detent.errors import Conflict, LockTimeout
from detent.store.port import PROJECT, Store

if TYPE_CHECKING:
    from detent.engine.handle import SessionHandle
    from detent.engine.project import Project

BEAT_S = 15.0
#: A beat is not worth waiting longer for.
BEAT_WAIT_S = 1.0
#: A holder on another machine that was not heard of for so long is dead.
LEASE_S = 60.0


class Holder(msgspec.Struct, frozen=True, kw_only=True):
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


def holder(store: Store, session: str, *, now: datetime) -> Holder | None:
    """Who runs the session, if whoever said so last is alive."""
    found = _read(store, session)
    return found if found is not None and _is_alive(found, now) else None


def being_run(project: "Project") -> dict[str, Holder]:
    """The sessions that somebody runs now."""
    found = {name: holder(project.store, name, now=project.clock()) for name in project.store.sessions()}
    return {name: one for name, one in found.items() if one is not None}


def left_behind(project: "Project") -> "list[SessionHandle]":
    """The sessions whose runner died without giving them back."""
    found = [name for name in project.store.sessions() if _read(project.store, name) is not None]
    dead = [name for name in found if holder(project.store, name, now=project.clock()) is None]
    return [project.session(name) for name in dead]


class Lease:
    """Held while a session is run. `Conflict`, naming who has it, if somebody else does."""

    def __init__(self, project: "Project", session: str) -> None:
        self._project, self._session = project, session
        now = project.clock()
        self._own = Holder(
            run=f"run-{secrets.token_hex(4)}",
            owner=project.actor,
            host=os.uname().nodename,
            pid=os.getpid(),
            born=process.born(os.getpid()) or "",
            since=now,
            beat=now,
        )
        with project.store.lock(PROJECT):
            other = holder(project.store, session, now=now)
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
                self._project.store.delete(f"{self._session}/{RUNNER}")

    def _is_own(self) -> bool:
        found = _read(self._project.store, self._session)
        return found is not None and found.run == self._own.run

    def _write(self) -> None:
        self._project.store.put(f"{self._session}/{RUNNER}", msgspec.json.encode(self._own))


def _read(store: Store, session: str) -> Holder | None:
    data = store.get(f"{session}/{RUNNER}")
    try:
        return msgspec.json.decode(data, type=Holder) if data else None
    except msgspec.DecodeError:
        # Only a note of who is at work: one that cannot be read is of nobody.
        return None


def _is_alive(found: Holder, now: datetime) -> bool:
    if found.host == os.uname().nodename:
        return process.born(found.pid) == found.born
    return now - found.beat < timedelta(seconds=LEASE_S)
