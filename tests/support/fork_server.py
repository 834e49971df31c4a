"""Starts `detent` commands and hooks as processes without paying for their imports.

Most of a command's time is its imports. This server imports Detent once and forks for every command, so that a command
is still a process of its own: its own memory, working directory, environment, streams and exit code. It never runs a
command itself and holds no state between two of them.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from typing import Any

from detent.engine.actor import agent_marks

#: Variables that a fresh interpreter reads before its first line; a command with others needs one.
_READ_AT_START = ("LC_", "LANG", "PYTHON")
_MAX_REQUEST = 1024 * 1024
_MAX_FILES = 8
#: What few commands need and what is large: each of them imports it itself, so that forking the others costs less.
_LEFT_OUT = ("detent.store.postgres", "detent.web", "detent.worker")


class ForkServer:
    """The client's side: one server for each process of tests."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A mark of an agent that a test sets for itself is none of the server's, above which every command runs.
        kept = {name: value for name, value in os.environ.items() if name not in agent_marks()}
        environment = {**kept, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())], env=environment, pass_fds=[theirs.fileno()]
            )

    def run(
        self,
        arguments: list[str | bytes],
        *,
        cwd: str,
        env: dict[str, str],
        stdin: bytes = b"",
        terminal: int | None = None,
        hook: bool = False,
        kept: tuple[int, ...] = (),
        timeout_s: float,
    ) -> "subprocess.CompletedProcess[bytes]":
        """The command until its end, and what it wrote; what it writes to a terminal is read at its other end.

        `hook` is the command of clients instead of `detent`. The processes have the descriptors `kept` open.
        """
        files = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
        ended, ends = os.pipe()
        try:
            os.write(files[0], stdin)
            os.lseek(files[0], 0, os.SEEK_SET)
            argv = [os.fsdecode(argument) for argument in arguments]
            request = {"argv": argv, "cwd": cwd, "env": env, "uid": os.getuid(), "hook": hook}
            streams = files if terminal is None else [files[0], terminal, terminal]
            socket.send_fds(self._socket, [json.dumps(request).encode()], [*streams, ends, *kept])
            os.close(ends)
            code = _code(ended, timeout_s)
            if code is None:
                raise subprocess.TimeoutExpired(["detent", *arguments], timeout_s)
            return subprocess.CompletedProcess(["detent", *arguments], code, _content(files[1]), _content(files[2]))
        finally:
            for file in (*files, ended):
                os.close(file)

    @staticmethod
    def can_run(changed: dict[str, Any]) -> bool:
        return not any(name.startswith(_READ_AT_START) for name in changed)


@cache
def fork_server() -> ForkServer:
    return ForkServer()


def _code(ended: int, timeout_s: float) -> int | None:
    with selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        if not selector.select(timeout_s):
            return None
    answer = os.read(ended, 16)
    assert answer, "the fork server ended"
    return int(answer)


def _content(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    with open(file, "rb", closefd=False) as opened:
        return opened.read()


# The server


def serve(requests: socket.socket) -> None:
    _import_all()
    gc.collect()
    gc.freeze()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    running: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == wake_read:
                    os.read(wake_read, 4096)
                    _reap(running)
                    continue
                data, files, _, _ = socket.recv_fds(requests, _MAX_REQUEST, _MAX_FILES)
                if not data:
                    return
                *streams, ends = files[:4]
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for own in (wake_read, wake_write, requests.fileno(), ends, *running.values()):
                        os.close(own)
                    _become(json.loads(data), streams)
                running[child] = ends
                for file in (*streams, *files[4:]):
                    os.close(file)


def _reap(running: dict[int, int]) -> None:
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        ends = running.pop(child)
        os.write(ends, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(ends)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Become the command. Never returns."""
    os.chdir(request["cwd"])
    if request["uid"] != os.getuid():
        os.setresuid(request["uid"], -1, -1)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = io.TextIOWrapper(open(0, "rb"), "utf-8", "surrogateescape")  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb"), "utf-8", "surrogateescape")  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", buffering=0), "utf-8", "backslashreplace", write_through=True)  # noqa: SIM115
    sys.argv = ["detent", *request["argv"]]
    code = 70
    if request["hook"]:
        os._exit(importlib.import_module("detent.hooks.answer").respond(request["argv"]))
    try:
        importlib.import_module("detent.cli.main").main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    finally:
        import atexit

        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)


def _import_all() -> None:
    import detent

    for module in pkgutil.walk_packages(detent.__path__, "detent."):
        if not module.name.endswith("__main__") and not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        serve(given)
