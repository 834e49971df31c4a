"""The way of a client to a server: a proxy on loopback that can be cut, or none."""

import selectors
import socket
import threading
from contextlib import suppress

_CHUNK = 1 << 16


class Direct:
    """No proxy: the server itself, for a client that is never cut off."""

    host = "127.0.0.1"

    def __init__(self, port: int) -> None:
        self.port = port

    def cut(self) -> None:
        raise AssertionError("this machine has no link that can be cut")

    def heal(self) -> None:
        """It is never cut."""

    def close(self) -> None:
        """Nothing is open."""


class Proxy:
    """While it is cut, bytes of open connections wait and new connections get no answer, as when packets are lost."""

    def __init__(self, target: int, listener: socket.socket | None = None, host: str = "127.0.0.1") -> None:
        self._target, self.host = target, host
        self._listener = listener or socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._open = threading.Event()
        self._open.set()
        self._over = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._over = True
        self._open.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._over:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._target), 5.0)
        except OSError:
            client.close()
            return
        other = {client: server, server: client}
        for each in other:
            # Each packet is passed on at once, as without a proxy.
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, server, selectors.DefaultSelector() as ready, suppress(OSError):
            for each in other:
                ready.register(each, selectors.EVENT_READ)
            while not self._over:
                for key, _ in ready.select(1.0):
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    self._open.wait()
                    data = source.recv(_CHUNK)
                    if not data:
                        return
                    other[source].sendall(data)
