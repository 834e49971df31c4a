"""Network namespaces: a machine that is cut off by a link that is down, as when a cable is pulled.

Every address is inside of a namespace that a test made: a hub, and one for each machine. A machine has a link to the
hub for each server that it reaches. The hub passes bytes on to the servers, which listen on loopback.
"""

import ctypes
import os
import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.support.proxy import Proxy

_PREFIX = "detent-test"
_NEW_NETWORK = 0x40000000
_OFF = "DETENT_NAMESPACES"


def missing() -> str:
    """The reason why there are no namespaces here; empty if there are."""
    if os.environ.get(_OFF) == "0":
        return f"{_OFF} is 0"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "namespaces need root and the program ip"
    return _tried()


@cache
def _tried() -> str:
    try:
        hub = Hub()
        hub.machine("try").link("one").close()
        hub.close()
    except (subprocess.CalledProcessError, OSError) as error:
        return f"namespaces are not permitted: {error}"
    return ""


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _remove_left_behind() -> None:
    """Remove the namespaces of test processes that were killed."""
    for path in Path("/run/netns").glob(f"{_PREFIX}-*"):
        if not os.path.exists(f"/proc/{path.name.split('-')[2]}"):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", path.name)


class Hub:
    """The namespace in the middle."""

    _count = 0

    def __init__(self) -> None:
        _remove_left_behind()
        Hub._count += 1
        self.name = f"{_PREFIX}-{os.getpid()}-{Hub._count}"
        self._made = [self.name]
        self.links = 0
        _ip("netns", "add", self.name)

    def machine(self, name: str) -> "Namespace":
        own = f"{self.name}-{len(self._made)}-{name}"
        _ip("netns", "add", own)
        self._made.append(own)
        _ip("-n", own, "link", "set", "lo", "up")
        return Namespace(self, own)

    def close(self) -> None:
        for name in self._made:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", name)


class Namespace:
    """The network of one machine."""

    def __init__(self, hub: Hub, name: str) -> None:
        self._hub, self._name = hub, name
        #: Starts a program in it.
        self.command = ("ip", "netns", "exec", name)

    def link(self, target: str) -> "_Link":
        self._hub.links += 1
        return _Link(self._hub.name, self._name, self._hub.links, target)

    def wire(self, port: int) -> "Wire":
        """The way to a server of this computer."""
        return Wire(self.link(f"p{port}"), port)


class _Link:
    """A pair of interfaces between the hub and a machine."""

    def __init__(self, hub: str, machine: str, number: int, name: str) -> None:
        self.hub, self._end = hub, f"link{number}"
        self.host, other = f"10.{200 + number // 250}.{number % 250}.1", f"10.{200 + number // 250}.{number % 250}.2"
        _ip("link", "add", self._end, "netns", hub, "type", "veth", "peer", "name", name, "netns", machine)
        for namespace, interface, address in ((hub, self._end, self.host), (machine, name, other)):
            _ip("-n", namespace, "address", "add", f"{address}/30", "dev", interface)
            _ip("-n", namespace, "link", "set", interface, "up")

    def set(self, state: str) -> None:
        _ip("-n", self.hub, "link", "set", self._end, state)

    def close(self) -> None:
        _ip("-n", self.hub, "link", "delete", self._end)


class Wire(Proxy):
    """A proxy in the hub, and the link to it, which can be cut: packets are lost, and connections stay open."""

    def __init__(self, link: _Link, target: int) -> None:
        self._link = link
        super().__init__(target, _listening(link.hub, link.host), host=link.host)

    def cut(self) -> None:
        self._link.set("down")

    def heal(self) -> None:
        self._link.set("up")


def _listening(namespace: str, host: str) -> socket.socket:
    """A socket that listens in a namespace. A socket stays where it was made, whichever thread uses it."""
    made: list[socket.socket] = []

    def make() -> None:
        descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, _NEW_NETWORK) != 0:
                return
            made.append(socket.create_server((host, 0)))
        finally:
            os.close(descriptor)

    # The thread is in the namespace until it ends.
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if not made:
        raise OSError(f"no socket could be made in {namespace}")
    return made[0]
