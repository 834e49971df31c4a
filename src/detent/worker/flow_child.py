"""The program of the process that starts a workflow; `flow_process.py` says why it is one.

It ends with its parent, and leaves the workflow running.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from detent.errors import DetentError, StoreFailed
from detent.worker.address import Address, parse_address
from detent.worker.flow_process import Away, Ended, Failed, Message, Served, Started, Wanted

if TYPE_CHECKING:
    from detent.worker.temporal import Poller

#: When a run is first looked at for workers that are not there, and how often from then on.
_LOOK_AFTER_S, _LOOK_S = 2.0, 10.0
#: A worker that waits for work asks for it once a minute.
_ASKS = timedelta(seconds=75)


def main() -> None:
    say = _messages()
    try:
        _serve(parse_address(sys.argv[1]), say)
    except DetentError as error:
        say(Failed(error=type(error).__name__, message=error.message, way_out=error.way_out))


def _messages() -> Callable[[Message], None]:
    """The way to the parent. From here on standard output is standard error: the library writes its log there."""
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return partial(_say, descriptor)


def _serve(address: Address, say: Callable[[Message], None]) -> None:
    # Not at the top: without its extra that is refused, which the parent is told.
    from detent.worker.temporal import Loop, connect, flow_result, pollers, start_flow  # noqa: PLC0415

    with Loop() as loop:
        service = loop.call(connect(address))
        line = sys.stdin.buffer.readline()
        if not line:
            return
        threading.Thread(target=_end_with_parent, daemon=True).start()
        wanted = msgspec.json.decode(line, type=Wanted)
        start = start_flow(service, address.namespace, wanted.name, wanted.id, wanted.given, wanted.queue)
        run = loop.call(start)
        say(Started(run=run))
        loop.begin(_look(partial(pollers, service, address.namespace), wanted.queues, say))
        ended = flow_result(service, address.namespace, wanted.id, run, lambda _: say(Away()))
        say(Ended(result=loop.call(ended, wait_s=None)))


async def _look(
    pollers: Callable[[list[str]], Awaitable[list["Poller"]]],
    queues: tuple[str, ...],
    say: Callable[[Message], None],
) -> None:
    """Say from time to time which queues are served."""
    await asyncio.sleep(_LOOK_AFTER_S)
    while True:
        with suppress(StoreFailed):
            asking = await pollers(list(queues))
            since = datetime.now(UTC) - _ASKS
            say(Served(queues=tuple(sorted({each.queue for each in asking if each.seen > since}))))
        await asyncio.sleep(_LOOK_S)


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(0)


def _say(descriptor: int, message: Message) -> None:
    # The parent may be gone.
    with suppress(BrokenPipeError):
        os.write(descriptor, msgspec.json.encode(message) + b"\n")


if __name__ == "__main__":
    main()
