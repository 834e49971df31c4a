"""A process that starts the workflow of a session and waits for its end, while its parent follows the journal.

It is a process of its own because the client of Temporal takes as long to load as a session takes to start: both are
done at the same time. One line goes to it, the workflow that is wanted. Each line that comes back is a message.
`flow_child.py` is its program.
"""

import os
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Self

import msgspec

from detent import errors, process
from detent.errors import StoreFailed
from detent.worker.address import Address

CHILD = "detent.worker.flow_child"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow to start unless it runs."""

    name: str
    id: str
    queue: str
    #: Its input, as JSON.
    given: msgspec.Raw
    #: The queues whose workers the run may need.
    queues: tuple[str, ...]


class Started(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    run: str


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    result: str


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An error of this kind."""

    error: str
    message: str
    way_out: str | None = None


class Served(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The queues from which workers ask for work."""

    queues: tuple[str, ...]


class Away(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Temporal does not answer."""


Message = Started | Ended | Failed | Served | Away

_encode = msgspec.json.Encoder().encode


class FlowProcess:
    """The side of the parent. It connects at once, and starts nothing until `start` is called."""

    def __init__(self, address: Address) -> None:
        self.address = address
        given, self._input = os.pipe()
        self._output, messages = os.pipe()
        try:
            command = [sys.executable, "-P", "-m", CHILD, str(address)]
            self._child = process.start(command, cwd=os.getcwd(), env=os.environ, streams=(given, messages, 2))
        finally:
            os.close(given)
            os.close(messages)
        self._started: Future[str] = Future()
        #: How the run of the session ended, as the workflow says.
        self.result: Future[str] = Future()
        self.news: SimpleQueue[Served | Away] = SimpleQueue()
        threading.Thread(target=self._hear, daemon=True, name="flow").start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._input)
        self._child.kill()
        self._child.wait()

    def start(self, wanted: Wanted) -> str:
        """Start the workflow; returns the id of its execution."""
        # A process that ended has said why.
        with suppress(BrokenPipeError):
            os.write(self._input, _encode(wanted) + b"\n")
        return self._started.result()

    def _hear(self) -> None:
        with open(self._output, "rb") as lines:
            for line in lines:
                message: Message = msgspec.json.decode(line, type=Message)
                match message:
                    case Started(run=run):
                        self._started.set_result(run)
                    case Ended(result=result):
                        self.result.set_result(result)
                    case Failed() as failed:
                        self._fail(failed)
                    case Served() | Away() as news:
                        self.news.put(news)
        self._fail(_SILENT)

    def _fail(self, failed: Failed) -> None:
        for future in (self._started, self.result):
            if not future.done():
                future.set_exception(getattr(errors, failed.error)(failed.message, way_out=failed.way_out))


_SILENT = Failed(
    error=StoreFailed.__name__,
    message="the process that talks to Temporal ended without an answer",
    way_out="detent run --on continues the session",
)
