"""The messages of the jobs of a run, for its loop."""

import time
from _thread import allocate_lock
from collections import deque
from concurrent.futures import Future
from queue import Empty
from typing import Protocol

from detent.core.run.run_event import RunEvent
from detent.run.job import Job, JobResult

#: An event of a job, the end of one, or None: look at the session again.
Message = RunEvent | tuple[Job, "Future[JobResult]"] | None
#: Events that follow another message faster than this do not wake the loop: it would take turns with the job.
QUIET_S = 0.05


class Inbox(Protocol):
    """The messages of the jobs, in order."""

    def put(self, item: Message, /) -> None: ...

    def get(self, *, timeout: float) -> Message:
        """The next message; `queue.Empty` after the timeout."""
        ...

    def get_nowait(self) -> Message: ...


class LocalInbox:
    """The messages of threads of this process. The loop reads an event of a burst with the message that wakes it."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        #: Held unless a message is to wake the loop.
        self._asleep = allocate_lock()
        self._asleep.acquire()
        self._woken_s = 0.0

    def put(self, item: Message) -> None:
        self._messages.append(item)
        now_s = time.monotonic()
        is_event = item is not None and not isinstance(item, tuple)
        if is_event and now_s - self._woken_s < QUIET_S:
            return
        self._woken_s = now_s
        try:
            self._asleep.release()
        except RuntimeError:
            # Another message has woken the loop already.
            return

    def get(self, *, timeout: float) -> Message:
        until_s = time.monotonic() + timeout
        while not self._messages:
            if not self._asleep.acquire(timeout=max(0.0, until_s - time.monotonic())):
                break
        return self.get_nowait()

    def get_nowait(self) -> Message:
        try:
            return self._messages.popleft()
        except IndexError:
            raise Empty from None
