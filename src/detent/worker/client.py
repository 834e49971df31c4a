"""Starts the run of a session on a scheduler of machines, and follows it in the journal."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from detent.core.counted import counted
from detent.core.run.run_event import End
from detent.core.session.events import Commit
from detent.core.session.session import Session, SessionStatus
from detent.engine.checkpoints.travel import differing
from detent.store.port import Cursor
from detent.worker.address import Address
from detent.worker.flow_process import Away, FlowProcess, Served, Wanted
from detent.worker.given import NAME, Given
from detent.worker.prepared import project_key
from detent.worker.queues import job_queue, label_sets, loop_queue, needed_labels

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: How often the journal is looked at if no message of the store comes before.
_TICK_S = 0.2
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


def run_on(
    project: "Project",
    handle: "SessionHandle",
    flow: FlowProcess,
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
        project=key, session=handle.id, on=str(flow.address), heartbeat_s=project.settings.run.heartbeat_s, wait=wait
    )
    flow.start(
        Wanted(
            name=NAME,
            id=flow_id(project, handle.id),
            queue=loop_queue(key),
            given=msgspec.Raw(msgspec.json.encode(given)),
            queues=(loop_queue(key), *(job_queue(key, labels) for labels in label_sets(project.settings))),
        )
    )
    started()
    cursor, woken, noted = end_of(project, handle), threading.Event(), ""
    flow.result.add_done_callback(lambda _: woken.set())
    with project.store.waking(handle.id, woken.set):
        while True:
            woken.clear()
            is_over = flow.result.done()
            cursor = _tell_new(project, handle, cursor, tell)
            # The journal says that the session ended before the scheduler does.
            if (end := _ENDS.get(handle.state.status)) is not None:
                return end
            if is_over:
                return End(flow.result.result())
            while not flow.news.empty():
                text = _news_text(project, handle.state, flow.address, flow.news.get())
                if text and text != noted:
                    note(text)
                noted = text
            woken.wait(_TICK_S)


def _news_text(project: "Project", state: Session, address: Address, news: Served | Away) -> str:
    """Why the run waits: for the scheduler, for any worker, or for one with the labels of the next phases."""
    if isinstance(news, Away):
        return f"{address} does not answer; the worker of the run goes on alone, and other work waits for it"
    key = project_key(project)
    if loop_queue(key) not in news.queues:
        return f"no worker takes work from {address}; the run waits for one: detent worker --on {address}"
    return "; ".join(
        f"{phase} waits for a worker with --labels {','.join(labels)}; none asks for work"
        for phase, labels in needed_labels(project.settings, state).items()
        if job_queue(key, labels) not in news.queues
    )


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
