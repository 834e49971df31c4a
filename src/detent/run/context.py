"""The context that all jobs of one run share: options, agents, environment, receiver of events."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from detent.clients.acp.agents import client_of
from detent.clients.adapter.agent import Agent
from detent.config.settings import AgentSettings
from detent.core.run.run_event import RunEvent
from detent.engine.agents import environment as variables
from detent.engine.agents.own_program import own_path
from detent.process.sandbox import Sandbox
from detent.run.feed import open_conversations
from detent.store.feed_file import FeedFileReader, feed_path

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.engine.project import Clock, Project

#: The kind of an escalation that a limit of the run raises.
RUN_LIMIT = "run_limit"
_TURNS, _PROGRAMS = ".process/turns", ".process/bin"


class Agents(Protocol):
    def for_phase(self, phase: str, role: str) -> tuple[str, Agent]:
        """The agent's name in the settings, and the agent of the phase."""
        ...

    def settings_of(self, name: str) -> AgentSettings: ...


class Inside(NamedTuple):
    """A turn in a sandbox; empty without one."""

    sandbox: Callable[[], Sandbox] | None = None
    env: dict[str, str] = {}  # noqa: RUF012 - the default is never changed


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    #: Maximum number of phases or tasks to run in parallel.
    parallel: int = 1
    #: Maximum number of attempts of a phase or task, and of turns of an attempt, before it escalates to a person.
    attempts: int = 3
    turns: int = 10
    #: Whether hooks observe test runs of agents; they count for gates that name no command.
    observes: bool = False
    #: Wait for a person instead of ending when only a person can act.
    wait: bool = False
    #: Limits of the run; when one is reached, a person decides.
    max_hours: float = 8.0
    max_turns: int = 200
    max_tasks: int = 50


class RunContext:
    def __init__(
        self,
        project: "Project",
        session: str,
        run: str,
        *,
        agents: Agents,
        options: RunOptions,
        tell: Callable[[RunEvent], None],
    ) -> None:
        self.session, self.run, self.agents, self.options, self.tell = session, run, agents, options, tell
        self.clock: Clock = project.clock
        self._sandbox = project.sandbox
        self._turns = project.store.directory(f"{session}/{_TURNS}")
        #: Variables in the environment of every process of the run.
        self.marks = {
            variables.SESSION: session,
            variables.RUN: run,
            variables.STATE: project.store.location(""),
            **own_path(project.store.directory(f"{session}/{_PROGRAMS}")),
        }
        #: The reason of the last failure of each task, for the next attempt.
        self.failures: dict[str, str] = {}
        #: The conversation of the last turn, by phase, task and agent: a next turn may continue it on this machine.
        self.conversations = open_conversations(FeedFileReader(feed_path(project.store, session)))
        #: Number of running jobs.
        self.busy = 0
        #: Whether an earlier runner did not give the session back: it died, or it may work on.
        self.took_over = False
        self._count = 0
        #: Number of turns at which a person decides.
        self._turn_limit = options.max_turns
        self._counting = threading.Lock()

    @property
    def sees_tests(self) -> bool:
        """Whether a gate that asks for tests and names no command can be opened without a person."""
        return self.options.observes

    def next_agent_id(self, agent: str) -> str:
        with self._counting:
            self._count += 1
            return f"{self.run}/{agent.replace('/', '_')}/{self._count}"

    @property
    def turns(self) -> int:
        """Number of turns that agents were given."""
        return self._count

    def count_turns(self, turns: int) -> None:
        """Add turns that agents were given on other machines."""
        with self._counting:
            self._count += turns

    def turn_limit_reached(self) -> str | None:
        """Whether no turn is left, as a sentence. That is said once; then as many turns are allowed again."""
        with self._counting:
            if self._count < self._turn_limit:
                return None
            self._turn_limit = self._count + self.options.max_turns
            return limit_text(f"{self._count} turns were given to agents", "max_turns", self.options.max_turns)

    @contextmanager
    def inside(self, place: "Place", agent: str, env: dict[str, str], scratch: str) -> Iterator[Inside]:
        """The sandbox of a turn, if the run has one, and the variables that a process needs in it."""
        sandbox = self._sandbox
        if sandbox is None:
            yield Inside()
            return
        from detent.run.socket import opened  # noqa: PLC0415 - only for a sandbox

        settings = self.agents.settings_of(agent)
        known = {**os.environ, **settings.env, **env}
        with opened(env, (place.base, place.root), sandbox) as (directory, variable):
            yield Inside(
                lambda: sandbox.for_agent(place, client_of(settings), known, scratch=scratch, socket=directory),
                variable,
            )

    @contextmanager
    def scratch(self, agent_id: str) -> Iterator[str]:
        """A directory for the files of a turn. The adapter creates it if needed; it is removed afterwards."""
        path = os.path.join(self._turns, agent_id.replace("/", "-"))
        try:
            yield path
        finally:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)


def limit_text(used: str, setting: str, limit: float) -> str:
    return f"{used}; {setting} of the run is {limit:g}. detent resolve retry allows as much again"
