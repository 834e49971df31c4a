"""The programs that plugins may start: recorded by a person, outside every project.

A plugin cannot hold the path of an interpreter, so its launcher looks here first. A line is a directory, or `*` for
every project of the account, an interpreter and the hook. A Detent that is installed inside a project is recorded for
that project only: an agent can write there, and must not thereby reach other projects.
"""

import os

from detent.clients.installing.plans import HOOK
from detent.store import disk

PROGRAMS = "programs"
EVERY = "*"
MAX_LINES = 200


def record_program(home: str, root: str, *, python: str, hook: str = HOOK) -> None:
    """Record this Detent, for the project at `root` if it is installed in it, else for the account."""
    python, hook, root = os.path.abspath(python), os.path.abspath(hook), os.path.realpath(root)
    is_inside = any(_is_below(path, root) for path in (python, hook, os.path.realpath(hook)))
    where = root if is_inside else EVERY
    if not home or any(character in part for part in (where, python, hook) for character in "\t\n"):
        return
    kept = [line for line in _lines(home) if line.split("\t")[0] not in (where, root)]
    _write(home, [*kept[1 - MAX_LINES :], "\t".join((where, python, hook))])


def forget_program(home: str, root: str) -> None:
    """Remove what was recorded for the project at `root` alone."""
    lines = _lines(home) if home else []
    kept = [line for line in lines if line.split("\t")[0] != os.path.realpath(root)]
    if kept != lines:
        _write(home, kept)


def recorded_programs(home: str, root: str) -> list[tuple[str, str]]:
    """Interpreter and hook of every program that was recorded for this project, one around it, or the account."""
    root = os.path.realpath(root)
    split = (line.split("\t") for line in (_lines(home) if home else ()))
    return [(python, hook) for where, python, hook in split if where == EVERY or _is_below(f"{root}/", where)]


def _lines(home: str) -> list[str]:
    try:
        text = disk.read_file(os.path.join(home, PROGRAMS)).decode("utf-8", "surrogateescape")
    except OSError:
        return []
    return [line for line in text.split("\n") if line.count("\t") == 2]


def _write(home: str, lines: list[str]) -> None:
    path = os.path.join(home, PROGRAMS)
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    with disk.failing_as("write", path):
        os.makedirs(home, mode=0o700, exist_ok=True)
        disk.replace(path, data, mode=0o600)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")
