"""Starts the run of a session on a scheduler of machines, and follows it in the journal."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from detent.core.run.run_event import End
from detent.core.session.events import Commit
from detent.core.session.session import SessionStatus
from detent.engine.checkpoints.travel import differing, travel_of
from detent.errors import Refused
from detent.store.port import Cursor
from detent.worker.flow_process import FlowProcess, Wanted
from detent.worker.given import NAME, Given
from detent.worker.prepared import project_key
from detent.worker.queues import loop_queue

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: How often the journal is looked at if no message of the store comes before.
_TICK_S = 0.2
_ENDS = {SessionStatus.COMPLETED: End.COMPLETED, SessionStatus.CANCELLED: End.CANCELLED}


def flow_id(project: "Project", session: str) -> str:
    return f"detent/{project_key(project)}/{session}"


def check_files(project: "Project", handle: "SessionHandle") -> list[str]:
    """Notices about the files that workers will use. `Refused` if no other machine could get them."""
    travel_of(project)
    if not project.takes_checkpoints:
        raise Refused(
            "checkpoints are off, so no other machine could get the files",
            way_out='set capture = "tree" below [checkpoint] in detent.toml',
        )
    count = sum(map(len, differing(project, handle.id)))
    if not count:
        return []
    which = f"workers use the files of the newest checkpoint; {count} files here differ from it"
    return [f"{which}. detent files bring gets those of the checkpoint, detent checkpoint create sends these"]


def run_on(
    project: "Project",
    handle: "SessionHandle",
    flow: FlowProcess,
    *,
    wait: bool,
    tell: Callable[[Commit], object] = id,
    started: Callable[[], object] = lambda: None,
) -> End:
    """Run the session on workers, and tell each commit. An interrupt leaves the run to the workers."""
    key = project_key(project)
    given = Given(
        project=key, session=handle.id, on=str(flow.address), heartbeat_s=project.settings.run.heartbeat_s, wait=wait
    )
    identity, data = flow_id(project, handle.id), msgspec.Raw(msgspec.json.encode(given))
    flow.start(Wanted(name=NAME, id=identity, queue=loop_queue(key), given=data))
    started()
    cursor, woken = end_of(project, handle), threading.Event()
    flow.result.add_done_callback(lambda _: woken.set())
    with project.store.waking(handle.id, woken.set):
        while not flow.result.done():
            woken.clear()
            cursor = _tell_new(project, handle, cursor, tell)
            # The journal says that the session ended before the scheduler does.
            if (end := _ENDS.get(handle.state.status)) is not None:
                return end
            woken.wait(_TICK_S)
    _tell_new(project, handle, cursor, tell)
    return End(flow.result.result())


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
