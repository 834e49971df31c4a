"""Runs Codex CLI non-interactively: `codex exec` with a stream of JSON lines."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from detent.clients.adapter.driven import Driven, client
from detent.clients.adapter.failure import crashed, failed
from detent.clients.adapter.stream import Calls, Count, decoded, finished
from detent.clients.codex.records import recorded_tokens
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Finished, Said, Started, Used
from detent.core.session.phase_state import Tokens
from detent.process.conversation import Exited

PROGRAM = "codex"
_SANDBOX = (
    "--sandbox",
    "-s",
    "--full-auto",
    "--yolo",
    "--dangerously-bypass-approvals-and-sandbox",
)
_OWN_SANDBOX = "--sandbox workspace-write"
_DEFAULTS = {
    _OWN_SANDBOX: _SANDBOX,
    "--skip-git-repo-check": ("--skip-git-repo-check",),
    # A login shell resets PATH, and `detent` would not be on it.
    "-c allow_login_shell=false": ("allow_login_shell",),
}
#: Its own sandbox lets no process connect to the socket of the runner, and two are not needed.
_INSIDE = {_OWN_SANDBOX: "--sandbox danger-full-access"}
#: Item types of the stream, with the tool names of the hooks.
_TOOLS = {"command_execution": "Bash", "file_change": "apply_patch"}
#: How the message begins when it is about to ask the model again.
_ASKS_AGAIN = "Reconnecting"
_CALLS = (*_TOOLS, "mcp_tool_call", "collab_tool_call", "web_search")


def adapter(settings: AgentSettings) -> Driven:
    reader = partial(CodexReader, _home(settings))
    return client(settings, PROGRAM, ("exec", "--json"), unless=_DEFAULTS, reader=reader, last=("-",), inside=_INSIDE)


def recorded_usage(settings: AgentSettings, conversation: str, since_s: float) -> Tokens:
    """The tokens of a conversation, as the record of Codex tells them."""
    return recorded_tokens(_home(settings), conversation, since_s)


def _home(settings: AgentSettings) -> str:
    return settings.env.get("CODEX_HOME") or os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")


class _Change(msgspec.Struct, frozen=True):
    path: str = ""


class _Item(msgspec.Struct, frozen=True):
    id: str = ""
    type: str = ""
    text: str = ""
    message: str = ""
    command: str = ""
    status: str = ""
    changes: list[_Change] = []
    server: str = ""
    tool: str = ""
    arguments: Any = None
    prompt: str | None = None
    query: str = ""


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Usage(msgspec.Struct, frozen=True):
    #: Includes the cached tokens.
    input_tokens: Count = 0
    output_tokens: Count = 0


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    thread_id: str = ""
    item: _Item = _Item()
    message: str = ""
    error: _Error | None = None
    usage: _Usage = _Usage()


_LINE = msgspec.json.Decoder(_Line)


class CodexReader:
    def __init__(self, home: str | None = None) -> None:
        """`home`: the directory in which Codex records its threads; None reads no records."""
        self._home, self._since_s = home, time.time()
        self._thread = ""
        self._used = Tokens()
        self._calls = Calls()
        self._last_words: str | None = None
        self._is_done = False
        self._error = ""
        #: When it told that it asks again, and how long it waited then. It follows the header `retry-after`.
        self._asked_again_s: float | None = None
        self._retry_after_s = 0.0

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        parsed = decoded(_LINE, line)
        if parsed is None:
            return ()
        match parsed.type:
            case "thread.started":
                self._thread = parsed.thread_id
                return (Started(conversation=parsed.thread_id),)
            case "item.started" if parsed.item.type in _CALLS:
                return self._calls.begin(parsed.item.id, _tool(parsed.item), _arguments(parsed.item))
            case "item.completed":
                return self._completed(parsed.item)
            case "turn.completed":
                self._is_done = True
                self._used = Tokens(input=parsed.usage.input_tokens, output=parsed.usage.output_tokens)
                return (Used(tokens=self._used),)
            case "turn.failed":
                self._error = parsed.error.message if parsed.error else "the turn failed"
            case "error":
                self._error = parsed.message
                self._note_wait(parsed.message)
                return (Said(text=parsed.message),)
            case _:
                pass
        return ()

    def _note_wait(self, message: str) -> None:
        """Measure the wait before its own retry, because no message tells it."""
        now_s = time.monotonic()
        if self._asked_again_s is not None:
            self._retry_after_s = now_s - self._asked_again_s
        self._asked_again_s = now_s if message.startswith(_ASKS_AGAIN) else None

    def unfinished(self) -> Iterable[AgentEvent]:
        """The tool calls without a result, and the tokens that the stream does not tell.

        The stream has no tokens of sub-agents, and none at all of a turn that failed or was ended.
        """
        recorded = recorded_tokens(self._home, self._thread, self._since_s) if self._home and self._thread else Tokens()
        more = recorded.input + recorded.output > self._used.input + self._used.output
        return (*self._calls.unfinished(), *((Used(tokens=recorded),) if more else ()))

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        return (*self.unfinished(), self._ended(exited))

    def _completed(self, item: _Item) -> Iterator[AgentEvent]:
        if item.type == "agent_message":
            self._last_words = item.text
            yield Said(text=item.text)
        elif item.type == "error":
            yield Said(text=item.message)
        elif item.type in _CALLS:
            self._calls.begin(item.id, _tool(item), _arguments(item))  # some kinds have no start line
            yield from self._calls.end(item.id, succeeded=item.status != "failed")

    def _ended(self, exited: Exited) -> Finished | Failed:
        if self._is_done and exited.exit_code == 0:
            return finished(self._last_words or "", self._calls)
        if self._error:
            return failed(self._error, retry_after_s=self._retry_after_s)
        return crashed(PROGRAM, exited)


def _tool(item: _Item) -> str:
    if item.type == "mcp_tool_call":
        return f"mcp__{item.server}__{item.tool}"
    return _TOOLS.get(item.type) or item.tool or item.type


def _arguments(item: _Item) -> str | Mapping[str, Any]:
    changed = ", ".join(change.path for change in item.changes)
    return item.command or changed or item.prompt or item.query or item.arguments or ""
