"""What the model says: a scenario gives every conversation a script, and a script answers one request after the other.

A conversation is told by a marker in its prompt, `[[S:main]]`; the last marker of the user's own text counts, so a
sub-agent plays another script than the session that started it. Knows nothing of HTTP, nor of any client.
"""

import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import msgspec

MARKER = re.compile(r"\[\[S:([\w-]+)\]\]")
POLL_S = 0.02
WAIT_S_MAX = 60.0


class Call(msgspec.Struct, frozen=True):
    """The model calls a tool. Text instead of an object is for the tools that take free text (Codex' apply_patch)."""

    tool: str
    input: dict[str, Any] | str


class Turn(msgspec.Struct, frozen=True):
    """One answer of the model. Without calls it ends the turn."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    #: The model refuses to answer, in the way of the wire format.
    refused: bool = False
    #: The HTTP status; any but 200 is an error. A service that is too busy asks for a wait.
    status: int = 200
    retry_after_s: int = 0


class Result(msgspec.Struct, frozen=True):
    """What the client told the model about a call."""

    call_id: str
    text: str
    is_error: bool = False


class Message(msgspec.Struct, frozen=True):
    """One entry of the history that a client sends, whatever its wire format."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request for the model's next turn. Without a conversation it is the client's own business (titles, quota)."""

    number: int
    wire: str
    conversation: str | None
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    body: dict[str, Any]

    @property
    def results(self) -> tuple[Result, ...]:
        """Every tool result in the history, oldest first."""
        return tuple(result for message in self.messages for result in message.results)

    @property
    def told(self) -> str:
        """All that the model was told, system text and tool results included, without what it said itself."""
        parts = []
        for message in self.messages:
            if message.role != "assistant":
                parts += [message.text, *(result.text for result in message.results)]
        return "\n".join(part for part in parts if part)


Step = Turn | Callable[[Request], Turn]
Script = Sequence[Step] | Callable[[Request], Generator[Turn, Request, None]]
Scenario = Mapping[str, Script]


class ScriptOver(Exception):
    """The client asked once more than the script has turns."""


def say(text: str) -> Turn:
    """The model ends its turn with a text."""
    return Turn(text)


def do(*calls: Call, text: str = "") -> Turn:
    """The model calls tools, all of them in one turn."""
    return Turn(text, calls)


def refuse(text: str = "") -> Turn:
    """The model refuses to answer."""
    return Turn(text, refused=True)


def busy(retry_after_s: int) -> Turn:
    """The service answers no question now: status 429, and the wait that it asks for."""
    return Turn("This request would exceed your rate limit.", status=429, retry_after_s=retry_after_s)


def reject() -> Turn:
    """The service rejects the request for good."""
    return Turn("scripted: the request is invalid", status=400)


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 20.0) -> bool:
    """For a step that has to come after something outside, such as a hook having run. False when it never came."""
    deadline = time.monotonic() + min(timeout_s, WAIT_S_MAX)
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def conversation_of(messages: Sequence[Message]) -> str | None:
    """The last marker in what the user said. Tool results and calls may quote a marker; they are not looked at."""
    for message in reversed(messages):
        found = MARKER.findall(message.text) if message.role == "user" else []
        if found:
            return str(found[-1])
    return None


class Play:
    """A scenario being played. Every conversation has its own place in its script; a script is never played twice."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._running: dict[str, Generator[Turn, Request, None]] = {}
        self._locks: dict[str, threading.Lock] = {name: threading.Lock() for name in scenario}

    def turn(self, request: Request) -> Turn:
        """The next turn of the request's conversation. Raises ScriptOver when there is none."""
        name = request.conversation
        if name is None or name not in self._scenario:
            raise ScriptOver(f"no script for the conversation {name!r}")
        with self._locks[name]:
            try:
                if name in self._running:
                    return self._running[name].send(request)
                script = self._scenario[name]
                self._running[name] = script(request) if callable(script) else _one_by_one(script, request)
                return next(self._running[name])
            except StopIteration:
                raise ScriptOver(f"the script of {name!r} is over") from None


def _one_by_one(steps: Sequence[Step], request: Request) -> Generator[Turn, Request, None]:
    for step in steps:
        request = yield step(request) if callable(step) else step
