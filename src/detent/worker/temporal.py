"""The connection to Temporal, as its own environment configuration says, and an event loop for callers without one.

It uses the service itself: the client of `temporalio` takes twice as long to load, and only a worker needs it. Nothing
else of Detent imports `temporalio`, except `flow.py`, `flow_link.py` and `serve.py`.
"""

import asyncio
import logging
import re
import threading
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Self, TypeVar

import msgspec

from detent.errors import Conflict, Refused, StoreFailed
from detent.extras import install_command
from detent.worker.address import Address

try:
    from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution, WorkflowType
    from temporalio.api.enums.v1 import HistoryEventFilterType, TaskQueueType, WorkflowIdConflictPolicy
    from temporalio.api.history.v1 import HistoryEvent
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import (
        DescribeNamespaceRequest,
        DescribeTaskQueueRequest,
        GetWorkflowExecutionHistoryRequest,
        StartWorkflowExecutionRequest,
    )
    from temporalio.envconfig import ClientConfig
    from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
    from temporalio.service import ConnectConfig, RPCError, RPCStatusCode, ServiceClient
except ImportError as error:
    raise Refused(
        "work on several machines needs temporalio, which is not installed", way_out=install_command("temporal")
    ) from error

Answer = TypeVar("Answer")
#: A connection to the scheduler.
Service = ServiceClient
#: How long a call waits for the scheduler.
CALL_S, CONNECT_S = 20.0, 10.0
#: A step of a workflow takes milliseconds. A frozen worker that got one is replaced after this time.
STEP_S = 2.0
#: A call that waits for the end of a workflow.
_LONG_CALL_S = 60.0
_JSON = {"encoding": b"json/plain"}
#: Between two tries to reach a scheduler that has answered before.
_AGAIN_S = 2.0
#: Answers that another try may better.
_PASSING = (
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNKNOWN,
    RPCStatusCode.ABORTED,
)
_KEYS = "set TEMPORAL_API_KEY, TEMPORAL_TLS_… or a profile of Temporal's own configuration"
_WAYS_OUT = {
    RPCStatusCode.UNAVAILABLE: "start it, or correct --on; docs/scale.md",
    RPCStatusCode.UNAUTHENTICATED: _KEYS,
    RPCStatusCode.PERMISSION_DENIED: _KEYS,
}


@cache
def _runtime() -> Runtime:
    """Without the warnings of the library: it repeats each of them while a server is away. Detent says it once.

    Its errors go to standard error by way of Python: by itself it writes them to standard output.
    """
    only_errors = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio"))
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=only_errors, forwarding=forwarding)))


async def connect(address: Address, identity: str = "") -> ServiceClient:
    """A connection. TLS, API keys and profiles are those of Temporal's environment configuration."""
    known: dict[str, Any] = {**ClientConfig.load_client_connect_config()}
    known.pop("namespace", None)
    config = ConnectConfig(
        **{**known, "target_host": address.target, "identity": identity, "runtime": _runtime()},
    )
    try:
        return await asyncio.wait_for(ServiceClient.connect(config), CONNECT_S)
    except (RuntimeError, TimeoutError, OSError) as error:
        raise StoreFailed(
            f"Temporal at {address} cannot be reached: {_reason(error)}",
            way_out=_WAYS_OUT[RPCStatusCode.UNAVAILABLE],
        ) from error


def _reason(error: BaseException) -> str:
    """The innermost message of an error of the library, which shows the structures around it too."""
    text = str(error) or "no answer"
    return next(iter(re.findall(r'(?:message|error): "([^"]+)"', text)[-1:]), text)


def refusal(error: RPCError) -> StoreFailed:
    """A call that the scheduler refused."""
    if error.status is RPCStatusCode.NOT_FOUND and error.message.startswith("Namespace"):
        way_out = "correct --on, or make it: temporal operator namespace create --namespace NAME"
        return StoreFailed(f"Temporal refused a call: {error.message.rstrip('.')}", way_out=way_out)
    return StoreFailed(f"Temporal refused a call: {_reason(error)}", way_out=_WAYS_OUT.get(error.status))


async def check_namespace(service: ServiceClient, namespace: str) -> None:
    """`StoreFailed` if there is no such namespace, or it may not be used."""
    try:
        await service.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=namespace), timeout=timedelta(seconds=CALL_S)
        )
    except RPCError as error:
        raise refusal(error) from error


async def answers(service: ServiceClient) -> bool:
    """Whether the scheduler answers. A connection that it closed is made again first."""
    try:
        await service.check_health(retry=True, timeout=timedelta(seconds=CALL_S))
    except RPCError:
        return False
    return True


class Loop:
    """An event loop on a thread of its own, for callers without one."""

    #: Errors of calls that the scheduler refused.
    failures: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="temporal")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, work: Coroutine[Any, Any, Answer], wait_s: float | None = CALL_S) -> Answer:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(wait_s)
        except TimeoutError as error:
            future.cancel()
            raise StoreFailed("Temporal does not answer") from error
        except RPCError as error:
            raise refusal(error) from error
        except self.failures as error:
            raise StoreFailed(f"Temporal refused a call: {error}") from error

    def begin(self, work: Coroutine[Any, Any, Answer]) -> "Future[Answer]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

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


async def start_flow(service: ServiceClient, namespace: str, name: str, identity: str, given: Any, queue: str) -> str:
    """Start the workflow of a session unless it runs; returns the id of its execution."""
    payload = Payload(metadata=_JSON, data=msgspec.json.encode(given))
    request = StartWorkflowExecutionRequest(
        namespace=namespace,
        workflow_id=identity,
        workflow_type=WorkflowType(name=name),
        task_queue=TaskQueue(name=queue),
        input=Payloads(payloads=[payload]),
        identity=service.config.identity,
        request_id=str(uuid.uuid4()),
        workflow_id_conflict_policy=WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
    )
    request.workflow_task_timeout.FromTimedelta(timedelta(seconds=STEP_S))
    started = await service.workflow_service.start_workflow_execution(
        request, retry=True, timeout=timedelta(seconds=CALL_S)
    )
    return str(started.run_id)


async def flow_result(
    service: ServiceClient, namespace: str, identity: str, run: str, away: Callable[[str], object]
) -> str:
    """Wait for the end of the workflow, and say how the run of the session ended.

    `away` gets the reason of each call that the scheduler did not answer; the call is made again.
    """
    request = GetWorkflowExecutionHistoryRequest(
        namespace=namespace,
        execution=WorkflowExecution(workflow_id=identity, run_id=run),
        wait_new_event=True,
        history_event_filter_type=HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
        skip_archival=True,
    )
    while True:
        try:
            answer = await service.workflow_service.get_workflow_execution_history(
                request, retry=True, timeout=timedelta(seconds=_LONG_CALL_S)
            )
        except RPCError as error:
            if error.status not in _PASSING:
                raise _lost(identity, error) if error.status is RPCStatusCode.NOT_FOUND else refusal(error) from error
            if error.status is not RPCStatusCode.DEADLINE_EXCEEDED:
                away(_reason(error))
                await asyncio.sleep(_AGAIN_S)
            continue
        if answer.history.events:
            event = answer.history.events[0]
            if not event.HasField("workflow_execution_continued_as_new_event_attributes"):
                return _result(event, identity)
            request.execution.run_id = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
            answer.next_page_token = b""
        request.next_page_token = answer.next_page_token


def _lost(identity: str, error: RPCError) -> Conflict:
    return Conflict(
        f"Temporal does not know the workflow {identity} any more: {_reason(error)}",
        way_out="detent run --on starts it again, from the journal",
    )


def _result(event: HistoryEvent, identity: str) -> str:
    """The result in the last event of a workflow; `Conflict` if it ended in another way."""
    if event.HasField("workflow_execution_completed_event_attributes"):
        return msgspec.json.decode(
            event.workflow_execution_completed_event_attributes.result.payloads[0].data, type=str
        )
    reason = "it was ended from outside"
    if event.HasField("workflow_execution_failed_event_attributes"):
        reason = event.workflow_execution_failed_event_attributes.failure.message
    raise Conflict(f"the workflow {identity} ended: {reason}", way_out="detent run --on starts it again")


class Poller(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has asked for work lately."""

    identity: str
    queue: str
    seen: datetime


async def pollers(service: ServiceClient, namespace: str, queues: list[str]) -> list[Poller]:
    workers: list[Poller] = []
    for queue in queues:
        try:
            described = await service.workflow_service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=namespace,
                    task_queue=TaskQueue(name=queue),
                    task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
                ),
                timeout=timedelta(seconds=CALL_S),
            )
        except RPCError as error:
            raise refusal(error) from error
        workers += [
            Poller(identity=poller.identity, queue=queue, seen=poller.last_access_time.ToDatetime(UTC))
            for poller in described.pollers
        ]
    return workers
