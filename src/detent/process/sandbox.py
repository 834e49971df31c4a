"""The sandbox of a process, made by bubblewrap: its own processes, and a view of the files in which little is writable.

Everything that no mount names is read-only. Of two mounts the one with the longer path counts. Linux only.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache

import msgspec

PROGRAM = "bwrap"
#: Time for the first start, in which the program may be read from a slow disk.
_PROBE_S = 10.0
#: Capabilities that root keeps: those for files of other accounts and for changing to one. None of them mounts
#: anything, opens a device or reads past the mounts.
_OF_ROOT = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETUID", "CAP_SETGID", "CAP_KILL")
_MAX_REASON = 200


class Access(StrEnum):
    """The rights of a process at a path and below it."""

    WRITE = "write"
    READ = "read"
    #: An empty directory, or an empty file.
    HIDE = "hide"


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    access: Access
    #: The file or directory that is seen at the path; empty for the one that is there.
    source: str = ""


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the machine that a process sees. Paths are absolute and without links."""

    mounts: tuple[Mount, ...] = ()
    network: bool = True
    #: Variables that lead to what is hidden.
    without: frozenset[str] = frozenset()

    def wrap(self, argv: Sequence[str], cwd: str) -> list[str]:
        """The command line that runs `argv` inside.

        All processes of the sandbox end with its first process, and with the thread that started it.
        """
        return [
            shutil.which(PROGRAM) or PROGRAM,
            *_NAMESPACES,
            *(["--cap-drop", "ALL", *_options("--cap-add", _OF_ROOT)] if os.getuid() == 0 else []),
            *([] if self.network else ["--unshare-net"]),
            *(word for mount in self.ordered() for word in _arguments(mount)),
            *("--chdir", cwd, "--"),
            *argv,
        ]

    def ordered(self) -> list[Mount]:
        """The mounts in the order in which they are made: those of longer paths cover the others."""
        return sorted(self.mounts, key=lambda mount: (mount.path.count("/") if mount.path != "/" else 0, mount.path))

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in env.items() if name not in self.without}


#: The caller starts a session of its own, so that the terminal of a person is out of reach. A fresh /dev has no
#: terminals of others.
_NAMESPACES = (
    "--die-with-parent", "--unshare-pid", "--unshare-ipc",
    "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
)  # fmt: skip


def _arguments(mount: Mount) -> list[str]:
    source = mount.source or mount.path
    match mount.access:
        case Access.WRITE:
            return ["--bind-try", source, mount.path]
        case Access.READ:
            return ["--ro-bind-try", source, mount.path]
        case Access.HIDE:
            return ["--tmpfs", mount.path] if os.path.isdir(mount.path) else ["--ro-bind", os.devnull, mount.path]


def _options(name: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (name, value)]


@cache
def problem() -> str | None:
    """Why no sandbox can be had on this machine; None if one works. It is tried once for each process."""
    from detent.process import run  # noqa: PLC0415 - it imports this module

    if not sys.platform.startswith("linux"):
        return "bubblewrap needs Linux"
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is not on PATH"
    ran = run(Sandbox().wrap(["true"], "/"), cwd="/", timeout_s=_PROBE_S)
    if ran.exit_code == 0:
        return None
    words = " ".join((ran.problem or ran.output).split())[:_MAX_REASON]
    return f"{PROGRAM} does not work here: {words or f'exit code {ran.exit_code}'}"
