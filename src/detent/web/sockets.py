"""Sockets of this machine: the ones that the server listens at, and the processes behind a port or a connection."""

import os
import shutil
import socket
from contextlib import suppress
from typing import NamedTuple

from detent import process
from detent.errors import DetentError

LOOPBACK = (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")
_BACKLOG = 128
_LISTENS = "0A"
_LSOF_S_MAX = 10.0
_MAX_NAME = 40


class PortTaken(DetentError):
    """Another program listens at the port."""

    kind = "port_taken"
    exit_code = 4


def listen(port: int, *, host: str | None = None) -> list[socket.socket]:
    """The sockets of the server: both loopback addresses, or those of the host. Port 0 chooses a free one.

    Both, because a browser tries both for `localhost`: another program at one of them would get what is meant for us.
    """
    wanted = LOOPBACK if host is None else tuple(_addresses(host))
    listening: list[socket.socket] = []
    for family, address in wanted:
        try:
            listening.append(_bound(family, address, listening[0].getsockname()[1] if listening else port))
        except OSError as error:
            is_missing = family == socket.AF_INET6 and host is None and not _is_taken(error)
            if is_missing:
                # This machine has no IPv6.
                continue
            for each in listening:
                each.close()
            raise _failure(error, address, port) from error
    return listening


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    try:
        resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DetentError(f"the host {host} is not known: {error.strerror}") from error
    return list(dict.fromkeys((family, str(where[0])) for family, _, _, _, where in resolved))


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind((address, port))
        opened.listen(_BACKLOG)
    except BaseException:
        opened.close()
        raise
    return opened


def _is_taken(error: OSError) -> bool:
    from errno import EADDRINUSE  # noqa: PLC0415

    return error.errno == EADDRINUSE


def _failure(error: OSError, address: str, port: int) -> DetentError:
    if _is_taken(error):
        return PortTaken(
            f"port {port} is taken by {holder(port)}",
            way_out="detent ui --link opens the page of a server that runs already; --port chooses another port",
        )
    return DetentError(f"the server cannot listen at {address} port {port}: {error.strerror}")


def is_listening(port: int, host: str | None = None) -> bool:
    for family, address in LOOPBACK if host is None else _addresses(host):
        with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.settimeout(1.0)
            tried.connect((address, port))
            return True
    return False


def holder(port: int) -> str:
    """The program that listens at the port, as far as this user may see it."""
    if not os.path.isdir("/proc/net"):
        return _holder_by_lsof(port)
    inodes = [entry.inode for entry in _connections() if entry.local_port == port and entry.state == _LISTENS]
    pid = _owner(inodes)
    return f"{_program(pid)} (process {pid})" if pid is not None else "another program"


def peer(host: str, port: int, server_port: int) -> int | None:
    """The process at the other end of a connection to this server; None if it cannot be told."""
    if host not in ("127.0.0.1", "::1"):
        return None
    ends = (entry.inode for entry in _connections() if (entry.local_port, entry.remote_port) == (port, server_port))
    return _owner([inode for inode in ends if inode != "0"])


class _Connection(NamedTuple):
    local_port: int
    remote_port: int
    state: str
    inode: str


def _connections() -> list[_Connection]:
    """The rows of /proc/net/tcp; empty where there is none."""
    connections: list[_Connection] = []
    for name in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{name}", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                connections.append(_Connection(_port(fields[1]), _port(fields[2]), fields[3], fields[9]))
    return connections


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _owner(inodes: list[str]) -> int | None:
    """The first process that has one of the sockets open; other users' processes cannot be looked into."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for name in os.listdir("/proc") if wanted else ():
        if not name.isdigit():
            continue
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{name}/fd"):
                with suppress(OSError):
                    if os.readlink(entry.path) in wanted:
                        return int(name)
    return None


def _program(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        name = "".join(character for character in file.read().strip() if character.isprintable())
        return name[:_MAX_NAME] or "a program"
    return "a program"


def _holder_by_lsof(port: int) -> str:
    """Without /proc, as on macOS."""
    if shutil.which("lsof") is None:
        return "another program"
    command = ["lsof", "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpc"]
    shown = process.run(command, cwd="/", timeout_s=_LSOF_S_MAX).output.splitlines()
    named = {line[:1]: line[1:] for line in shown if line[:1] in ("p", "c")}
    if "p" not in named:
        return "another program"
    return f"{named.get('c', 'a program')[:_MAX_NAME]} (process {named['p']})"
