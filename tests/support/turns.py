"""Turns for agents in tests, and what came of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from detent.clients.adapter.agent import Agent, Turn
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent
from detent.run.agents import make_agent

#: Tests run in several processes, and a turn ends whatever carries its agent's name.
AGENT_ID = f"run-{os.getpid()}/tester/1"


def turn(directory: Path, **changed: Any) -> Turn:
    (directory / "scratch").mkdir(exist_ok=True)
    given = {
        "agent_id": AGENT_ID,
        "session": "WFS-x",
        "phase": "build",
        "token": "build/1/1",
        "prompt": "do the work",
        "cwd": str(directory),
        "scratch": str(directory / "scratch"),
        "env": {"DETENT_AGENT": AGENT_ID},
        "timeout_s": 60.0,
    }
    return Turn(**{**given, **changed})


def command(script: str, **settings: Any) -> Agent:
    return make_agent(AgentSettings(adapter="command", command=script, **settings))


def work(agent: Agent, given: Turn, stopping: Callable[[], bool] = lambda: False) -> list[AgentEvent]:
    return list(agent.work(given, stopping))


STREAMS = Path(__file__).parents[1] / "client_rooms" / "streams"
