"""The guard's functions with the files of the clients that Detent knows."""

from collections.abc import Callable
from functools import partial
from typing import Any

from detent.clients.registry import guarded_files
from detent.core.guard import protected
from detent.core.guard.rules import GuardInput, guard
from detent.core.guard.shell.fuel import Fuel
from detent.core.guard.shell.walk import Reading

guarded = partial(protected.guarded, files=guarded_files())


def guarded_hits(targets: list[tuple[str, str, bool]], root: str, fuel: Fuel | None = None) -> list[protected.Hit]:
    return protected.guarded_hits(targets, root, guarded_files(), str, fuel or Fuel())


def command_hits(command: str, cwd: str, root: str, *, home: str = "") -> list[protected.Hit]:
    """The guarded files that a shell command would write when run in `cwd`."""
    reading = Reading(command, cwd, home)
    return protected.guarded_hits(reading.targets, root, guarded_files(), str, reading.fuel)


def denial(
    command: str, cwd: str, root: str, *, home: str = "", resolve: Callable[[str], str] = str, **call: Any
) -> str | None:
    """The reason to deny a shell command, without a session."""
    shell = {"kind": "shell", "tool": "Bash", "command": command, "cwd": cwd, "home": home, "agent": "", "text": ""}
    copies = f"{home}/.local/state/detent" if home else ""
    given = GuardInput(None, {**shell, **call}, root, lambda _: False, guarded_files(), resolve, copies=copies)
    return guard(given)[0]
