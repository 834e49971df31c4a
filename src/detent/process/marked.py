"""Processes that carry a mark in their environment: all that was started for something, wherever they went since.

A group can be left and a parent can die; the environment a process was started with stays with all that it starts. Only
one that starts others with an emptied environment gets away.
"""

import os
import signal
import time
from contextlib import suppress

from detent.process import GRACE_S, run, stat

_TICK_S = 0.02
#: How often is looked at a process that cannot be told yet.
_LOOKS, _PAUSE_S = 5, 0.002
#: The parents of what is no program: nobody, and the one of the system's own threads.
_SYSTEM = (0, 2)


def marked(*marks: str) -> list[int]:
    """The processes of this user, except this one, whose environment has every `NAME=value` of `marks`."""
    wanted = [mark.encode() for mark in marks]
    if os.path.isdir("/proc/self"):
        return _carrying(_own_processes(), wanted)
    # Elsewhere only `ps` can tell, in one line for each process.
    shown = run(["ps", "-x", "-E", "-ww", "-o", "pid=,command="], cwd="/", timeout_s=10.0, tail_bytes=16 * 1024 * 1024)
    lines = (line.split(None, 1) for line in shown.output.splitlines())
    return [
        int(parts[0])
        for parts in lines
        if len(parts) == 2 and all(f" {mark} " in f"{parts[1]} " for mark in marks) and int(parts[0]) != os.getpid()
    ]


def end_marked(*marks: str) -> int:
    """End them, kindly and then firmly; how many there were."""
    found = marked(*marks)
    ended = len(found)
    for kind, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, kind)
        until = time.monotonic() + patience_s
        while found and time.monotonic() < until:
            time.sleep(_TICK_S)
            found = marked(*marks)
        if not found:
            break
    return ended


def kill_marked(*marks: str) -> None:
    """End them at once, and what they started meanwhile."""
    until = time.monotonic() + GRACE_S
    while (found := marked(*marks)) and time.monotonic() < until:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _carrying(pids: list[int], wanted: list[bytes]) -> list[int]:
    found: list[int] = []
    for _ in range(_LOOKS):
        known = {pid: _environment(pid) for pid in pids}
        found += [pid for pid, have in known.items() if have is not None and have.issuperset(wanted)]
        pids = [pid for pid, have in known.items() if have is None]
        if not pids:
            break
        time.sleep(_PAUSE_S)
    return found


def _own_processes() -> list[int]:
    own, me = os.getuid(), os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != me:
            with suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == own:
                    found.append(int(name))
    return found


def _environment(pid: int) -> set[bytes] | None:
    """What the process was started with; None while it takes on another program, when nobody can tell."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = file.read()
    except OSError:
        return set()
    if data:
        return set(data.split(b"\0"))
    # One that has ended, or is part of the system, has none at all.
    fields = stat(pid)
    return set() if not fields or int(fields[1]) in _SYSTEM else None
