"""Checks that run in a process of their own, beside the command that waits for them. They record their own receipt."""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.errors import CheckRunning
from detent.store.port import PROJECT, Store

if TYPE_CHECKING:
    from detent.engine.project import Project

_TICK_S = 0.1
#: Seconds that a check has to end by itself: those that its command has, and some more.
_END_S = process.GRACE_S + 5.0


class CheckProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The process that runs the check of a gate."""

    gate: str
    host: str
    pid: int
    #: Start time of the process; a later process may have the same id.
    born: str
    since: datetime

    def is_alive(self) -> bool:
        return self.host == os.uname().nodename and process.born(self.pid) == self.born


def live_check(store: Store, session: str, gate: str) -> CheckProcess | None:
    """The check of the gate that runs in the background; None if none does."""
    data = store.get(_name(session, gate))
    try:
        check = msgspec.json.decode(data, type=CheckProcess) if data else None
    except msgspec.DecodeError:
        # Nothing but waiting depends on it.
        return None
    return check if check is not None and check.is_alive() else None


def start_check(project: "Project", session: str, gate: str, phase: str) -> CheckProcess:
    """Start the check of a gate in the background; the one that runs already if there is one."""
    command = [sys.executable, "-P", "-m", "detent", "gate", "run", gate, "--phase", phase, "--session", session]
    if project.place.project is not None:
        command += ["--project", project.place.project]
    # Under the lock, so that two commands do not start two checks.
    with project.store.lock(PROJECT):
        running = live_check(project.store, session, gate)
        if running is not None:
            return running
        project.store.back_up(session)
        pid = process.detach(command, cwd=project.place.base)
        born, host = process.born(pid) or "", os.uname().nodename
        check = CheckProcess(gate=gate, host=host, pid=pid, born=born, since=project.clock())
        project.store.put(_name(session, gate), msgspec.json.encode(check))
    return check


def wait_for(check: CheckProcess, patience_s: float | None, tell: Callable[[str, float], object] | None = None) -> None:
    """Wait until the check ends. Raises `CheckRunning` after `patience_s`; None waits for ever."""
    began_s = time.monotonic()
    while _is_running(check):
        waited_s = time.monotonic() - began_s
        if patience_s is not None and waited_s >= patience_s:
            raise CheckRunning(
                f"the check of gate {check.gate} is running (process {check.pid}); its verdict is PENDING",
                way_out=f"detent gate wait {check.gate}, then finish again",
            )
        if tell is not None:
            tell(check.gate, waited_s)
        time.sleep(_TICK_S)


def end_check(check: CheckProcess) -> None:
    """End a check that this process started, as Ctrl-C does: the command of the check ends first, and nothing is left.

    A check that does not end by itself is killed.
    """
    with suppress(ProcessLookupError):
        os.kill(check.pid, signal.SIGINT)
    until_s = time.monotonic() + _END_S
    while _is_running(check):
        if time.monotonic() > until_s:
            process.end_group(check.pid)
            return
        time.sleep(_TICK_S)


def _is_running(check: CheckProcess) -> bool:
    # A process that this one started stays known to the system until it is waited for.
    with suppress(ChildProcessError):
        os.waitpid(check.pid, os.WNOHANG)
    return check.is_alive()


def _name(session: str, gate: str) -> str:
    return f"{session}/.process/check-{gate}.json"
