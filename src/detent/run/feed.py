"""The feed of a run: a file with one event a line, written by the runner and followed from other terminals.

Each run starts a new file; a reader of the old file reads it to its end. A file that has grown too long is replaced by
a new one, which begins with the events that a later reader needs.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec.structs import replace

from detent.core.limits import MAX_SAID, MAX_TOOL_INPUT, cut
from detent.core.redact import redact_fields, redact_part
from detent.core.run.agent_event import AgentEvent, Failed, Finished, Said, Started, ToolStarted, ToolUsed, Used
from detent.core.run.run_event import (
    AgentDid,
    End,
    GateJudged,
    GateStarted,
    PersonNeeded,
    PhaseEnded,
    Retrying,
    RunEnded,
    RunEvent,
    RunStarted,
    StepRan,
    TaskEnded,
    TurnStarted,
)
from detent.core.session.phase_state import Tokens
from detent.store import disk
from detent.store.port import Store

MAX_BYTES = 4 * 1024 * 1024
_POLL_S = 0.1
_CHUNK = 256 * 1024
#: Fields of events that hold text of agents, people and programs.
_PROSE = frozenset(
    {
        *("choices", "command", "context", "deliverables", "did", "input", "met", "reason", "report", "said"),
        *("summary", "taken_over", "text", "tool", "tools", "warnings", "way_out"),
    }
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RunEvent).decode


def feed_path(store: Store, session: str) -> str:
    """The path of the session's feed."""
    return os.path.join(store.directory(f"{session}/.process"), "run.jsonl")


class Feed:
    """Writes the events. A file that cannot be written does not stop the run."""

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._gist = _Gist()
        self._fd: int | None = None
        self._size = 0
        #: Whether the last line is incomplete.
        self._is_torn = False

    def tell(self, event: RunEvent) -> None:
        line = event_line(event)
        is_first = isinstance(event, RunStarted) or self._fd is None
        with suppress(OSError):
            if is_first or self._size + len(line) > self._max_bytes:
                self._start_file(b"" if isinstance(event, RunStarted) else b"".join(map(event_line, self._gist.events)))
            self._write(line)
        self._gist.add(event)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def _start_file(self, head: bytes) -> None:
        """Replace the file by one that begins with `head`, in one step."""
        disk.make_directory(os.path.dirname(self._path))
        temporary = f"{self._path}.{os.getpid()}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, disk.PRIVATE_FILE)
        try:
            os.write(fd, head)
            os.replace(temporary, self._path)
        except OSError:
            os.close(fd)
            raise
        self.close()
        self._fd, self._size, self._is_torn = fd, len(head), False

    def _write(self, line: bytes) -> None:
        assert self._fd is not None
        data = b"\n" + line if self._is_torn else line
        self._is_torn = True
        written = os.write(self._fd, data)
        self._is_torn = written < len(data)
        self._size += written


def follow(path: str, *, from_start: bool, stopping: Callable[[], bool], run: str = "") -> Iterator[RunEvent | None]:
    """The events until the run ends, and None after each poll.

    `from_start` includes the events that the file already holds. `run` skips the events of other runs. Once `stopping`
    is true the rest of the file is read, and the iteration ends.
    """
    reader = FeedReader(path, skips=not from_start)
    try:
        yield from _followed(reader, stopping, run)
    finally:
        reader.close()


def _followed(reader: "FeedReader", stopping: Callable[[], bool], run: str) -> Iterator[RunEvent | None]:
    gist, current = _Gist(), ""
    while True:
        is_last = stopping()
        for event in reader.read():
            if event in gist:
                # Repeated at the beginning of a new file.
                continue
            gist.add(event)
            current = event.run if isinstance(event, RunStarted) else current
            if run and current not in ("", run):
                continue
            yield event
            if isinstance(event, RunEnded):
                return
        if is_last:
            return
        yield None
        time.sleep(_POLL_S)


class OpenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose end the feed does not tell."""

    #: The name of the agent in the settings.
    agent: str
    at: datetime
    started: Started = Started()
    #: The tokens of its earlier tries, and of the last one as far as the agent told them.
    spent: Tokens = Tokens()
    used: Tokens | None = None


def open_turns(path: str) -> dict[tuple[str, str | None], OpenTurn]:
    """The turns of the last run that have not ended, by phase and task."""
    turns: dict[tuple[str, str | None], OpenTurn] = {}
    reader = FeedReader(path, skips=False)
    try:
        for event in reader.read():
            if isinstance(event, RunStarted):
                turns = {}
            elif isinstance(event, TurnStarted):
                turns[event.phase, event.task] = OpenTurn(agent=event.agent, at=event.at)
            elif isinstance(event, AgentDid | Retrying) and (turn := turns.get((event.phase, event.task))) is not None:
                turns[event.phase, event.task] = _with_news(turn, event)
    finally:
        reader.close()
    return turns


def open_conversations(path: str) -> dict[tuple[str, str | None, str], str]:
    """The conversations that the last run left in the middle, by phase, task and agent; none if it ended by itself."""
    begun: dict[tuple[str, str | None], tuple[str, str]] = {}
    was_stopped = True
    reader = FeedReader(path, skips=False)
    try:
        for event in reader.read():
            if isinstance(event, RunStarted):
                begun, was_stopped = {}, True
            elif isinstance(event, TurnStarted):
                begun[event.phase, event.task] = (event.agent, "")
            elif isinstance(event, AgentDid) and isinstance(event.did, Started) and (event.phase, event.task) in begun:
                begun[event.phase, event.task] = (begun[event.phase, event.task][0], event.did.conversation)
            elif isinstance(event, PhaseEnded) and event.status == "completed":
                begun = {key: value for key, value in begun.items() if key[0] != event.phase}
            elif isinstance(event, RunEnded):
                was_stopped = event.end is End.PAUSED
    finally:
        reader.close()
    return {(*key, agent): conversation for key, (agent, conversation) in begun.items() if conversation and was_stopped}


def _with_news(turn: OpenTurn, event: "AgentDid | Retrying") -> OpenTurn:
    if isinstance(event, Retrying):
        return replace(turn, spent=turn.spent + (turn.used or Tokens()), used=None)
    if isinstance(event.did, Used):
        return replace(turn, used=event.did.tokens)
    return replace(turn, started=event.did) if isinstance(event.did, Started) else turn


class _Gist:
    """The events that a reader needs to understand later ones."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, ...], RunEvent] = {}

    @property
    def events(self) -> tuple[RunEvent, ...]:
        return tuple(self._events.values())

    def __contains__(self, event: RunEvent) -> bool:
        return event in self._events.values()

    def add(self, event: RunEvent) -> None:
        match event:
            case RunStarted():
                self._events = {("run",): event}
            case TurnStarted():
                self._drop("need", event.phase)
                self._drop("turn", event.phase, event.task or "")
                self._events["turn", event.phase, event.task or ""] = event
            case PersonNeeded():
                self._events["need", event.phase, event.need, event.about] = event
            case TaskEnded():
                self._drop("turn", event.phase, event.task)
            case PhaseEnded():
                self._drop("turn", event.phase)
                self._drop("need", event.phase)
            case AgentDid(did=Started() | Used()):
                # A run that died has told nothing else about the turn.
                self._events["turn", event.phase, event.task or "", type(event.did).__name__] = event
            case AgentDid() | StepRan() | Retrying() | GateStarted() | GateJudged() | RunEnded():
                pass

    def _drop(self, *start: str) -> None:
        self._events = {key: event for key, event in self._events.items() if key[: len(start)] != start}


class FeedReader:
    """Reads a file that may not exist yet, and that another file may replace."""

    def __init__(self, path: str, *, skips: bool) -> None:
        self._path, self._skips = path, skips
        self._fd: int | None = None
        self._rest = b""

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
        self._fd = None

    def read(self) -> Iterator[RunEvent]:
        """New events: the rest of the open file, then the file that replaced it."""
        yield from self._lines()
        while self._opened_next():
            yield from self._lines()

    def _opened_next(self) -> bool:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            self._skips = False
            return False
        if self._fd is not None:
            if os.path.sameopenfile(fd, self._fd):
                os.close(fd)
                return False
            os.close(self._fd)
        self._fd, self._rest = fd, b""
        if self._skips:
            os.lseek(fd, 0, os.SEEK_END)
            self._skips = False
        return True

    def _lines(self) -> Iterator[RunEvent]:
        while self._fd is not None and (data := os.read(self._fd, _CHUNK)):
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                # An incomplete line, or one of another version; the feed is for display only.
                with suppress(msgspec.DecodeError, UnicodeDecodeError):
                    yield _decode(line)


def event_line(event: RunEvent) -> bytes:
    """The event as a line of JSON."""
    return _encode(event) + b"\n"


class FeedRedaction:
    """Redacts the events of a run one by one. What an agent says comes line by line, and so may a private key."""

    def __init__(self) -> None:
        #: The phases and tasks whose agent is in the middle of one.
        self._inside: set[tuple[str, str | None]] = set()

    def __call__(self, event: RunEvent) -> RunEvent:
        if not isinstance(event, AgentDid) or not isinstance(event.did, Said):
            return redact_event(event)
        speaker = event.phase, event.task
        text, is_inside = redact_part(event.did.text, inside_key=speaker in self._inside)
        (self._inside.add if is_inside else self._inside.discard)(speaker)
        return replace(event, did=_short(Said(text=text)))


def redact_event(event: RunEvent) -> RunEvent:
    """The event as the feed and the screen may show it: without secrets, and what an agent did in short.

    The runner calls this once for every event; `engine/redact_command.py` is the other boundary.
    """
    redacted = redact_fields(event, _PROSE)
    return replace(redacted, did=_short(redacted.did)) if isinstance(redacted, AgentDid) else redacted


def _short(did: AgentEvent) -> AgentEvent:
    match did:
        case Said():
            return Said(text=cut(did.text, MAX_SAID))
        case ToolStarted() | ToolUsed():
            return replace(did, tool=cut(did.tool, MAX_TOOL_INPUT), input=cut(did.input, MAX_TOOL_INPUT))
        case Started() | Used() | Finished() | Failed():
            return did
