"""A process that starts the workflow of a session and waits for its end, while its parent follows the journal.

It is a process of its own because the client of Temporal takes as long to load as a session takes to start: both are
done at the same time. One line goes to it, the workflow that is wanted. Two lines come back: the id of its execution,
and its result; an error takes the place of either.
"""

import os
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Self

import msgspec

from detent import errors, process
from detent.errors import DetentError, StoreFailed
from detent.worker.address import Address, parse_address


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow to start unless it runs."""

    name: str
    id: str
    queue: str
    #: Its input, as JSON.
    given: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The id of an execution, a result, or an error of this kind."""

    text: str
    error: str = ""
    way_out: str | None = None


_encode = msgspec.json.Encoder().encode


class FlowProcess:
    """The side of the parent. It connects at once, and starts nothing until `start` is called."""

    def __init__(self, address: Address) -> None:
        self.address = address
        given, self._input = os.pipe()
        self._output, answers = os.pipe()
        try:
            command = [sys.executable, "-P", "-m", __name__, str(address)]
            self._child = process.start(command, cwd=os.getcwd(), env=os.environ, streams=(given, answers, 2))
        finally:
            os.close(given)
            os.close(answers)
        self._started: Future[str] = Future()
        #: How the run of the session ended, as the workflow says.
        self.result: Future[str] = Future()
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
            for future in (self._started, self.result):
                line = lines.readline()
                answer = msgspec.json.decode(line, type=_Answer) if line else _SILENT
                if answer.error:
                    future.set_exception(getattr(errors, answer.error)(answer.text, way_out=answer.way_out))
                else:
                    future.set_result(answer.text)


_SILENT = _Answer(
    text="the process that talks to Temporal ended without an answer",
    error=StoreFailed.__name__,
    way_out="detent run --on continues the session",
)


def main() -> None:
    """The side of the child."""
    try:
        _serve(parse_address(sys.argv[1]))
    except DetentError as error:
        _say(_Answer(text=error.message, error=type(error).__name__, way_out=error.way_out))


def _serve(address: Address) -> None:
    from detent.worker.temporal import Loop, connect, flow_result, start_flow  # noqa: PLC0415 - only the child loads it

    with Loop() as loop:
        service = loop.call(connect(address))
        line = sys.stdin.buffer.readline()
        if not line:
            return
        threading.Thread(target=_end_with_parent, daemon=True).start()
        wanted = msgspec.json.decode(line, type=Wanted)
        start = start_flow(service, address.namespace, wanted.name, wanted.id, wanted.given, wanted.queue)
        run = loop.call(start)
        _say(_Answer(text=run))
        _say(_Answer(text=loop.call(flow_result(service, address.namespace, wanted.id, run), wait_s=None)))


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(0)


def _say(answer: _Answer) -> None:
    # The parent may be gone.
    with suppress(BrokenPipeError):
        os.write(1, _encode(answer) + b"\n")


if __name__ == "__main__":
    main()
