"""What all who work in one run share: its settings, its agents, whoever looks on, and the sign to stop."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from detent.config.settings import AgentSettings
from detent.core.agent_event import AgentEvent, Failed, Failure, Finished, Said, Started, ToolUsed, Used
from detent.core.phase_state import Report, Tokens, ToolUse
from detent.core.run_event import AgentDid, Retrying, RunEvent
from detent.core.session import Session, SessionStatus
from detent.core.status import Status
from detent.core.token import Token
from detent.run.agent import Agent, Turn
from detent.run.course import pause_before

if TYPE_CHECKING:
    from detent.engine.project import Clock, Project

#: Lines of an agent that are passed on at once, and how many more a second; the rest is not shown to anybody.
SAID_BURST, SAID_PER_S = 50, 20
SCRATCH = ".process/turns"
#: Carried by everything that is started for a session, so that it can be found and ended wherever it went.
SESSION_MARK, RUN_MARK, AGENT_MARK, STATE_MARK = "DETENT_SESSION", "DETENT_RUN", "DETENT_AGENT", "DETENT_STATE"
GATE_MARK = "DETENT_GATE"


class Agents(Protocol):
    def for_phase(self, phase: str, role: str) -> tuple[str, Agent]:
        """The agent that does the phase, and its name in the settings."""
        ...

    def settings_of(self, name: str) -> AgentSettings: ...


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    parallel: int = 1
    #: Attempts of a phase or task, and turns of an attempt, before a person has to decide.
    attempts: int = 3
    turns: int = 10
    #: What runs the tests, for gates that name no command.
    tests: str | None = None
    #: Whether test runs of agents are seen, and count where no command is named.
    observes: bool = False
    #: Wait for a person where nothing else can go on, instead of ending.
    wait: bool = False


class Target(NamedTuple):
    """An attempt of a phase, or a task under a claim."""

    token: Token
    task: str | None = None
    claim: int = 0

    def is_live(self, session: Session) -> bool:
        """Whether it still goes on, as far as anybody knows."""
        if session.status is not SessionStatus.ACTIVE:
            return False
        if self.task is not None:
            held = session.claims.get(self.task)
            return held is not None and held.fence == self.claim
        phase = self.token.phase
        return session.phases[phase].status is Status.IN_PROGRESS and session.token(phase) == self.token


class Work:
    """Somebody works on a phase, or on a task of one. May be told to stop, from any thread, with a reason."""

    def __init__(self, desk: "Desk", phase: str) -> None:
        self.desk, self.phase = desk, phase
        #: What is worked on, once that is known.
        self.target: Target | None = None
        self.why_stopped = ""
        self._stop = threading.Event()

    def stop(self, why: str) -> None:
        self.why_stopped = self.why_stopped or why
        self._stop.set()

    @property
    def task(self) -> str | None:
        return self.target.task if self.target is not None else None

    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def wait(self, pause_s: float) -> None:
        self._stop.wait(pause_s)


class Desk:
    def __init__(
        self,
        project: "Project",
        session: str,
        run: str,
        agents: Agents,
        options: RunOptions,
        tell: Callable[[RunEvent], None],
    ) -> None:
        self.session, self.run, self.agents, self.options, self.tell = session, run, agents, options, tell
        self.clock: Clock = project.clock
        self._directory = os.path.join(project.place.state, session)
        self._state = project.place.state
        #: Task to what the last try ended with, for the next one to know.
        self.failures: dict[str, str] = {}
        #: How many work now.
        self.busy = 0
        self._count = 0
        self._counting = threading.Lock()

    @property
    def sees_tests(self) -> bool:
        """Whether anything but a person can open a gate that asks for tests and names no command."""
        return self.options.tests is not None or self.options.observes

    def next_agent_id(self, agent: str) -> str:
        with self._counting:
            self._count += 1
            return f"{self.run}/{agent}/{self._count}"

    def marks(self) -> dict[str, str]:
        """The environment of everything that is started for the session."""
        here = os.path.dirname(sys.executable)
        return {
            SESSION_MARK: self.session,
            RUN_MARK: self.run,
            STATE_MARK: self._state,
            # So that `detent` is this one in the shells of agents and gates.
            "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

    @contextmanager
    def scratch(self, agent_id: str) -> Iterator[str]:
        """A place for the files of a turn. It is made by whoever needs it, and gone afterwards."""
        path = os.path.join(self._directory, SCRATCH, agent_id.replace("/", "-"))
        try:
            yield path
        finally:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)


class Delegated(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a turn: how it ended, and all that is to be recorded about it either way."""

    end: Finished | Failed
    report: Report


def delegate(work: Work, turn: Turn, name: str, agent: Agent, over: Callable[[Tokens], str | None]) -> Delegated:
    """One turn by an agent, again after a pause where it failed for a passing reason.

    `over` is asked with the tokens so far whether the turn must end for what it used; whatever it says is the reason.
    """
    settings = work.desk.agents.settings_of(name)
    spent, tools = Tokens(), Tools(work)
    for again in range(settings.retries + 1):
        end, used = _once(work, turn, agent, tools, lambda used: over(spent + used))  # noqa: B023 - called in here
        spent += used
        if not isinstance(end, Failed) or end.failure is not Failure.TRANSIENT or again == settings.retries:
            break
        pause_s = pause_before(again + 1, settings.backoff_s)
        work.desk.tell(
            Retrying(
                at=work.desk.clock(),
                phase=work.phase,
                task=work.task,
                reason=end.reason,
                pause_s=pause_s,
                again=again + 1,
                of=settings.retries,
            )
        )
        work.wait(pause_s)
        if work.is_stopping():
            end = Failed(failure=Failure.STOPPED, reason=work.why_stopped)
            break
    report = end.report if isinstance(end, Finished) else Report()
    return Delegated(end=end, report=msgspec.structs.replace(report, tokens=spent, tools=tuple(tools.used)))


def _once(
    work: Work, turn: Turn, agent: Agent, tools: "Tools", over: Callable[[Tokens], str | None]
) -> tuple[Finished | Failed, Tokens]:
    used, end = Tokens(), None
    for event in agent.work(turn, work.is_stopping):
        match event:
            case Used():
                used = event.tokens
                if (reason := over(used)) is not None:
                    work.stop(reason)
            case Finished() | Failed():
                end = event
        tools.take(event)
    if end is None:
        end = Failed(failure=Failure.ERROR, reason="the agent ended without saying how")
    if work.is_stopping() and isinstance(end, Failed):
        end = Failed(failure=Failure.STOPPED, reason=work.why_stopped)
    return end, used


class Tools:
    """What an agent did, for the record; passed on to whoever looks on, who is not flooded."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.used: list[ToolUse] = []
        self._room, self._since_s = float(SAID_BURST), time.monotonic()

    def take(self, event: AgentEvent) -> None:
        now = self._work.desk.clock()
        if isinstance(event, ToolUsed):
            self.used.append(ToolUse(tool=event.tool, input=event.input, at=now, succeeded=event.succeeded))
        if isinstance(event, Started | ToolUsed | Used) or (isinstance(event, Said) and self._has_room()):
            self._work.desk.tell(AgentDid(at=now, phase=self._work.phase, task=self._work.task, did=event))

    def _has_room(self) -> bool:
        now_s = time.monotonic()
        self._room = min(SAID_BURST, self._room + (now_s - self._since_s) * SAID_PER_S)
        self._since_s = now_s
        if self._room < 1:
            return False
        self._room -= 1
        return True
