"""The server over standard input and output: reads messages, answers lists at once, and runs calls in threads.

Standard output belongs to the protocol. Everything else that this process or its children print goes to standard error.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from detent.errors import DetentError
from detent.mcp import wire
from detent.mcp.tools import TOOLS
from detent.mcp.wire import Code, Fault, Message, TooLong, in_era

#: Calls at the same time. A further one is refused, so that cancellations are still read.
MAX_CALLS = 16
#: Seconds between two notifications about one call.
PROGRESS_S = 1.0
#: Seconds that calls get to end when the client is gone.
GRACE_S = 5.0
INSTRUCTIONS = (
    "Detent holds this project's work to a workflow of phases. Call status first. Call begin before the work of a "
    "phase, and finish after it; a phase ends only when its gates have evidence. If finish is refused, why says what "
    "is missing: fix the cause, do not weaken the check. An answer with the state pending waits for a person: say "
    "what it waits for and where a person decides, and stop. Nothing here approves, skips or releases."
)
_CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}


class Cancelled(Exception):
    """The client does not want the answer any more."""


class Context:
    """The client of a call: its name, whether it still waits, and its notifications."""

    def __init__(self, server: "Server", message: Message, client: str) -> None:
        self.directory, self.project, self.client = server.directory, server.project, client
        self._server, self._token = server, message.meta.get("progressToken")
        self._cancelled = threading.Event()
        self._due_s = self._last = 0.0

    def cancel(self) -> None:
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def tick(self, text: str, seconds: float) -> None:
        """Report that the call goes on. Raises `Cancelled` if the client does not want that."""
        if self.is_cancelled:
            raise Cancelled
        now_s = time.monotonic()
        if self._token is None or now_s < self._due_s:
            return
        self._due_s = now_s + PROGRESS_S
        # The figure of a call never falls, also if it waits for several checks.
        self._last = max(self._last + 0.001, seconds)
        params = {"progressToken": self._token, "progress": round(self._last, 3), "message": text}
        self._server.send({"method": "notifications/progress", "params": params})

    def wait(self, seconds: float) -> None:
        """Sleep, and wake up early if the call is cancelled."""
        self._cancelled.wait(seconds)


class Server:
    def __init__(self, directory: str, project: str | None, output: int) -> None:
        self.directory, self.project = directory, project
        self._output = output
        self._writing, self._lock = threading.Lock(), threading.Lock()
        self._calls: dict[str | int, tuple[Context, threading.Thread]] = {}
        self._client, self._is_initialized = "", False

    def serve(self, descriptor: int) -> None:
        """Answer messages until the client closes the pipe; then end the calls in progress."""
        try:
            for line in wire.lines(descriptor):
                self._read(line)
        finally:
            self._end_calls()

    def send(self, message: dict[str, Any]) -> None:
        data = msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"
        with self._writing:
            while data:
                data = data[os.write(self._output, data) :]

    def _read(self, line: bytes | TooLong) -> None:
        identity: str | int | None = None
        try:
            if isinstance(line, TooLong):
                raise Fault(
                    Code.INVALID, f"a message has at most {wire.MAX_MESSAGE} bytes, and this one has {line.bytes}"
                )
            message = wire.read_message(line)
            if message is None:
                return
            identity = message.id
            if message.id is None:
                self._notified(message)
            else:
                self._requested(message, message.id)
        except Fault as fault:
            if identity is None and isinstance(line, bytes):
                identity = wire.identity_of(line)
            self.send({"id": identity, "error": fault.as_record()})

    def _notified(self, message: Message) -> None:
        identity = message.params.get("requestId")
        if message.method != "notifications/cancelled" or not isinstance(identity, str | int):
            return
        with self._lock:
            call = self._calls.get(identity)
        if call is not None:
            call[0].cancel()

    def _requested(self, message: Message, identity: str | int) -> None:
        if message.method == "initialize":
            self.send({"id": identity, "result": self._initialized(message)})
            return
        if message.is_stateless:
            message.check_version()
        elif not self._is_initialized:
            raise Fault(Code.INVALID, f"send initialize first, or the _meta of {wire.STATELESS[0]} with the request")
        if message.method in _CALLS:
            self._start(message, identity)
            return
        answer = _LISTS.get(message.method)
        if answer is None or (message.is_stateless and message.method in _HANDSHAKE_ONLY):
            raise Fault(Code.METHOD, f"there is no method {message.method[:80]}")
        is_list = message.method.endswith("/list") or message.method == "server/discover"
        self.send({"id": identity, "result": in_era(message, answer(), is_list=is_list)})

    def _initialized(self, message: Message) -> dict[str, Any]:
        self._client, self._is_initialized = message.client, True
        return {
            "protocolVersion": wire.negotiated(message.params.get("protocolVersion")),
            "capabilities": _CAPABILITIES,
            "serverInfo": wire.SERVER,
            "instructions": INSTRUCTIONS,
        }

    # Calls

    def _start(self, message: Message, identity: str | int) -> None:
        context = Context(self, message, message.client or self._client)
        thread = threading.Thread(target=self._run, args=(message, identity, context), daemon=True)
        with self._lock:
            if identity in self._calls:
                raise Fault(Code.INVALID, f"the request {identity!r} is already in progress")
            if len(self._calls) >= MAX_CALLS:
                raise Fault(Code.BUSY, f"{MAX_CALLS} calls are in progress; wait for one of them, or cancel it")
            self._calls[identity] = (context, thread)
        thread.start()

    def _run(self, message: Message, identity: str | int, context: Context) -> None:
        try:
            answer = self._answered(message, context)
            with self._lock:
                del self._calls[identity]
            # The client has forgotten a request that it cancelled.
            if answer is not None and not context.is_cancelled:
                self.send({"id": identity, **answer})
        except OSError:
            # The client is gone. Its end of the pipe ends the server.
            return

    def _answered(self, message: Message, context: Context) -> dict[str, Any] | None:
        try:
            result = _CALLS[message.method](message, context)
        except Fault as fault:
            return {"error": fault.as_record()}
        except Cancelled:
            return None
        except DetentError as error:
            data = {"kind": error.kind} | ({"way_out": error.way_out} if error.way_out else {})
            return {"error": Fault(Code.INTERNAL, error.message, data).as_record()}
        except Exception as error:  # noqa: BLE001 - the boundary: a bug is told, and the server lives on
            import traceback  # noqa: PLC0415 - only for a bug

            traceback.print_exc()
            text = f"{type(error).__name__}: {error}"[:300]
            return {"error": Fault(Code.INTERNAL, f"this is a bug in Detent: {text}").as_record()}
        return {"result": in_era(message, result, is_read=message.method == "resources/read")}

    def _end_calls(self) -> None:
        with self._lock:
            calls = list(self._calls.values())
        for context, _ in calls:
            context.cancel()
        until_s = time.monotonic() + GRACE_S
        for _, thread in calls:
            thread.join(max(0.0, until_s - time.monotonic()))


def _call_tool(message: Message, context: Context) -> dict[str, Any]:
    name, given = message.params.get("name"), message.params.get("arguments", {})
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        problem = f"there is no tool {name[:80]}" if isinstance(name, str) else "params.name is the name of a tool"
        raise Fault(Code.PARAMS, f"{problem}; these are: {', '.join(TOOLS)}")
    try:
        arguments = msgspec.convert({} if given is None else given, tool.arguments)
    except msgspec.ValidationError as error:
        raise Fault(Code.PARAMS, f"the arguments of {tool.name} are wrong: {error}") from error
    from detent.mcp.answers import answered  # noqa: PLC0415 - the engine is loaded with the first call

    return answered(tool, arguments, context)


def _read_resource(message: Message, context: Context) -> dict[str, Any]:
    from detent.mcp.resources import read_resource  # noqa: PLC0415

    return read_resource(message.params.get("uri"), context)


def _get_prompt(message: Message, context: Context) -> dict[str, Any]:
    from detent.mcp.prompts import get_prompt  # noqa: PLC0415

    return get_prompt(message.params.get("name"), message.params.get("arguments"), context)


def _resources() -> dict[str, Any]:
    from detent.mcp.listed import RESOURCES  # noqa: PLC0415

    return {"resources": RESOURCES}


def _templates() -> dict[str, Any]:
    from detent.mcp.listed import TEMPLATES  # noqa: PLC0415

    return {"resourceTemplates": TEMPLATES}


def _prompts() -> dict[str, Any]:
    from detent.mcp.listed import PROMPTS  # noqa: PLC0415

    return {"prompts": PROMPTS}


_LISTS: dict[str, Callable[[], dict[str, Any]]] = {
    "ping": dict,
    "server/discover": lambda: {
        "supportedVersions": [*wire.STATELESS, *wire.HANDSHAKE],
        "capabilities": _CAPABILITIES,
        "serverInfo": wire.SERVER,
        "instructions": INSTRUCTIONS,
    },
    "tools/list": lambda: {"tools": [tool.as_record() for tool in TOOLS.values()]},
    "resources/list": _resources,
    "resources/templates/list": _templates,
    "prompts/list": _prompts,
}
_HANDSHAKE_ONLY = ("ping",)
_CALLS: dict[str, Callable[[Message, Context], dict[str, Any]]] = {
    "tools/call": _call_tool,
    "resources/read": _read_resource,
    "prompts/get": _get_prompt,
}


def main(directory: str, project: str | None) -> None:
    """Serve the client at standard input until it closes it."""
    output = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if os.isatty(0):
        sys.stderr.write("detent: waiting for a client of MCP on standard input; Ctrl-C ends it (docs/mcp.md)\n")
    # Asked to stop, end the calls in progress and their checks.
    signal.signal(signal.SIGTERM, _stopped)
    Server(directory, project, output).serve(0)


def _stopped(*_: object) -> NoReturn:
    sys.exit(0)
