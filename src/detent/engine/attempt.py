"""An attempt as a `with` block."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from detent.core.session.phase_state import Tokens, ToolUse
from detent.core.session.status import Status
from detent.engine.results import Begun, Outcome
from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.engine.session import SessionHandle


class Attempt:
    """The attempt that `SessionHandle.attempt` yields."""

    def __init__(self, handle: "SessionHandle", begun: Begun) -> None:
        self._handle = handle
        self.begun = begun
        self.token = begun.token
        self.phase = begun.phase
        self.handover = begun.handover

    def finish(
        self,
        summary: str,
        *,
        artifacts: Iterable[str] = (),
        deliverables: Iterable[str] = (),
        context: str = "",
        tokens: Tokens = Tokens(),
        tools: Iterable[ToolUse] = (),
    ) -> Outcome:
        return self._handle.finish(
            summary,
            token=self.token,
            artifacts=artifacts,
            deliverables=deliverables,
            context=context,
            tokens=tokens,
            tools=tools,
        )

    def fail_if_live(self, error: str) -> None:
        """Fail the attempt unless it has ended."""
        state = self._handle.state
        live = not state.has_ended and state.phases[self.phase].status is Status.IN_PROGRESS
        if live and state.token(self.phase) == self.token:
            self._handle.fail(error, token=self.token)


@contextmanager
def attempting(handle: "SessionHandle", begin: Callable[[], Begun]) -> Iterator[Attempt]:
    """Begin an attempt; fail it if the block raises or ends without `finish`."""
    attempt = Attempt(handle, begin())
    try:
        yield attempt
    except BaseException as error:
        try:
            attempt.fail_if_live(_printable(f"{type(error).__name__}: {error}".strip(": ")))
        except DetentError as problem:
            error.add_note(f"phase {attempt.phase} is still in progress: {problem.message}")
        raise
    attempt.fail_if_live("the block ended without finishing the phase")


def _printable(text: str) -> str:
    """Replace what UTF-8 cannot hold: errors may quote file names of any bytes."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")
