"""The agent of each phase, from the settings and the options of the run."""

import shutil
from collections.abc import Iterable, Iterator, Mapping

from detent.clients.adapter.agent import Agent
from detent.clients.registry import CLIENTS
from detent.config.settings import AgentSettings, Settings
from detent.errors import Invalid, NotFound

_WAY_OUT = "set agent under [run] in detent.toml, or use --agent"
_OWN = '[agents.NAME] adapter = "command", command = "YOUR COMMAND"'
#: The adapters that need settings.
_COMMAND = "command"
_NEED_SETTINGS = (_COMMAND, "acp")


def adapters() -> list[str]:
    return [name for name, client in CLIENTS.items() if client.adapter]


def make_agent(settings: AgentSettings) -> Agent:
    if settings.adapter not in adapters():
        raise Invalid(
            f"there is no adapter {settings.adapter!r}; known adapters: {', '.join(adapters())}",
            way_out="correct the adapter under [agents] in detent.toml",
        )
    agent: Agent = CLIENTS[settings.adapter].load("adapter").adapter(settings)
    return agent


def default_agents() -> dict[str, AgentSettings]:
    """The agents that need no settings."""
    return {name: AgentSettings(adapter=name) for name in adapters() if name not in _NEED_SETTINGS}


def on_path() -> list[str]:
    """The clients whose program is on PATH, in the order of preference."""
    return [name for name in adapters() if CLIENTS[name].program and shutil.which(CLIENTS[name].program)]


class ConfiguredAgents:
    """The agents of the settings. The constructor resolves every name, so that a run cannot fail at an unknown one.

    `overrides` maps phases or roles to agents; the empty name stands for all others. `needed` lists the phases, with
    their roles, that must have an agent.
    """

    def __init__(
        self,
        settings: Settings,
        overrides: Mapping[str, str] | None = None,
        *,
        needed: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._known = {**default_agents(), **settings.agents}
        self._overrides = dict(overrides or {})
        self._named = settings.run.agents
        self._rest = self._overrides.pop("", None) or settings.run.agent or next(iter(on_path()), None)
        self._agents = {name: make_agent(self.settings_of(name)) for name in self._names()}
        for phase, role in needed:
            self.for_phase(phase, role)

    def for_phase(self, phase: str, role: str) -> tuple[str, Agent]:
        """The agent's name in the settings, and the agent."""
        chosen = (names.get(key) for names in (self._overrides, self._named) for key in (phase, role))
        name = next((name for name in chosen if name), self._rest)
        if name is None:
            programs = [client.program for client in CLIENTS.values() if client.program]
            listed = f"{', '.join(programs[:-1])} and {programs[-1]}"
            raise NotFound(
                f"there is no agent for {phase}: none is set, and none of {listed} is on PATH", way_out=_WAY_OUT
            )
        return name, self._agents[name]

    def settings_of(self, name: str) -> AgentSettings:
        if name not in self._known:
            raise NotFound(
                f"there is no agent {name}; known agents: {', '.join(sorted(self._known))}",
                way_out=f"{_WAY_OUT}; a program of yours is an agent with {_OWN} in detent.toml",
            )
        return self._known[name]

    def _names(self) -> Iterator[str]:
        yield from self._overrides.values()
        yield from self._named.values()
        if self._rest is not None:
            yield self._rest


class OneAgent:
    """One agent for all phases, for callers of the `Runner` class."""

    def __init__(self, name: str, agent: Agent, settings: AgentSettings | None = None) -> None:
        self._name, self._agent = name, agent
        self._settings = settings or AgentSettings(adapter=_COMMAND)

    def for_phase(self, phase: str, role: str) -> tuple[str, Agent]:  # noqa: ARG002 - the interface of `Agents`
        return self._name, self._agent

    def settings_of(self, name: str) -> AgentSettings:  # noqa: ARG002
        return self._settings
