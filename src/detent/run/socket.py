"""The socket of the runner: carries out the commands of agents in a sandbox, outside of it, in their name.

Each turn has a socket of its own, which only its sandbox sees. So the identity of the agent is not what a request says:
every command has the environment that the runner gave to the turn, which marks it as an agent's. Only the commands of
`ALLOWED` are carried out, in a directory of the project. None of them opens a file that an argument names: the agent
could replace the file by a link after any check. Its content comes on standard input instead.
"""

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from detent import process
from detent.clients.installing.plans import HOOK
from detent.clients.registry import with_hooks
from detent.core.gate.environment import is_below
from detent.engine.agents.environment import SANDBOX, SOCKET
from detent.engine.agents.forward import HEAD_BYTES, MAX_BYTES, words_of
from detent.engine.sandbox import SOCKET_DIRECTORY, RunSandbox

if TYPE_CHECKING:
    import subprocess

NAME = "socket"
#: Commands at the same time for one agent; others wait.
MAX_AT_ONCE = 16
#: The verbs that are carried out. Of a verb with subcommands only those that are listed; empty: it has none.
ALLOWED: dict[str, frozenset[str]] = {
    "ask": frozenset(),
    "note": frozenset(),
    "begin": frozenset(),
    "finish": frozenset(),
    "fail": frozenset(),
    "redo": frozenset(),
    "task": frozenset(
        (
            *("next", "start", "done", "fail", "block", "unblock", "resume", "retry", "reopen", "release", "beat"),
            *("add", "split", "replan", "remove", "complexity", "edit", "list", "show", "validate"),
        )
    ),
    "gate": frozenset(("run", "wait", "report", "answer", "accept", "set", "baseline")),
    "flow": frozenset(("run", "resume", "show")),
    "checkpoint": frozenset(("create", "list", "show", "verify")),
    "mcp": frozenset(),
}
_HELP = ("-h", "--help")
#: An editor can start any program.
_NO_PROGRAMS = {"EDITOR": "false", "VISUAL": "false", "PAGER": "cat", "GIT_EDITOR": "false"}
_REFUSED = 2
_STREAMS = 3


class Refusal(Exception):
    """A request that is not carried out."""


@contextmanager
def opened(env: Mapping[str, str], roots: Sequence[str], sandbox: RunSandbox) -> Iterator[tuple[str, dict[str, str]]]:
    """The directory of a socket, for the sandbox of an agent with this environment, and its variable.

    `roots` are the directories of the project.
    """
    with tempfile.TemporaryDirectory(prefix="detent-socket-", dir=_short_directory()) as directory:
        outside = {**os.environ, **env, **_NO_PROGRAMS, SANDBOX: sandbox.text}
        server = _Server(os.path.join(directory, NAME), outside, roots, before=sandbox.set_aside)
        try:
            yield directory, {SOCKET: f"{SOCKET_DIRECTORY}/{NAME}"}
        finally:
            server.close()


def _short_directory() -> str | None:
    """A directory for the socket: the path of one has about a hundred bytes at most."""
    return None if len(tempfile.gettempdir()) < 60 else "/tmp"  # noqa: S108 - the directory in it is private


class _Server:
    def __init__(
        self, path: str, env: Mapping[str, str], roots: Sequence[str], *, before: Callable[[], object]
    ) -> None:
        """`before` is called before each command is started."""
        self._before = before
        self._env = {name: value for name, value in env.items() if name != SOCKET}
        self._roots = [os.path.realpath(root) for root in roots]
        self._slots = threading.BoundedSemaphore(MAX_AT_ONCE)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock, self._is_closed = threading.Lock(), False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(MAX_AT_ONCE)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no further request, and end those that are carried out."""
        with self._lock:
            self._is_closed = True
            running = list(self._running)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for child in running:
            process.end_all(child)

    def _accept(self) -> None:
        while not self._is_closed:
            self._slots.acquire()
            try:
                connection, _ = self._listener.accept()
            except OSError:
                # Closed.
                self._slots.release()
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        streams: list[int] = []
        try:
            with connection, suppress(OSError):
                cwd, arguments = _received(connection, streams)
                code = self._carry_out(connection, cwd, arguments, streams)
                connection.sendall(bytes([code]))
        finally:
            for stream in streams:
                os.close(stream)
            self._slots.release()

    def _carry_out(self, connection: socket.socket, cwd: str, arguments: list[str], streams: list[int]) -> int:
        try:
            argv = self._command(cwd, arguments)
            self._before()
            child = self._start(argv, cwd, streams)
        except Refusal as refusal:
            with suppress(OSError):
                os.write(streams[2], f"detent: {refusal}\n".encode())
            return _REFUSED
        try:
            # The connection says nothing more; its end means that the agent's process is gone.
            threading.Thread(target=_end_with, args=(connection, child), daemon=True).start()
            return child.wait() & 0xFF
        finally:
            with self._lock:
                self._running.discard(child)

    def _command(self, cwd: str, arguments: list[str]) -> list[str]:
        real = os.path.realpath(cwd)
        if not any(is_below(real, root) for root in self._roots):
            raise Refusal(f"{cwd} is outside of the project; change to {self._roots[0]}")
        return outside_command(arguments)

    def _start(self, argv: list[str], cwd: str, streams: list[int]) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._is_closed:
                raise Refusal("the turn is over")
            child = process.start(argv, cwd=cwd, env=self._env, streams=streams)
            self._running.add(child)
        return child


def outside_command(arguments: Sequence[str]) -> list[str]:
    """The command line that carries out the arguments; raises `Refusal` for those that are not open to an agent."""
    verb, *rest = words_of(arguments) or [""]
    if verb == "hook":
        if not rest or rest[0] not in with_hooks() or rest[1:] not in ([], ["--plugin"]):
            raise Refusal("the hook of this client cannot be answered from a sandbox")
        return [sys.executable, "-I", "-S", HOOK, *rest]
    if verb not in ALLOWED:
        raise Refusal(f"{verb} is not carried out for an agent in a sandbox; these are: {', '.join(ALLOWED)}")
    subcommands, first = ALLOWED[verb], rest[0] if rest else ""
    if subcommands and first not in subcommands and first not in _HELP:
        listed = ", ".join(sorted(subcommands))
        raise Refusal(f"{verb} {first} is not carried out for an agent in a sandbox; these are: {listed}")
    if (verb, first) == ("task", "edit") and not any(word.startswith("--set") for word in rest):
        raise Refusal("task edit opens an editor; use: detent task edit ID --set PATH=VALUE")
    _check_options(rest)
    return [sys.executable, "-P", "-m", "detent", *arguments]


def _check_options(words: Sequence[str]) -> None:
    """Refuse options that lead to another project or open a file."""
    for number, word in enumerate(words):
        if word == "--":
            return
        name, equals, value = word.partition("=")
        if name == "--directory" or (word.startswith("-C") and not word.startswith("--")):
            raise Refusal(f"{name} leads to another project; change to the directory instead")
        if name == "--file" and (value if equals else "".join(words[number + 1 : number + 2])) != "-":
            raise Refusal("--file names a file; use --file - and give it on standard input")


def _received(connection: socket.socket, streams: list[int]) -> tuple[str, list[str]]:
    """The directory and the arguments of a request; fills `streams` with its descriptors."""
    head, given, _, _ = socket.recv_fds(connection, HEAD_BYTES, _STREAMS)
    streams += given
    size = int.from_bytes(head, "big")
    if len(head) != HEAD_BYTES or len(given) != _STREAMS or size > MAX_BYTES:
        raise OSError("this is no request")
    body = bytearray()
    while len(body) < size and (part := connection.recv(size - len(body))):
        body += part
    fields = [os.fsdecode(field) for field in bytes(body).split(b"\0")]
    return fields[0], fields[1:]


def _end_with(connection: socket.socket, child: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError):
        connection.recv(1)
    if child.poll() is None:
        process.end_all(child)
