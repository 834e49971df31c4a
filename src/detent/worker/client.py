"""Starts the run of a session on a scheduler of machines, and follows it in the journal."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from detent.core.counted import counted
from detent.core.run.run_event import End
from detent.core.session.events import Commit
from detent.core.session.session import SessionStatus
from detent.engine.checkpoints.travel import differing
from detent.errors import StoreFailed
from detent.store.port import Cursor
from detent.worker.address import Address
from detent.worker.given import NAME, Given
from detent.worker.prepared import project_key
from detent.worker.queues import job_queue, label_sets, loop_queue, needed_labels, needing
from detent.worker.temporal import Loop, Service, connect, flow_result, pollers, start_flow

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: How often the journal is looked at if no message of the store comes before.
_TICK_S = 0.2
#: When a run that waits is first looked at for workers that are not there, and how often from then on.
_LOOK_AFTER_S, _LOOK_S = 2.0, 10.0
#: A worker that waits for work asks for it once a minute.
_ASKS = timedelta(seconds=75)
_ENDS = {SessionStatus.COMPLETED: End.COMPLETED, SessionStatus.CANCELLED: End.CANCELLED}


def flow_id(project: "Project", session: str) -> str:
    return f"detent/{project_key(project)}/{session}"


def check_files(project: "Project", handle: "SessionHandle") -> list[str]:
    """Notices about the files that workers will use."""
    count = sum(map(len, differing(project, handle.id)))
    if not count:
        return []
    differ = f"{counted(count, 'file')} here {'differs' if count == 1 else 'differ'} from it"
    which = f"workers use the files of the newest checkpoint; {differ}"
    return [f"{which}. detent files bring gets those of the checkpoint, detent checkpoint create sends these"]


@contextmanager
def loop_of_calls() -> Iterator[Loop]:
    loop = Loop()
    try:
        yield loop
    finally:
        loop.close()


def run_on(
    project: "Project",
    handle: "SessionHandle",
    address: Address,
    *,
    wait: bool,
    tell: Callable[[Commit], object] = id,
    started: Callable[[], object] = lambda: None,
    note: Callable[[str], object] = id,
) -> End:
    """Run the session on workers, and tell each commit. An interrupt leaves the run to the workers.

    `note` gets a line for a person if the run waits for a worker, or the scheduler does not answer.
    """
    key = project_key(project)
    given = Given(
        project=key, session=handle.id, on=str(address), heartbeat_s=project.settings.run.heartbeat_s, wait=wait
    )
    with loop_of_calls() as loop:
        service, identity = loop.call(connect(address)), flow_id(project, handle.id)
        flow = loop.call(start_flow(service, address.namespace, NAME, identity, given, loop_queue(key)))
        started()
        result: list[str] = []

        notes: list[str] = [""]

        def note_once(text: str) -> None:
            if text and text != notes[-1]:
                note(text)
            notes.append(text)

        def away(_: str) -> None:
            note_once(f"{address} does not answer; workers finish the jobs that they have, and the run waits for it")

        async def follow() -> None:
            result.append(await flow_result(service, address.namespace, identity, flow, away))

        async def look() -> None:
            """Say if the run waits for workers that are not there."""
            await asyncio.sleep(_LOOK_AFTER_S)
            while True:
                with suppress(StoreFailed):
                    note_once("; ".join(await _lacking(project, handle, service, address)))
                await asyncio.sleep(_LOOK_S)

        looking = loop.spawn(look())
        cursor = end_of(project, handle)
        waiting, woken = loop.begin(follow()), threading.Event()
        waiting.add_done_callback(lambda _: woken.set())
        with project.store.waking(handle.id, woken.set):
            while not waiting.done():
                woken.clear()
                cursor = _tell_new(project, handle, cursor, tell)
                # The journal says that the session ended before the scheduler does.
                if (end := _ENDS.get(handle.state.status)) is not None:
                    return end
                woken.wait(_TICK_S)
        looking()
        waiting.result()
        _tell_new(project, handle, cursor, tell)
        return End(result[0])


def end_of(project: "Project", handle: "SessionHandle") -> Cursor:
    """The end of the journal as this process has read it."""
    handle.state  # noqa: B018 - reads the journal to its end
    return project.journal(handle.id).end


def _tell_new(project: "Project", handle: "SessionHandle", cursor: Cursor, tell: Callable[[Commit], object]) -> Cursor:
    more = True
    while more:
        commits, cursor, _, more = project.store.read(handle.id, cursor)
        for commit in commits:
            tell(commit)
    return cursor


class WorkerSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that has asked for jobs in the last minutes."""

    identity: str
    queues: list[str]
    seen: datetime


class Lacking(msgspec.Struct, frozen=True, kw_only=True):
    """Labels that no worker has, and the phases or roles that need them."""

    labels: tuple[str, ...]
    needed_by: list[str]


def list_workers(project: "Project", address: Address) -> tuple[list[WorkerSeen], list[Lacking]]:
    """The workers of the project, and the sets of labels that none of them has."""
    key = project_key(project)
    sets = {job_queue(key, labels): labels for labels in label_sets(project.settings)}
    with loop_of_calls() as loop:
        service = loop.call(connect(address))
        asking = loop.call(pollers(service, address.namespace, list(sets)))
    workers = {
        identity: WorkerSeen(
            identity=identity,
            queues=[each.queue for each in asking if each.identity == identity],
            seen=max(each.seen for each in asking if each.identity == identity),
        )
        for identity in sorted({each.identity for each in asking})
    }
    asked = {each.queue for each in asking}
    lacking = [
        Lacking(labels=labels, needed_by=needing(project.settings, labels))
        for queue, labels in sets.items()
        if labels and queue not in asked
    ]
    return list(workers.values()), lacking


def lacking_text(lacking: Lacking) -> str:
    labels = f"label{'s' if len(lacking.labels) > 1 else ''} {', '.join(lacking.labels)}"
    return f"no worker has the {labels}; needed by {', '.join(lacking.needed_by)}"


async def _lacking(project: "Project", handle: "SessionHandle", service: Service, address: Address) -> list[str]:
    """A line for each kind of worker that the run waits for: any one, or one with the labels of the next phases."""
    key, state = project_key(project), handle.state

    async def asks(queue: str) -> bool:
        now = datetime.now(UTC)
        return any(now - each.seen < _ASKS for each in await pollers(service, address.namespace, [queue]))

    if not await asks(loop_queue(key)):
        return [f"no worker takes work from {address}; the run waits for one: detent worker --on {address}"]
    lines = []
    for phase, labels in needed_labels(project.settings, state).items():
        if not await asks(job_queue(key, labels)):
            lines.append(f"{phase} waits for a worker with --labels {','.join(labels)}; none asks for work")
    return lines
