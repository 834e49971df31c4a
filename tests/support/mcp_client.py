"""A client of the MCP server: a process over pipes, and requests of either era."""

import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.support.command import DETENT

ANSWER_S_MAX = 60
STATELESS = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "pipes", "version": "1"},
}


class McpClient:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.notifications: list[dict[str, Any]] = []
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = msgspec.json.decode(line)
            if "id" in message:
                self._answers.put(message)
            else:
                self.notifications.append(message)

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None, *, stateless: bool = False) -> int:
        """Send a request; returns its id."""
        self._number += 1
        meta = {**(params or {}).get("_meta", {}), **(_META if stateless else {})}
        given = {**(params or {}), **({"_meta": meta} if meta else {})}
        self.raw(msgspec.json.encode({"jsonrpc": "2.0", "id": self._number, "method": method, "params": given}) + b"\n")
        return self._number

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.raw(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n")

    def answer(self) -> dict[str, Any]:
        return self._answers.get(timeout=ANSWER_S_MAX)

    def ask(self, method: str, params: Mapping[str, Any] | None = None, *, stateless: bool = False) -> dict[str, Any]:
        """The whole answer to a request: `result` or `error`."""
        identity = self.send(method, params, stateless=stateless)
        answer = self.answer()
        assert answer["id"] == identity, answer
        return answer

    def connect(self) -> dict[str, Any]:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "pipes", "version": "1"},
        }
        result: dict[str, Any] = self.ask("initialize", params)["result"]
        self.notify("notifications/initialized", {})
        return result

    def call(self, tool: str, *, stateless: bool = False, **arguments: Any) -> dict[str, Any]:
        """The record that a tool answers, with whether it is an error."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments}, stateless=stateless)
        result = answer["result"]
        assert msgspec.json.decode(result["content"][0]["text"]) == result["structuredContent"]
        return {**result["structuredContent"], "is_error": result["isError"]}


@contextmanager
def served(directory: Path, *arguments: str, **environment: str) -> Iterator[McpClient]:
    """A client of `detent mcp` in the directory. The server ends with it, without an error."""
    process = subprocess.Popen(
        [DETENT, "mcp", *arguments],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"], **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield McpClient(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(ANSWER_S_MAX) == 0
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
