"""An agent that is a process: how it is started, who understands its lines, and an end that leaves nothing running."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Protocol

import msgspec

from detent.clients.adapter.agent import Turn
from detent.config.settings import AgentSettings
from detent.core.limits import MAX_ERROR, MAX_SAID, MAX_TOOL_INPUT
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Said, ToolUsed
from detent.engine.agents.environment import AGENT
from detent.process.conversation import Exited, converse
from detent.process.marked import end_marked

#: Text is passed on this many times longer than it is shown, so that secrets are redacted while they are whole.
_MARGIN = 4
#: What a process says faster than anybody can read is not all told, since looking for secrets in it takes time too;
#: nothing else is left out.
SAID_A_SECOND = 50


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How a process is started for a turn."""

    argv: tuple[str, ...]
    given: bytes = b""
    #: Besides what the runner, the settings and the turn put there.
    env: dict[str, str] = {}


class Reader(Protocol):
    """Understands what the process of one turn puts out. What it cannot understand it passes over."""

    def line(self, line: bytes) -> Iterable[AgentEvent]: ...

    def unfinished(self) -> Iterable[ToolUsed]:
        """The tools that were at work when the process was ended from here."""
        ...

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        """What is left to tell after the process ended by itself; the last is `Finished` or `Failed`."""
        ...


class Driven:
    """The agent: a launch and a reader of its own for every turn."""

    def __init__(
        self, launch: Callable[[Turn], Launch], reader: Callable[[Turn], Reader], env: Mapping[str, str]
    ) -> None:
        self._launch, self._reader, self._env = launch, reader, env

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        pace = _Pace()
        with closing(self._events(turn, stopping)) as events:
            for event in events:
                if not isinstance(event, Said) or (event.text.strip() and pace.allows_one_more()):
                    yield _bounded(event)

    def _events(self, turn: Turn, stopping: Callable[[], bool]) -> Generator[AgentEvent, None, None]:
        reader = self._reader(turn)
        try:
            launch = self._launch(turn)
        except OSError as error:
            yield Failed(failure=Failure.ERROR, reason=f"could not write {error.filename}: {error.strerror}")
            return
        exited = Exited(None)
        try:
            with closing(self._converse(launch, turn, stopping)) as talk:
                for item in talk:
                    if isinstance(item, bytes):
                        yield from reader.line(item)
                    elif item is not None:
                        exited = item
        finally:
            # Whatever left the process group still has this in its environment.
            end_marked(f"{AGENT}={turn.agent_id}")
        if exited.problem is None:
            yield from reader.end(exited)
        else:
            yield from reader.unfinished()
            yield Failed(failure=_cut_short(exited), reason=exited.problem)

    def _converse(
        self, launch: Launch, turn: Turn, stopping: Callable[[], bool]
    ) -> Generator[bytes | Exited | None, None, None]:
        yield from converse(
            launch.argv,
            cwd=turn.cwd,
            env={**os.environ, **self._env, **turn.env, **launch.env},
            given=launch.given,
            timeout_s=turn.timeout_s,
            stopping=stopping,
        )


def client(
    settings: AgentSettings,
    program: str,
    arguments: Sequence[str],
    *,
    unless: Mapping[str, Sequence[str]],
    reader: Callable[[], Reader],
    last: Sequence[str] = (),
) -> Driven:
    """An agent client that is given its prompt on its input.

    `unless` has the arguments that are given only if the settings have none of those that stand beside them.
    """
    defaults = [word for words, rivals in unless.items() if not _has(settings.args, rivals) for word in words.split()]
    argv = (os.path.expanduser(settings.command or program), *arguments, *defaults, *settings.args, *last)
    return Driven(lambda turn: Launch(argv=argv, given=as_input(turn.prompt)), lambda _: reader(), settings.env)


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
            return Said(text=text.strip()[: _MARGIN * MAX_SAID])
        case ToolUsed(tool=tool, input=given, succeeded=succeeded):
            most = _MARGIN * MAX_TOOL_INPUT
            return ToolUsed(tool=tool[:most], input=given[:most], succeeded=succeeded)
        case Failed(failure=failure, reason=reason):
            return Failed(failure=failure, reason=reason.strip()[: _MARGIN * MAX_ERROR])
    return event


class _Pace:
    def __init__(self) -> None:
        self._since, self._told = 0.0, 0

    def allows_one_more(self) -> bool:
        now = time.monotonic()
        if now - self._since >= 1.0:
            self._since, self._told = now, 0
        self._told += 1
        return self._told <= SAID_A_SECOND
