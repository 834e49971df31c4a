"""A model server on loopback that plays a scenario instead of thinking, and keeps every request.

It speaks the three wire formats at once, and stands as the clients' proxy: whatever they try to reach elsewhere is
noted and refused, so a run is offline by construction.
"""

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from tests.clients import anthropic, gemini, openai
from tests.clients.scripts import Play, Request, Scenario, ScriptOver, Turn, conversation_of

WIRES: tuple[ModuleType, ...] = (anthropic, openai, gemini)
BODY_BYTES_MAX = 32 * 1024 * 1024
REQUESTS_MAX = 400
NO_HEADERS: Mapping[str, str] = {}

# What the clients ask on their own account: a title, who speaks next, which model to take. One answer suits them all.
ASIDE = json.dumps({"title": "scripted", "next_speaker": "user", "model_choice": "pro", "reasoning": "scripted"})


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    body: bytes
    status: int = 200
    headers: dict[str, str] = {}


class ModelServer:
    """Use as a context manager. `play` a scenario, run a client against `url`, then look at what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []  # those that a script answered
        self.asides: list[Request] = []  # model requests of the client's own
        self.problems: list[str] = []  # scripts that were too short, requests that could not be read
        self.outward: list[str] = []  # what a client tried to reach elsewhere; always refused
        self.unknown: list[str] = []  # paths of ours that are not served
        self._play = Play({})
        self._replies: dict[str, Reply] = {}
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def play(self, scenario: Scenario) -> None:
        """Play this from now on. Requests that are already recorded stay."""
        self._replies.clear()
        self._play = Play(scenario)

    def conversation(self, name: str) -> list[Request]:
        """The requests of one conversation, in the order they came."""
        return [request for request in self.requests if request.conversation == name]

    def told(self, name: str) -> str:
        """All that the model of one conversation had been told when it was last asked."""
        asked = self.conversation(name)
        return asked[-1].told if asked else ""

    def answer(self, wire: ModuleType, path: str, raw: bytes) -> Reply:
        """The same request again, as a client sends after a broken connection, gets the same answer.

        A service that answered with an error is asked anew.
        """
        key = hashlib.sha256(path.encode() + raw).hexdigest()
        if key in self._replies:
            return self._replies[key]
        body = json.loads(raw)
        messages, tools = wire.messages(body), wire.tools(body)
        with self._lock:
            number = len(self.requests) + len(self.asides)
            request = Request(
                number=number,
                wire=wire.NAME,
                conversation=conversation_of(messages) if tools else None,
                messages=messages,
                tools=tools,
                body=body,
            )
            (self.asides if request.conversation is None else self.requests).append(request)
        turn = self._turn(request)
        if turn.status != 200:
            headers = {"retry-after": str(turn.retry_after_s)} if turn.retry_after_s else {}
            return Reply(kind="application/json", body=wire.problem(turn), status=turn.status, headers=headers)
        kind, reply = wire.answer(turn, path=path, body=body, prefix=f"{request.conversation or 'aside'}_{number}")
        self._replies[key] = Reply(kind=kind, body=reply)
        return self._replies[key]

    def _turn(self, request: Request) -> Turn:
        if request.number >= REQUESTS_MAX:
            self.problems.append(f"more than {REQUESTS_MAX} requests")
            return Turn("enough")
        if request.conversation is None:
            return Turn(ASIDE)
        try:
            return self._play.turn(request)
        except ScriptOver as over:
            self.problems.append(str(over))
            return Turn("The script is over.")


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are written apart. Otherwise the body waits for the acknowledgement of the head, up to 40 ms.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), BODY_BYTES_MAX))
            if self._is_outward():
                return
            path = urlsplit(self.path).path
            for wire in WIRES:
                if wire.is_model(path):
                    self._answer(wire, path, raw)
                    return
            self._aside(path)

        def do_GET(self) -> None:
            if not self._is_outward():
                self._aside(urlsplit(self.path).path)

        def do_HEAD(self) -> None:
            if not self._is_outward():
                self._send(200, "application/json", b"")

        def do_CONNECT(self) -> None:
            server.outward.append(self.path)
            self.close_connection = True
            self._send(403, "text/plain", b"")

        def _is_outward(self) -> bool:
            if self.path.startswith("/") or self.path.startswith(server.url):
                return False
            server.outward.append(self.path)
            self._send(403, "text/plain", b"")
            return True

        def _answer(self, wire: ModuleType, path: str, raw: bytes) -> None:
            try:
                reply = server.answer(wire, path, raw)
            except Exception as error:  # noqa: BLE001 - a broken script must show in the test, not in an unwatched thread
                server.problems.append(f"{path}: {error!r}")
                self._send(400, "application/json", json.dumps({"error": {"message": repr(error)}}).encode())
            else:
                self._send(reply.status, reply.kind, reply.body, reply.headers)

        def _aside(self, path: str) -> None:
            found: dict[str, Any] | None = next((reply for wire in WIRES if (reply := wire.aside(path))), None)
            if found is None:
                server.unknown.append(f"{self.command} {path}")
            self._send(404 if found is None else 200, "application/json", json.dumps(found or {}).encode())

        def _send(self, status: int, kind: str, reply: bytes, headers: Mapping[str, str] = NO_HEADERS) -> None:
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client was ended; what it asked is recorded

        def log_message(self, *_: Any) -> None:
            """Nothing: the requests are kept, and pytest's output is for the tests."""

    return Handler
