"""The adapter for work by hand: shows the prompt and waits for a person to end the attempt."""

import time
from collections.abc import Callable, Iterator

from detent.clients.adapter.agent import Turn
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Said

_TICK_S = 0.1


class Manual:
    """Never finishes by itself: a person ends the attempt, and the runner then stops the turn."""

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        yield Said(text=turn.prompt)
        until = time.monotonic() + turn.timeout_s
        while not stopping():
            left_s = until - time.monotonic()
            if left_s <= 0:
                yield Failed(failure=Failure.TIMEOUT, reason=f"no person ended it within {turn.timeout_s:g} s")
                return
            time.sleep(min(_TICK_S, left_s))
        yield Failed(failure=Failure.STOPPED, reason="stopped")


def adapter(_: AgentSettings) -> Manual:
    return Manual()
