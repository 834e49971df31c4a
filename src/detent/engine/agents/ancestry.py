"""Reads the ancestors of a process: their programs, and the names of the variables that they were started with.

On Linux /proc has both. The environment of another user's process cannot be read; its program can. Without /proc, as on
macOS, `ps` is asked; the system hides the environment of its own programs there, such as /bin/zsh.
"""

import os
from typing import NamedTuple

from detent.core.actor import Ancestor

#: How many ancestors are looked at.
MAX_ANCESTORS = 64
#: Programs that run a script whose name counts too: clients are installed as scripts.
_INTERPRETERS = ("node", "bun", "deno", "python")
_SCRIPT_ENDS = (".js", ".mjs", ".cjs")
_MAX_PROGRAM = 40
_PS_S_MAX = 10.0
#: First and last major number of pseudo terminals in Linux; each has 256 of them.
_PTS_FIRST, _PTS_LAST = 136, 143


def ancestry(pid: int) -> tuple[Ancestor, ...]:
    """The process and those that started it, nearest first."""
    lineage: list[Ancestor] = []
    read = _from_proc if os.path.isdir("/proc/self") else _from_ps
    while pid > 0 and len(lineage) < MAX_ANCESTORS:
        ancestor, pid = read(pid)
        if ancestor is None:
            break
        lineage.append(ancestor)
    return tuple(lineage)


class Terminal(NamedTuple):
    """The controlling terminal of this process."""

    device: str
    #: The process that leads the session of the terminal, and the one that leads the job in its foreground.
    leaders: tuple[int, int]


def terminal() -> Terminal | None:
    """The controlling terminal; None without one. Pipes do not matter."""
    try:
        opened = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return Terminal(_device(), (os.getsid(0), os.tcgetpgrp(opened)))
    except OSError:
        # It was closed meanwhile.
        return None
    finally:
        os.close(opened)


def _device() -> str:
    fields = _stat(os.getpid())
    device = int(fields[4]) if len(fields) > 4 else 0
    major, minor = os.major(device), os.minor(device)
    if _PTS_FIRST <= major <= _PTS_LAST:
        return f"/dev/pts/{(major - _PTS_FIRST) * 256 + minor}"
    return "/dev/tty"


def _from_proc(pid: int) -> tuple[Ancestor | None, int]:
    """The process and the number of its parent."""
    fields = _stat(pid)
    if len(fields) < 2:
        return None, 0
    program = (_read(f"/proc/{pid}/comm") or b"").decode(errors="replace").strip()
    arguments = (_read(f"/proc/{pid}/cmdline") or b"").decode(errors="replace").split("\0")
    environment = _read(f"/proc/{pid}/environ")
    variables = None if environment is None else _set_variables(environment.decode(errors="replace").split("\0"))
    return _ancestor(pid, program, arguments, variables), int(fields[1])


def _from_ps(pid: int) -> tuple[Ancestor | None, int]:
    from detent.process import run  # noqa: PLC0415 - only where there is no /proc

    shown = run(["ps", "-E", "-ww", "-o", "ppid=,command=", "-p", str(pid)], cwd="/", timeout_s=_PS_S_MAX).output
    return parse_ps(pid, shown)


def parse_ps(pid: int, shown: str) -> tuple[Ancestor | None, int]:
    """Parse a line of `ps`: the parent, the command, and the environment behind it, all separated by spaces."""
    words = shown.split()
    if len(words) < 2 or not words[0].isdigit():
        return None, 0
    variables = _set_variables(words[2:])
    return _ancestor(pid, "", words[1:], variables or None), int(words[0])


def _ancestor(pid: int, program: str, arguments: list[str], variables: frozenset[str] | None) -> Ancestor:
    first = _base(arguments[0])
    names = {program, first}
    if first.startswith(_INTERPRETERS):
        script = next((argument for argument in arguments[1:] if not argument.startswith("-")), "")
        names.add(_base(script))
    shown = "".join(character for character in program or first if character.isprintable())
    return Ancestor(pid, shown[:_MAX_PROGRAM], frozenset(names - {""}), variables)


def _base(path: str) -> str:
    """The name of a program, without the dash of a login shell and the ending of a script."""
    name = os.path.basename(path).removeprefix("-")
    stem, end = os.path.splitext(name)
    return stem if end in _SCRIPT_ENDS else name


def _set_variables(entries: list[str]) -> frozenset[str]:
    """The names of the variables that have a value."""
    split = (entry.partition("=") for entry in entries)
    return frozenset(name for name, _, value in split if name and value)


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name of the program; empty for a process that is gone."""
    return (_read(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
