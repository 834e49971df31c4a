"""The client of Temporal: connects as its own environment configuration says, and keeps an event loop of its own.

Nothing else of Detent imports `temporalio`, except `flow.py` and `serve.py`.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from detent.errors import Conflict, Refused, StoreFailed
from detent.worker.address import Address
from detent.worker.board import Assignment, Ended
from detent.worker.dispatcher import superseded

try:
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
    from temporalio.client import (
        Client,
        WorkflowFailureError,
        WorkflowHandle,
        WorkflowUpdateFailedError,
        WorkflowUpdateRPCTimeoutOrCancelledError,
    )
    from temporalio.common import WorkflowIDConflictPolicy
    from temporalio.envconfig import ClientConfig
    from temporalio.service import RPCError
except ImportError as error:
    raise Refused(
        "work on several machines needs temporalio, which is not installed", way_out="pip install 'detent[temporal]'"
    ) from error

Answer = TypeVar("Answer")
#: How long a call waits for the scheduler.
CALL_S, CONNECT_S = 20.0, 10.0
#: A step of a workflow takes milliseconds. A frozen worker that got one is replaced after this time.
STEP_S = 2.0
_RETRY_S = 0.5


async def connect(address: Address, **options: Any) -> Client:
    """A client. TLS, API keys and profiles are those of Temporal's environment configuration."""
    known: dict[str, Any] = {**ClientConfig.load_client_connect_config()}
    known |= {"target_host": address.target, "namespace": address.namespace, **options}
    try:
        return await asyncio.wait_for(Client.connect(**known), CONNECT_S)
    except (RuntimeError, TimeoutError, OSError) as error:
        raise StoreFailed(
            f"Temporal at {address} cannot be reached: {error or 'no answer'}",
            way_out="start it, or correct --on; docs/scale.md",
        ) from error


class Loop:
    """An event loop on a thread of its own, for callers without one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="temporal")
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Answer], wait_s: float | None = CALL_S) -> Answer:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(wait_s)
        except TimeoutError as error:
            future.cancel()
            raise StoreFailed("Temporal does not answer") from error
        except (RPCError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            raise StoreFailed(f"Temporal refused a call: {error}") from error

    def begin(self, work: Coroutine[Any, Any, Answer]) -> "Future[Answer]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def pause(self, seconds: float) -> None:
        """Wait in the calling thread; a signal ends it."""
        time.sleep(seconds)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> Callable[[], object]:
        """Run it beside; returns a function that ends it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).cancel

    def close(self) -> None:
        self.call(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_S)
        if not self._thread.is_alive():
            self._loop.close()


async def _cancel_others() -> None:
    """End what still runs, so that nothing is left half done when the loop is closed."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class FlowLink:
    """The way of a run loop to the board in its workflow. See `Link`."""

    def __init__(self, loop: Loop, flow: "WorkflowHandle[Any, Any]", session: str, run: str, term: int) -> None:
        self._loop, self._flow, self._session, self._run, self._term = loop, flow, session, run, term
        self._stop: Callable[[], object] = lambda: None
        self._is_closed = False

    def attach(self, deliver: Callable[[Ended], None]) -> list[Assignment]:
        jobs = self._loop.call(self._flow.execute_update("attach", args=[self._run, self._term]))
        if jobs is None:
            raise superseded(self._session)
        self._stop = self._loop.spawn(self._listen(deliver))
        return msgspec.convert(jobs, list[Assignment])

    def submit(self, job: Assignment) -> None:
        self._loop.call(self._flow.signal("submit", args=[self._run, msgspec.to_builtins(job)]))

    def stop(self, job: str, why: str) -> None:
        self._loop.call(self._flow.signal("stop", args=[self._run, job, why]))

    def close(self) -> None:
        self._is_closed = True
        self._stop()

    async def _listen(self, deliver: Callable[[Ended], None]) -> None:
        seen = 0
        while True:
            try:
                ended = msgspec.convert(await self._flow.execute_update("ended", args=[self._run, seen]), list[Ended])
            except (RPCError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError):
                if self._is_closed:
                    return
                await asyncio.sleep(_RETRY_S)
                continue
            for job in ended:
                deliver(job)
            seen += len(ended)


async def start_flow(client: Client, name: str, identity: str, given: Any, queue: str) -> "WorkflowHandle[Any, Any]":
    """Start the workflow of a session, or return the one that runs."""
    return await client.start_workflow(
        name,
        msgspec.to_builtins(given),
        id=identity,
        task_queue=queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        task_timeout=timedelta(seconds=STEP_S),
        rpc_timeout=timedelta(seconds=CALL_S),
    )


async def flow_result(flow: "WorkflowHandle[Any, Any]") -> str:
    """How the run of the session ended."""
    try:
        return str(await flow.result())
    except WorkflowFailureError as error:
        raise Conflict(
            f"the workflow {flow.id} ended: {error.cause}", way_out="detent run --on starts it again"
        ) from error


class Poller(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has asked for work lately."""

    identity: str
    queue: str
    seen: str


async def pollers(client: Client, queues: list[str]) -> list[Poller]:
    workers: list[Poller] = []
    for queue in queues:
        described = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=client.namespace,
                task_queue=TaskQueue(name=queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            ),
            timeout=timedelta(seconds=CALL_S),
        )
        workers += [
            Poller(identity=poller.identity, queue=queue, seen=poller.last_access_time.ToJsonString())
            for poller in described.pollers
        ]
    return workers
