"""A proxy on loopback in front of a server: it passes bytes on until a test cuts it."""

import socket
import threading
from contextlib import suppress


class LoopbackProxy:
    """Connections go to `target`, a port of this machine, until one of them is cut or the proxy is closed.

    `cut_requests` and `cut_answers` count down the chunks that still pass in that direction; at zero the connection is
    closed, and the chunk is dropped.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._open: list[socket.socket] = []
        self._guard = threading.Lock()
        self._left: dict[str, int | None] = {"requests": None, "answers": None}
        self.is_refusing = False
        #: Connections that were cut.
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, direction: str, chunks: int) -> None:
        """Cut the connection that carries the chunk number `chunks` from now on, counted from 1."""
        with self._guard:
            self._left[direction] = chunks

    def cut_all(self) -> None:
        """Close every connection; new ones are made as before."""
        with self._guard:
            opened, self._open = self._open, []
        for each in opened:
            _close(each)

    def close(self) -> None:
        self._listening.close()
        self.cut_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self.is_refusing:
                _close(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                _close(client)
                continue
            with self._guard:
                self._open += [client, server]
            for direction, source, sink in (("requests", client, server), ("answers", server, client)):
                threading.Thread(target=self._pass_on, args=(direction, source, sink), daemon=True).start()

    def _pass_on(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self._is_cut(direction):
                    break
                sink.sendall(data)
        _close(source)
        _close(sink)

    def _is_cut(self, direction: str) -> bool:
        with self._guard:
            left = self._left[direction]
            if left is None:
                return False
            self._left[direction] = left - 1 if left > 1 else None
            self.cuts += left == 1
            return left == 1


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        each.close()
