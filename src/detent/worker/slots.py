"""The slots of a worker for one kind of work. None is given while the worker cannot do the work."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

#: How often a worker that cannot work looks again.
_LOOK_S = 0.1
#: Steps of workflows at the same time.
_STEPS = 100


class _Slots(CustomSlotSupplier):
    def __init__(self, count: int, may_work: Callable[[], bool]) -> None:
        self._free, self._may_work, self._counting = count, may_work, threading.Lock()
        self._loop, self._released = asyncio.get_running_loop(), asyncio.Event()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        while True:
            self._released.clear()
            if (permit := self.try_reserve_slot(ctx)) is not None:
                return permit
            with suppress(TimeoutError):
                await asyncio.wait_for(self._released.wait(), _LOOK_S)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002
        """Also called for an activity that comes with the answer to a step of its workflow: nothing asked for it."""
        with self._counting:
            if self._free == 0 or not self._may_work():
                return None
            self._free -= 1
        return SlotPermit()

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """A slot counts from the request for work on."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:  # noqa: ARG002
        with self._counting:
            self._free += 1
        self._loop.call_soon_threadsafe(self._released.set)


def tuner(count: int, may_work: Callable[[], bool]) -> WorkerTuner:
    """`count` activities at the same time, and no request for one while the worker may not work."""
    steps = FixedSizeSlotSupplier(_STEPS)
    return WorkerTuner.create_composite(
        workflow_supplier=steps,
        activity_supplier=_Slots(count, may_work),
        local_activity_supplier=steps,
        nexus_supplier=steps,
    )
