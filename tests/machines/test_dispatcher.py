"""Workers of Temporal as a dispatcher, under the same contract as threads. Only with `make test-machines`."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.config.settings import AgentSettings
from detent.engine.project import open_project
from detent.run.agents import OneAgent, make_agent
from detent.run.context import RunContext, RunOptions
from tests.support import temporal_server
from tests.support.dispatcher_contract import COMMAND, PHASES, DispatcherContract
from tests.support.project import build_project

SETTINGS = """
gates = "off"
[files]
url = "file://{shared}"
[agents.sh]
adapter = "command"
command = '''{command}'''
env = {{MEET = "{root}"}}
[run]
agent = "sh"
sandbox = "off"
[workflows.w]
phases = [{phases}]
"""


@pytest.fixture
def server():
    if reason := temporal_server.missing():
        pytest.skip(reason)
    return temporal_server.shared()


class WorkerStage:
    """This test is the run loop of the session: no worker takes loops, and one takes jobs."""

    def __init__(self, root, shared, port) -> None:
        from temporalio.client import Client

        from detent.worker.address import Address
        from detent.worker.board import flow_name, loop_run
        from detent.worker.dispatcher import RemoteDispatcher
        from detent.worker.flow_link import FlowLink
        from detent.worker.given import NAME, Given
        from detent.worker.prepared import project_key
        from detent.worker.queues import loop_queue
        from detent.worker.serve import Offer, Serving
        from detent.worker.temporal import Loop, connect, start_flow

        phases = " ".join(PHASES.split())
        build_project(root, SETTINGS.format(shared=shared, command=COMMAND, root=root, phases=phases))
        self._project = open_project(root, actor="tester")
        self.handle = self._project.start("w", "t")
        key = project_key(self._project)
        agents = OneAgent("sh", make_agent(AgentSettings(adapter="command", command=COMMAND)))
        self._loop = Loop()
        address = Address("127.0.0.1", port, "default")
        service = self._loop.call(connect(address))
        client = Client(service, namespace=address.namespace)
        self._serving = Serving(os.fspath(root), None, client, Offer())
        self._over = asyncio.Event()
        self._worker = self._loop.begin(self._work(client, key))
        given = Given(project=key, session=self.handle.id, on=str(address), heartbeat_s=5.0)
        flow = f"contract/{key}"
        started = self._loop.call(start_flow(service, address.namespace, NAME, flow, given, loop_queue(key)))
        self._flow, run = client.get_workflow_handle(flow), loop_run(flow_name(started), 1)
        self.context = RunContext(
            self._project, self.handle.id, run, agents=agents, options=RunOptions(parallel=2), tell=lambda event: None
        )
        link = FlowLink(self._loop, self._flow, run)
        self.dispatcher = RemoteDispatcher(self.context, link, lambda phase: ())
        assert self.dispatcher.adopt() == []

    async def _work(self, client, key) -> None:
        from temporalio.worker import UnsandboxedWorkflowRunner, Worker

        from detent.worker.flow import SessionFlow
        from detent.worker.queues import job_queue, loop_queue

        with ThreadPoolExecutor(4) as threads:
            flows = Worker(
                client,
                task_queue=loop_queue(key),
                workflows=[SessionFlow],
                workflow_runner=UnsandboxedWorkflowRunner(),
            )
            jobs = Worker(
                client, task_queue=job_queue(key, ()), activities=[self._serving.do_job], activity_executor=threads
            )
            async with flows, jobs:
                await self._over.wait()

    def close(self) -> None:
        self.dispatcher.close()
        self._serving.stop_jobs("the test is over")
        self._loop.call(self._flow.terminate())

        async def end() -> None:
            self._over.set()

        self._loop.call(end())
        self._worker.result(60.0)
        self._serving.close()
        self._loop.close()
        self._project.close()


@pytest.fixture
def stage(tmp_path, server):
    staged = WorkerStage(tmp_path / "root", tmp_path / "shared", server.port)
    yield staged
    staged.close()


class TestTemporal(DispatcherContract):
    pass
