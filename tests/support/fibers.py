"""Virtual time for a simulation: fibers that run one at a time, in an order that a seed decides.

A fiber is a greenlet, so the code in it is the product's own and needs no `async`. It gives way only in `sleep` and
`park`. There is no thread and no clock: time passes when every fiber waits.
"""

import heapq
import random
from collections.abc import Callable
from typing import Any

import greenlet


class Fiber:
    def __init__(self, loop: "FiberLoop", work: Callable[[], object], owner: Any) -> None:
        #: The machine that the fiber runs on, and the activity that it does.
        self.owner = owner
        self.activity: tuple[str, int] | None = None
        self.is_over = False
        self._loop, self._work = loop, work
        self.greenlet = greenlet.greenlet(self._run, loop.hub)
        #: Counts the waits, so that a wake-up that comes late is known to be old.
        self.wait = 0

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self.is_over = True


class FiberLoop:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.hub = greenlet.getcurrent()
        self.current: Fiber | None = None
        self._due: list[tuple[float, int, Fiber, int]] = []
        self._count = 0
        self._held: dict[Any, list[Fiber]] = {}
        #: Kept: a greenlet that is collected would run its `finally` clauses.
        self._fibers: list[Fiber] = []
        self._is_over = False

    def spawn(self, work: Callable[[], object], owner: Any = None, after: float = 0.0) -> Fiber:
        fiber = Fiber(self, work, owner)
        self._fibers.append(fiber)
        self._wake(fiber, after)
        return fiber

    def sleep(self, seconds: float) -> None:
        fiber = self.current
        if self._is_over or fiber is None:
            raise greenlet.GreenletExit
        self._wake(fiber, seconds)
        self.hub.switch()

    def park(self, seconds: float) -> None:
        """Wait until another fiber calls `unpark`, or for so long."""
        self.sleep(seconds)

    def unpark(self, fiber: Fiber) -> None:
        if not fiber.is_over:
            fiber.wait += 1
            self._push(fiber, 0.0)

    def hold(self, owner: Any) -> None:
        """The fibers of the owner no longer run."""
        self._held.setdefault(owner, [])

    def release(self, owner: Any) -> None:
        """They run again."""
        for fiber in self._held.pop(owner, ()):
            self.unpark(fiber)

    def drop(self, owner: Any) -> None:
        """The fibers of the owner never run again, and clean nothing up."""
        self._held.pop(owner, None)

    def run(self, until: Callable[[], bool], limit: float) -> bool:
        """Run fibers until the condition holds; False if time is over before, or nothing is left to run."""
        while not until():
            if not self._due or self.now > limit:
                return False
            at, _, fiber, wait = heapq.heappop(self._due)
            self.now = max(self.now, at)
            if fiber.is_over or wait != fiber.wait or getattr(fiber.owner, "is_gone", False):
                continue
            if fiber.owner in self._held:
                self._held[fiber.owner].append(fiber)
                continue
            self.current = fiber
            fiber.greenlet.switch()
            self.current = None
        return True

    def close(self) -> None:
        """No fiber runs again, whatever it has not cleaned up."""
        self._is_over, self.current = True, None
        self._fibers.clear()
        self._due.clear()

    def _wake(self, fiber: Fiber, after: float) -> None:
        fiber.wait += 1
        self._push(fiber, after)

    def _push(self, fiber: Fiber, after: float) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now + after, self._count, fiber, fiber.wait))


class FiberLock:
    """Reentrant for one fiber; others wait for it."""

    def __init__(self, loop: FiberLoop) -> None:
        self._loop, self._depth = loop, 0
        self._holder: Fiber | None = None

    def __enter__(self) -> "FiberLock":
        while self._holder is not None and self._holder is not self._loop.current and not self._holder.is_over:
            self._loop.sleep(0.01)
        self._holder, self._depth = self._loop.current, self._depth + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None
