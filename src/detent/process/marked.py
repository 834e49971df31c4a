"""Finds and ends processes by a mark in their environment.

A process can leave its group, and its parent can die, but its descendants inherit the environment it was started with.
Only a process that is started with an emptied environment is not found.
"""

import os
import signal
import time
from contextlib import suppress

from detent.process import GRACE_S, run, stat

_TICK_S = 0.02
#: Number of tries for a process whose environment cannot be read yet.
_LOOKS, _PAUSE_S = 5, 0.002
#: Parents of processes that are no programs: none, and that of kernel threads.
_SYSTEM = (0, 2)
#: The fields of /proc/PID/stat, from the state on, with the addresses where the environment begins and ends.
_BOUNDS = slice(47, 49)


def marked(*marks: str) -> list[int]:
    """The processes of this user, except this one, whose environment has every `NAME=value` of `marks`."""
    wanted = [mark.encode() for mark in marks]
    if os.path.isdir("/proc/self"):
        return _carrying(_own_processes(), wanted)
    # Without /proc, `ps` prints the environment in one line for each process.
    shown = run(["ps", "-x", "-E", "-ww", "-o", "pid=,command="], cwd="/", timeout_s=10.0, tail_bytes=16 * 1024 * 1024)
    lines = (line.split(None, 1) for line in shown.output.splitlines())
    return [
        int(parts[0])
        for parts in lines
        if len(parts) == 2 and all(f" {mark} " in f"{parts[1]} " for mark in marks) and int(parts[0]) != os.getpid()
    ]


def end_marked(*marks: str) -> int:
    """End the marked processes with SIGTERM, then SIGKILL; returns their number."""
    pids = marked(*marks)
    ended = len(pids)
    for kind in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, kind)
        until = time.monotonic() + GRACE_S
        while pids and time.monotonic() < until:
            time.sleep(_TICK_S)
            pids = marked(*marks)
        if not pids:
            break
    return ended


def kill_marked(*marks: str) -> None:
    """Kill the marked processes, and those that they start meanwhile."""
    until = time.monotonic() + GRACE_S
    while (pids := marked(*marks)) and time.monotonic() < until:
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _carrying(pids: list[int], wanted: list[bytes]) -> list[int]:
    matches: list[int] = []
    for _ in range(_LOOKS):
        environments = {pid: _environment(pid) for pid in pids}
        matches += [pid for pid, have in environments.items() if have is not None and have.issuperset(wanted)]
        pids = [pid for pid, have in environments.items() if have is None]
        if not pids:
            break
        time.sleep(_PAUSE_S)
    return matches


def _own_processes() -> list[int]:
    own, me = os.getuid(), os.getpid()
    pids = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != me:
            with suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == own:
                    pids.append(int(name))
    return pids


def _environment(pid: int) -> set[bytes] | None:
    """The initial environment of the process; None while it executes another program and has none to read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = file.read()
    except OSError:
        return set()
    if data:
        return set(data.split(b"\0"))
    # A process that has ended and a kernel thread have no environment.
    fields = stat(pid)
    if not fields or int(fields[1]) in _SYSTEM:
        return set()
    # Its bounds are zero meanwhile. Others that are equal are those of an environment without variables.
    begin, end = fields[_BOUNDS]
    return set() if begin == end != b"0" else None
