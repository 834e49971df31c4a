"""The feed of a run: its events, one a line, for followers in other terminals and on other machines."""

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
from detent.store.port import FeedReader, FeedWriter

_POLL_S = 0.1
#: Fields of events that hold text of agents, people and programs.
_PROSE = frozenset(
    {
        *("choices", "command", "context", "deliverables", "did", "input", "met", "reason", "report", "said"),
        *("summary", "taken_over", "text", "tool", "tools", "warnings", "way_out"),
    }
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RunEvent).decode


class Feed:
    """Writes the events. A feed that cannot be written does not stop the run."""

    def __init__(self, writer: FeedWriter) -> None:
        self._writer = writer
        self._gist = _Gist()

    def tell(self, event: RunEvent) -> None:
        self._gist.add(event)
        self._writer.write(event_line(event), starts=isinstance(event, RunStarted), head=self._gist.lines)

    def close(self) -> None:
        self._writer.close()


def follow(
    reader: FeedReader, *, stopping: Callable[[], bool], belongs: Callable[[str], bool] | None = None
) -> Iterator[RunEvent | None]:
    """The events until the run ends, and None after each poll.

    Only the events of runs that `belongs` accepts by their id. Once `stopping` is true the rest of the feed is read,
    and the iteration ends.
    """
    events = FeedEvents(reader)
    try:
        yield from _followed(events, stopping, belongs)
    finally:
        events.close()


def _followed(
    events: "FeedEvents", stopping: Callable[[], bool], belongs: Callable[[str], bool] | None
) -> Iterator[RunEvent | None]:
    current = ""
    while True:
        is_last = stopping()
        for event in events.read():
            current = event.run if isinstance(event, RunStarted) else current
            if belongs is not None and current and not belongs(current):
                continue
            yield event
            if isinstance(event, RunEnded) and event.end is not End.LOST:
                return
        if is_last:
            return
        yield None
        time.sleep(_POLL_S)


class FeedEvents:
    """The events of a feed, each once: a feed that was cut begins with what a later reader needs."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader = reader
        self._gist = _Gist()

    def read(self) -> Iterator[RunEvent]:
        """The new events since the last call."""
        for line in self._reader.read():
            # An incomplete line, or one of another version; the feed is for display only.
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                event = _decode(line)
                if event not in self._gist:
                    self._gist.add(event)
                    yield event

    def close(self) -> None:
        self._reader.close()


class OpenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose end the feed does not tell."""

    #: The name of the agent in the settings.
    agent: str
    at: datetime
    started: Started = Started()
    #: The tokens of its earlier tries, and of the last one as far as the agent told them.
    spent: Tokens = Tokens()
    used: Tokens | None = None


def open_turns(reader: FeedReader) -> dict[tuple[str, str | None], OpenTurn]:
    """The turns of the last run that have not ended, by phase and task."""
    turns: dict[tuple[str, str | None], OpenTurn] = {}
    events = FeedEvents(reader)
    try:
        for event in events.read():
            if isinstance(event, RunStarted):
                turns = {}
            elif isinstance(event, TurnStarted):
                turns[event.phase, event.task] = OpenTurn(agent=event.agent, at=event.at)
            elif isinstance(event, AgentDid | Retrying) and (turn := turns.get((event.phase, event.task))) is not None:
                turns[event.phase, event.task] = _with_news(turn, event)
    finally:
        events.close()
    return turns


def open_conversations(reader: FeedReader) -> dict[tuple[str, str | None, str], str]:
    """The conversations that the last run left in the middle, by phase, task and agent; none if it ended by itself."""
    begun: dict[tuple[str, str | None], tuple[str, str]] = {}
    was_stopped = True
    events = FeedEvents(reader)
    try:
        for event in events.read():
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
        events.close()
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
    def lines(self) -> tuple[bytes, ...]:
        return tuple(map(event_line, self._events.values()))

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
        return replace(event, did=_short(replace(event.did, text=text)))


def redact_event(event: RunEvent) -> RunEvent:
    """The event as the feed and the screen may show it: without secrets, and what an agent did in short.

    The runner calls this once for every event; `engine/redact_command.py` is the other boundary.
    """
    redacted = redact_fields(event, _PROSE)
    return replace(redacted, did=_short(redacted.did)) if isinstance(redacted, AgentDid) else redacted


def _short(did: AgentEvent) -> AgentEvent:
    match did:
        case Said():
            return replace(did, text=cut(did.text, MAX_SAID))
        case ToolStarted() | ToolUsed():
            return replace(did, tool=cut(did.tool, MAX_TOOL_INPUT), input=cut(did.input, MAX_TOOL_INPUT))
        case Started() | Used() | Finished() | Failed():
            return did
