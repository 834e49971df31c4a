"""The way of a run loop to the board in its workflow: signals and updates of Temporal."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from detent.worker.board import Assignment, Ended
from detent.worker.temporal import Loop

_RETRY_S = 0.5
_FAILURES = (RPCError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError)


class FlowLink:
    """The way of a run loop to the board in its workflow. See `Link`."""

    def __init__(
        self, loop: Loop, flow: "WorkflowHandle[Any, Any]", run: str, open_jobs: Iterable[Assignment] = ()
    ) -> None:
        self._loop, self._flow, self._run, self._open_jobs = loop, flow, run, list(open_jobs)
        self._deliver: Callable[[Ended], object] = id
        #: Ends the listening for ends of jobs; None before the first job: most sessions need none.
        self._stop: Callable[[], object] | None = None
        self._is_closed = False
        loop.failures = _FAILURES

    def attach(self, deliver: Callable[[Ended], None]) -> list[Assignment]:
        self._deliver = deliver
        if self._open_jobs:
            self._hear()
        return self._open_jobs

    def submit(self, job: Assignment) -> None:
        self._loop.call(self._flow.signal("submit", args=[self._run, msgspec.to_builtins(job)]))
        self._hear()

    def stop(self, job: str, why: str) -> None:
        self._loop.call(self._flow.signal("stop", args=[self._run, job, why]))

    def close(self) -> None:
        self._is_closed = True
        if self._stop is not None:
            self._stop()

    def _hear(self) -> None:
        if self._stop is None:
            self._stop = self._loop.begin(self._listen()).cancel

    async def _listen(self) -> None:
        seen = 0
        while True:
            try:
                ended = msgspec.convert(await self._flow.execute_update("ended", args=[self._run, seen]), list[Ended])
            except _FAILURES:
                if self._is_closed:
                    return
                await asyncio.sleep(_RETRY_S)
                continue
            for job in ended:
                self._deliver(job)
            seen += len(ended)
