"""The MCP server: the time until a client is connected, against a bare Python; the size of `tools/list`."""

import os
import subprocess
import sys
import time

import msgspec

from bench.measure import Setting, interleave
from bench.peers import Unavailable, installed
from bench.table import Goal, Row, Section
from bench.workload import make_project

_RUN_S_MAX = 60
#: Bytes of an answer to `tools/list`, and seconds until a client is connected.
MAX_LIST = 8 * 1024
MAX_S = 0.150
_SHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_CONNECT = {
    "handshake": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _SHAKE},
    "stateless": {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": _META}},
}
_LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": _META}}


def mcp(setting: Setting) -> Section:
    try:
        command = [installed(), "mcp"]
    except Unavailable as why:
        return Section(name="mcp", rows=(Row(what="detent mcp", skipped=str(why)),))
    directory = os.path.join(setting.directory, "project")
    with make_project(directory) as project:
        project.start("feature", "Export as CSV")
    bare = [sys.executable, "-I", "-S", "-c", "pass"]
    rows, slowest = [], 0.0
    for era, request in _CONNECT.items():
        pair = interleave(
            lambda request=request: _connected(command, request, directory),  # type: ignore[misc]
            lambda: _ended(bare, directory),
            rounds=setting.pick(30, 8),
            warm_up=3,
        )
        rows.append(Row(what=f"mcp connect, {era} : python -I -S -c pass", unit="s", **pair._asdict(), goal=Goal(8.0)))
        slowest = max(slowest, pair.ours)
    size = _list_size(command, directory)
    rows.append(
        Row(
            what="mcp tools/list, bytes : 8 KB",
            ours=float(size),
            theirs=float(MAX_LIST),
            ratio=size / MAX_LIST,
            goal=Goal(1.0),
        )
    )
    rows.append(
        Row(what="mcp connect : 150 ms", unit="s", ours=slowest, theirs=MAX_S, ratio=slowest / MAX_S, goal=Goal(1.0))
    )
    return Section(name="mcp", rows=tuple(rows), remarks=("the installed console script, in a feature session",))


def _connected(command: list[str], request: dict[str, object], directory: str) -> float:
    """Seconds from the start of the process to its first answer."""
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(msgspec.json.encode(request) + b"\n")
        server.stdin.flush()
        answer = msgspec.json.decode(server.stdout.readline())
        took = time.perf_counter() - began
        server.stdin.close()
        server.wait(_RUN_S_MAX)
    assert "result" in answer, answer
    return took


def _ended(command: list[str], directory: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=directory, check=True)
    return time.perf_counter() - began


def _list_size(command: list[str], directory: str) -> int:
    done = subprocess.run(
        command,
        cwd=directory,
        input=msgspec.json.encode(_LIST) + b"\n",
        stdout=subprocess.PIPE,
        check=True,
        timeout=_RUN_S_MAX,
    )
    return len(done.stdout.rstrip(b"\n"))
