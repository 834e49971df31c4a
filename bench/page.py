"""The page's server: what many viewers cost, its memory, and the time from a commit to the page."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from statistics import median, quantiles

from bench.measure import Setting, interleave
from bench.table import Goal, Row, Section
from bench.workload import ACTOR
from detent.core.workflow.graph import chain
from detent.engine.project import init_project, open_project
from detent.engine.session import SessionHandle
from detent.store.state_home import digest

_DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
_VIEWERS = 100
#: The goals of the server.
_MOST_BYTES, _P50_S, _P95_S = 60 * 1024 * 1024, 0.150, 0.400
#: A tenth of a core: what a hundred pages would cost if each looked for itself, without a commit.
_MOST_CPU_S = 0.1
_LOOK_S = 5.0
_ANSWER_S_MAX = 30.0


def page(setting: Setting) -> Section:
    root = os.path.join(setting.directory, "project")
    os.makedirs(root)
    init_project(root)
    with open_project(root, actor=ACTOR) as project:
        handle = project.start(chain("bench", [("Work", "")]), "watch it")
        address = f"/api/p/{digest(os.fsencode(os.path.realpath(root)))}/s/{handle.id}/events"
        with page_server(root) as server:
            rows = _rows(setting, server, handle, address)
    return Section(name="page", rows=rows, remarks=("commit to page: until the event is in the browser's socket",))


def _rows(setting: Setting, server: "_Server", handle: SessionHandle, address: str) -> tuple[Row, ...]:
    seconds = _LOOK_S if not setting.quick else 2.0

    def cost(viewers: int) -> float:
        """Seconds of the processor in a second, while a commit comes every tenth of a second."""
        with server.viewers(address, viewers):
            before = server.cpu_s()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                handle.tasks.add("A task")
                time.sleep(0.1)
            return (server.cpu_s() - before) / seconds

    pair = interleave(lambda: cost(_VIEWERS), lambda: cost(1), rounds=setting.pick(5, 3), warm_up=0)
    with server.viewers(address, _VIEWERS) as sockets:
        delays = [_delay(handle, sockets) for _ in range(setting.pick(100, 20))]
        memory = server.memory()
    p95 = quantiles(delays, n=20)[-1]
    return (
        Row(what=f"server, {_VIEWERS} viewers against 1, 10 commits a second", unit="s", **pair._asdict()),
        against(f"server, {_VIEWERS} viewers, seconds in a second", "s", pair.ours, _MOST_CPU_S),
        against(f"memory of the server, {_VIEWERS} viewers", "B", memory, _MOST_BYTES),
        against("commit to page, p50", "s", median(delays), _P50_S),
        against("commit to page, p95", "s", p95, _P95_S),
    )


def against(what: str, unit: str, ours: float, limit: float) -> Row:
    return Row(what=what, unit=unit, ours=ours, theirs=limit, ratio=ours / limit, goal=Goal(1.0))


def _delay(handle: SessionHandle, sockets: list[socket.socket]) -> float:
    """The seconds from a commit until the last viewer has it."""
    for each in sockets:
        _drain(each)
    began = time.perf_counter()
    handle.tasks.add("A task")
    waiting = set(sockets)
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], _ANSWER_S_MAX)
        assert ready, "a viewer heard nothing"
        waiting -= {each for each in ready if b"event: commit" in each.recv(1 << 20)}
    return time.perf_counter() - began


def _drain(opened: socket.socket) -> None:
    while select.select([opened], [], [], 0)[0] and opened.recv(1 << 20):
        pass


class _Server:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        self._pid: int = process.pid
        self._port: int = said["port"]
        self.origin: str = said["url"].rstrip("/")
        self.token = self._exchange(said["url"], said["link"].partition("#token=")[2])

    def _exchange(self, origin: str, token: str) -> str:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S_MAX)
        headers = {"Host": f"localhost:{self._port}", "Origin": origin, "Content-Type": "application/json"}
        connection.request("POST", "/api/exchange", json.dumps({"token": token}), headers)
        try:
            return str(json.loads(connection.getresponse().read())["token"])
        finally:
            connection.close()

    @contextmanager
    def viewers(self, address: str, count: int) -> Iterator[list[socket.socket]]:
        sockets = [socket.create_connection(("127.0.0.1", self._port)) for _ in range(count)]
        request = (
            f"GET {address} HTTP/1.1\r\nHost: localhost:{self._port}\r\nAuthorization: Bearer {self.token}\r\n\r\n"
        )
        try:
            for each in sockets:
                each.sendall(request.encode())
            for each in sockets:
                each.settimeout(_ANSWER_S_MAX)
                assert each.recv(1 << 16).startswith(b"HTTP/1.1 200")
            yield sockets
        finally:
            for each in sockets:
                each.close()

    def cpu_s(self) -> float:
        """The time of all threads: exact, where the ticks of a process are not."""
        total = 0
        for thread in os.listdir(f"/proc/{self._pid}/task"):
            with suppress(OSError), open(f"/proc/{self._pid}/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def memory(self) -> float:
        with open(f"/proc/{self._pid}/status", encoding="utf-8") as file:
            return next(float(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))


@contextmanager
def page_server(root: str) -> Iterator[_Server]:
    process = subprocess.Popen(
        [_DETENT, "ui", "--port", "0", "--no-open", "--json"],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        yield _Server(process)
    finally:
        process.terminate()
        process.wait(timeout=_ANSWER_S_MAX)
        assert process.stdout is not None
        process.stdout.close()
