"""Threads of this process as a dispatcher."""

import os
import uuid

import pytest

from detent.config.settings import AgentSettings
from detent.engine.project import open_project
from detent.run.agents import OneAgent, make_agent
from detent.run.context import RunContext, RunOptions
from detent.run.dispatcher import LocalDispatcher
from tests.support.dispatcher_contract import COMMAND, PHASES, DispatcherContract
from tests.support.project import build_project


class LocalStage:
    def __init__(self, root) -> None:
        phases = " ".join(PHASES.split())
        build_project(root, f'gates = "off"\n[run]\nsandbox = "off"\n[workflows.w]\nphases = [{phases}]\n')
        self._project = open_project(root, actor="tester")
        self.handle = self._project.start("w", "t")
        settings = AgentSettings(adapter="command", command=COMMAND, env={"MEET": os.fspath(root)})
        agents = OneAgent("sh", make_agent(settings), settings)
        self.context = RunContext(
            self._project,
            self.handle.id,
            # Closing ends every process of the machine that has this id, so that of another test differs.
            f"run-{uuid.uuid4().hex[:8]}",
            agents=agents,
            options=RunOptions(parallel=2),
            tell=lambda event: None,
        )
        self.dispatcher = LocalDispatcher(self._project, self.context)

    def close(self) -> None:
        self.dispatcher.close()
        self._project.close()


@pytest.fixture
def stage(tmp_path):
    staged = LocalStage(tmp_path)
    yield staged
    staged.close()


class TestLocal(DispatcherContract):
    pass
