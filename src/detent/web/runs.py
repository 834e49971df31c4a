"""Runs that the page starts and stops. A run is a process of its own and outlives the server."""

import os
import shlex
import signal
import sys
import time
from typing import Any

from detent import process
from detent.engine.project import Project
from detent.engine.run_lease import live_lease, read_lease
from detent.errors import Conflict, NotFound, Refused
from detent.store import disk
from detent.web.projects import KnownProject, Projects

#: The output of a run that the page started, beside its feed.
LOG = "page-run.log"
#: A run takes the session, or says why not, within this time.
_START_S_MAX = 15.0
_TICK_S = 0.1
_MAX_OUTPUT = 4_000
_ENDED = "detent-run-ended "


def start_run(projects: Projects, known: KnownProject, session: str, *, yes: bool) -> dict[str, Any]:
    """Start `detent run` for the active session, and wait until it works or says why it does not."""
    with projects.reading(known) as project:
        if project.active() != session:
            raise Conflict(f"{session} is not the active session", way_out="make it the active one first")
        running = live_lease(project.store, session, now=project.clock())
        if running is not None:
            raise Conflict(f"the session is run by {running}")
        before = read_lease(project.store, session)
        log = os.path.join(project.store.directory(f"{session}/.process"), LOG)
        base = project.place.base
    command = [sys.executable, "-P", "-m", "detent", "run", "--wait", *(["--yes"] if yes else [])]
    command += ["--project", known.package] if known.package is not None else []
    _launch(command, cwd=base, log=log)
    until_s = time.monotonic() + _START_S_MAX
    while time.monotonic() < until_s:
        with projects.reading(known) as project:
            lease = live_lease(project.store, session, now=project.clock())
        if lease is not None and (before is None or lease.run != before.run):
            return {"started": True, "pid": lease.pid, "run": lease.run}
        output = _read_end(log)
        if _ENDED in output:
            return _ended(output)
        time.sleep(_TICK_S)
    raise Conflict(f"the run has not begun within {_START_S_MAX:g} s", way_out="detent status")


def _launch(command: list[str], *, cwd: str, log: str) -> None:
    """Start the command below no process of this one: it is not the server that works, and the run outlives it."""
    with disk.failing_as("write", log):
        disk.make_directory(os.path.dirname(log))
        disk.replace(log, b"", suffix=f".{os.getpid()}.tmp")
    typed, file = shlex.join(command), shlex.quote(log)
    script = f"( {{ {typed}; code=$?; echo; echo {_ENDED}$code; }} </dev/null >>{file} 2>&1 & )"
    ran = process.run(script, cwd=cwd, timeout_s=_START_S_MAX)
    if ran.exit_code != 0:
        raise Conflict(f"the run could not be started: {ran.problem or ran.output[:_MAX_OUTPUT]}")


def _read_end(log: str) -> str:
    try:
        return disk.read_file(log)[-_MAX_OUTPUT:].decode("utf-8", "replace")
    except OSError:
        return ""


def _ended(output: str) -> dict[str, Any]:
    """A run that ended at once: it had nothing to do, or it was refused."""
    text, _, code = output.rpartition(_ENDED)
    if code.strip() in ("0", "6"):
        return {"started": True, "pid": None, "run": None}
    raise Refused(f"the run did not begin: {text.strip() or 'it gave no reason'}", way_out="detent run --check")


def stop_run(project: Project, session: str) -> dict[str, Any]:
    """Ask the run to pause, as Ctrl-C does."""
    lease = live_lease(project.store, session, now=project.clock())
    if lease is None:
        raise NotFound(f"no run of {session} is at work")
    if lease.host != os.uname().nodename:
        raise Refused(f"the run is on the machine {lease.host}", way_out="stop it there")
    os.kill(lease.pid, signal.SIGINT)
    return {"stopped": True, "pid": lease.pid}
