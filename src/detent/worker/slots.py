"""The slots of a worker for one kind of work. None is given while the worker cannot do the work."""

import asyncio
from collections.abc import Callable

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
        self._free, self._may_work = asyncio.Semaphore(count), may_work
        self._loop = asyncio.get_running_loop()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002
        await self._free.acquire()
        try:
            while not self._may_work():
                await asyncio.sleep(_LOOK_S)
        except asyncio.CancelledError:
            self._free.release()
            raise
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """A slot counts from the request for work on."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:  # noqa: ARG002
        self._loop.call_soon_threadsafe(self._free.release)


def tuner(count: int, may_work: Callable[[], bool]) -> WorkerTuner:
    """`count` activities at the same time, and no request for one while the worker may not work."""
    steps = FixedSizeSlotSupplier(_STEPS)
    return WorkerTuner.create_composite(
        workflow_supplier=steps,
        activity_supplier=_Slots(count, may_work),
        local_activity_supplier=steps,
        nexus_supplier=steps,
    )
