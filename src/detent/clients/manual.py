"""Work that a person does by hand: it is said what to do, and then waited for."""

import time
from collections.abc import Callable, Iterator

from detent.clients.adapter.agent import Turn
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Said

_TICK_S = 0.1


class Manual:
    """Never finishes by itself: whoever did the work ends the attempt, and then the runner stops the turn."""

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        yield Said(text=turn.prompt)
        until = time.monotonic() + turn.timeout_s
        while not stopping():
            left_s = until - time.monotonic()
            if left_s <= 0:
                reason = f"nobody ended it within {turn.timeout_s:g} s"
                yield Failed(failure=Failure.TIMEOUT, reason=reason)
                return
            time.sleep(min(_TICK_S, left_s))
        yield Failed(failure=Failure.STOPPED, reason="stopped")


def adapter(_: AgentSettings) -> Manual:
    return Manual()
