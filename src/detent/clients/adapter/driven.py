"""An agent that is a process: starts it, reads its lines, and ends all its processes with the turn."""

import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Protocol

import msgspec

from detent.clients.adapter.agent import Turn
from detent.config.settings import AgentSettings
from detent.core.limits import MAX_ERROR, MAX_SAID, MAX_TOOL_INPUT
from detent.core.run.agent_event import (
    AgentEvent,
    Failed,
    Failure,
    Finished,
    Said,
    Started,
    ToolStarted,
    ToolUsed,
    Used,
)
from detent.engine.agents.environment import AGENT
from detent.process.conversation import Exited, Input, converse
from detent.process.marked import end_marked

#: Events hold texts this many times longer than shown, so that the feed redacts secrets while they are whole.
_MARGIN = 4
#: A reader that talks ends a turn at its time limit itself, in order. After this time more the process is ended.
_GRACE_S = 30.0


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The command of a turn."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    #: Variables in addition to those of the runner, the settings and the turn.
    env: dict[str, str] = {}


class Reader(Protocol):
    """Reads the output of one turn's process. Ignores lines that it does not understand."""

    def line(self, line: bytes) -> Iterable[AgentEvent]: ...

    def unfinished(self) -> Iterable[AgentEvent]:
        """The tool calls without a result when the process was stopped, and tokens that were not told before."""
        return ()

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        """The last events after the process ended by itself; the last one is `Finished` or `Failed`."""
        ...


class FloodReader(Reader):
    """A reader of output that may be of any length: it gets the lines that came at once together."""

    @abstractmethod
    def lines(self, lines: Sequence[bytes]) -> Iterable[AgentEvent]: ...

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        return self.lines((line,))


class TalkingReader(Reader):
    """A reader that also writes: it answers the process while the process runs."""

    def __init__(self) -> None:
        self.input = Input()
        #: Whether the turn has ended, even if the process has not.
        self.is_over = False

    @abstractmethod
    def tick(self, *, stopping: bool) -> bool:
        """Called several times a second; ends the process when it returns True. `stopping`: the turn is to end."""
        ...


class Driven:
    """The agent: every turn has its own launch and reader."""

    def __init__(
        self, launch: Callable[[Turn], Launch], reader: Callable[[Turn], Reader], env: Mapping[str, str]
    ) -> None:
        self._launch, self._reader, self._env = launch, reader, env

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        with closing(self._events(turn, stopping)) as events:
            yield from map(_bounded, events)

    def _events(self, turn: Turn, stopping: Callable[[], bool]) -> Generator[AgentEvent, None, None]:
        reader = self._reader(turn)
        try:
            launch = self._launch(turn)
        except OSError as error:
            yield Failed(failure=Failure.ERROR, reason=f"could not write {error.filename}: {error.strerror}")
            return
        exited = Exited(None)
        try:
            with closing(self._converse(launch, reader, turn, stopping)) as talk:
                for item in talk:
                    if isinstance(item, list):
                        yield from _read(reader, item)
                    elif item is not None:
                        exited = item
        finally:
            # Processes that left the process group still have this variable.
            end_marked(f"{AGENT}={turn.agent_id}")
        if exited.problem is None or (isinstance(reader, TalkingReader) and reader.is_over):
            yield from reader.end(exited)
        else:
            yield from reader.unfinished()
            yield Failed(failure=_cut_short(exited), reason=exited.problem)

    def _converse(
        self, launch: Launch, reader: Reader, turn: Turn, stopping: Callable[[], bool]
    ) -> Generator[list[bytes] | Exited | None, None, None]:
        given: bytes | Input = launch.stdin
        if isinstance(reader, TalkingReader):
            given, stopping = reader.input, partial(_ticking, reader, stopping)
        yield from converse(
            launch.argv,
            cwd=turn.cwd,
            env={**os.environ, **self._env, **turn.env, **launch.env},
            given=given,
            timeout_s=turn.timeout_s + (_GRACE_S if isinstance(reader, TalkingReader) else 0.0),
            stopping=stopping,
            sandbox=turn.sandbox() if turn.sandbox is not None else None,
        )


def _ticking(reader: TalkingReader, stopping: Callable[[], bool]) -> bool:
    return reader.tick(stopping=stopping())


def _read(reader: Reader, lines: Sequence[bytes]) -> Iterator[AgentEvent]:
    if isinstance(reader, FloodReader):
        yield from reader.lines(lines)
        return
    for line in lines:
        yield from reader.line(line)


def client(
    settings: AgentSettings,
    program: str,
    arguments: Sequence[str],
    *,
    unless: Mapping[str, Sequence[str]],
    reader: Callable[[], Reader],
    last: Sequence[str] = (),
    inside: Mapping[str, str] | None = None,
    of_turn: Callable[[Turn], Sequence[str]] = lambda _: (),
) -> Driven:
    """A client that receives its prompt on standard input.

    `unless` maps default arguments to the rival options that replace them in the settings. `inside` maps default
    arguments to those that replace them in a sandbox of Detent. `of_turn` gives the arguments of one turn.
    """
    defaults = [words for words, rivals in unless.items() if not _has(settings.args, rivals)]

    def launch(turn: Turn) -> Launch:
        replaced = (inside or {}) if turn.sandbox is not None else {}
        own = (word for words in defaults for word in replaced.get(words, words).split())
        given = (*arguments, *own, *of_turn(turn), *settings.args, *last)
        argv = (os.path.expanduser(settings.command or program), *given)
        return Launch(argv=argv, stdin=as_input(turn.prompt))

    return Driven(launch, lambda _: reader(), settings.env)


def as_input(prompt: str) -> bytes:
    return prompt.encode("utf-8", "replace")


def _has(arguments: Sequence[str], names: Sequence[str]) -> bool:
    return any(argument.partition("=")[0] in names for argument in arguments)


def _cut_short(exited: Exited) -> Failure:
    if exited.timed_out:
        return Failure.TIMEOUT
    return Failure.STOPPED if exited.problem == "stopped" else Failure.ERROR


def _bounded(event: AgentEvent) -> AgentEvent:
    """The event with texts that are not longer than what can matter."""
    match event:
        case Said(text=text):
            return msgspec.structs.replace(event, text=text.strip()[: _MARGIN * MAX_SAID])
        case ToolStarted(tool=tool, input=given) | ToolUsed(tool=tool, input=given):
            most = _MARGIN * MAX_TOOL_INPUT
            return msgspec.structs.replace(event, tool=tool[:most], input=given[:most])
        case Failed(reason=reason):
            return msgspec.structs.replace(event, reason=reason.strip()[: _MARGIN * MAX_ERROR])
        case Started() | Used() | Finished():
            return event
