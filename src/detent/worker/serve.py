"""A worker: takes run loops and jobs from Temporal until it is asked to drain.

Each activity runs on a thread, opens the project for itself, and sends heartbeats from another thread. The same thread
watches whether the attempt was ended elsewhere. A loop that is cancelled leaves its jobs to the next loop.
"""

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from detent.core.actor import Channel, as_runner
from detent.core.run.run_event import End, RunEvent
from detent.engine.agents import environment as variables
from detent.engine.project import Project
from detent.engine.sandbox import sandboxes, why_off
from detent.engine.workspace import Workspace
from detent.errors import Conflict, DetentError, LockTimeout, StoreFailed
from detent.process.marked import end_marked
from detent.run.context import RunContext
from detent.run.feed import Feed, FeedRedaction
from detent.run.scheduler import Hosting, Runner
from detent.run.workspaces import opened_at
from detent.worker.address import Address
from detent.worker.board import job_run, loop_run
from detent.worker.dispatcher import RemoteDispatcher
from detent.worker.flow import JOB, LEFT, LOOP, PASSING, JobTurn, LoopTurn, SessionFlow
from detent.worker.host import Hosted, ended_with
from detent.worker.prepared import prepare, project_key
from detent.worker.queues import job_queue, label_sets, loop_queue, phase_labels
from detent.worker.temporal import FlowLink, Loop, connect
from detent.worker.trees import JobTree, lent_tree

#: Run loops at the same time; a loop mostly waits.
LOOPS = 200
#: A step of a workflow that its last worker does not take is given to another one after this time.
STICKY_S = 1.0
#: Requests for work that wait at the server. Each of them swallows a task if the worker freezes or is cut off.
POLLS = 1
#: Time for jobs to end when the worker is drained.
DRAIN_S = 24 * 3600.0
_WATCH_S = 0.25
#: Errors that another try, perhaps on another machine, can end.
_PASSING = (StoreFailed, LockTimeout, Conflict)


class Offer(NamedTuple):
    """What a worker offers."""

    labels: tuple[str, ...] = ()
    #: Jobs at the same time, for each set of labels.
    slots: int = 4
    #: End when there was nothing to do for this long; None serves until it is drained.
    idle_s: float | None = None


class Serving:
    """The activities of one worker process."""

    def __init__(self, directory: str, package: str | None, client: Client, offer: Offer) -> None:
        self._directory, self._package, self._client, self._offer = directory, package, client, offer
        self._loop, self._feeds = Loop(), _Feeds()
        #: Number of activities, and the time of the last one, for a worker that ends when it is idle.
        self.busy, self.done = 0, 0
        self._stop_jobs = ""
        self._counting = threading.Lock()

    def close(self) -> None:
        self._loop.close()
        self._feeds.close()

    def stop_jobs(self, why: str) -> None:
        """End the jobs, for a person who does not want to wait for them."""
        self._stop_jobs = why

    @activity.defn(name=LOOP, no_thread_cancel_exception=True)
    def run_loop(self, given: dict[str, Any]) -> str:
        """Run the loop of a session until it ends, or another worker takes it over."""
        turn = msgspec.convert(given, LoopTurn)
        session = turn.given.session
        with self._working(), self.project() as project:
            prepared = prepare(project, session, wait=turn.given.wait)
            run = loop_run(turn.flow, turn.term)
            flow = self._client.get_workflow_handle(turn.workflow)
            link = FlowLink(self._loop, flow, session, run, turn.term)
            workflow = project.session(session).state.workflow

            def labels(phase: str) -> tuple[str, ...]:
                return phase_labels(project.settings, phase, workflow.by_key[phase].agent)

            runner = Runner(
                project,
                session,
                prepared.agents,
                options=prepared.options,
                tell=self._feeds.teller(project, session),
                hosting=Hosting(
                    lambda _, context: RemoteDispatcher(context, link, labels),
                    run=run,
                    has_files=False,
                    on=turn.given.on,
                ),
            )

            def watch() -> None:
                if activity.is_cancelled() or activity.is_worker_shutdown():
                    runner.leave("the worker is drained")

            with _beating(watch), _passing():
                end = runner.run()
            if end is End.LOST:
                raise ApplicationError("the loop was left", type=LEFT)
            return str(end)

    @activity.defn(name=JOB, no_thread_cancel_exception=True)
    def do_job(self, given: dict[str, Any]) -> Any:
        """Do a job in a tree of its own."""
        turn = msgspec.convert(given, JobTurn)
        session, run = turn.given.session, job_run(turn.assignment.id, turn.tries)
        try:
            with self._working(), ExitStack() as stack, _passing():
                outer = stack.enter_context(self.project())
                prepared = prepare(outer, session, wait=False)
                place = stack.enter_context(lent_tree(outer.place.root, session, outer.place.project))
                project = stack.enter_context(opened_at(outer, place))
                _use_sandbox(project, stack)
                context = RunContext(
                    project,
                    session,
                    run,
                    agents=prepared.agents,
                    options=prepared.options,
                    tell=self._feeds.teller(outer, session),
                )
                hosted = Hosted(project, context, turn.assignment)
                hosted.job.files = files = JobTree(project, project.session(session))
                # End processes that a gate, a step or an agent has left behind.
                stack.callback(end_marked, f"{variables.RUN}={run}")

                def watch() -> None:
                    if activity.is_cancelled():
                        hosted.job.stop("the run stopped the job, or another worker has it")
                    if self._stop_jobs:
                        hosted.job.stop(self._stop_jobs)
                    hosted.watch()
                    _end_gate(hosted, run)

                with _beating(watch):
                    files.make()
                    ended = hosted.run(is_retry=turn.tries > 1)
        except DetentError as error:
            ended = ended_with(turn.assignment, error)
        return msgspec.to_builtins(ended)

    @contextmanager
    def project(self) -> Iterator[Project]:
        workspace = Workspace(self._directory, project=self._package)
        actor = as_runner(workspace.actor(Channel.LIBRARY, changes=True))
        project = workspace.open(actor)
        try:
            yield project
        finally:
            with suppress(DetentError):
                project.close()

    @contextmanager
    def _working(self) -> Iterator[None]:
        with self._counting:
            self.busy += 1
        try:
            yield
        finally:
            with self._counting:
                self.busy, self.done = self.busy - 1, self.done + 1


@contextmanager
def _passing() -> Iterator[None]:
    """Let Temporal try again what another try can end: a store that cannot be reached, a later loop."""
    try:
        yield
    except _PASSING as error:
        raise ApplicationError(error.message, type=PASSING) from error


@contextmanager
def _beating(watch: Callable[[], None]) -> Iterator[None]:
    """Heartbeats and a look at the job, several times a second, on a thread of its own."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(_WATCH_S):
            activity.heartbeat()
            # A store that cannot be reached now does not end the heartbeats: the job itself meets it.
            with suppress(DetentError):
                watch()

    thread = threading.Thread(target=contextvars.copy_context().run, args=[beat], daemon=True, name="heartbeat")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Feeds:
    """The feeds of the sessions on this machine, each written by one object."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}
        self._lock = threading.Lock()

    def teller(self, project: Project, session: str) -> Callable[[RunEvent], None]:
        redact, store = FeedRedaction(), project.store

        def tell(event: RunEvent) -> None:
            with self._lock:
                if session not in self._feeds:
                    self._feeds[session] = Feed(store.feed_writer(session))
                self._feeds[session].tell(redact(event))

        return tell

    def close(self) -> None:
        with self._lock:
            for feed in self._feeds.values():
                feed.close()
            self._feeds.clear()


def _use_sandbox(project: Project, stack: ExitStack) -> None:
    settings = project.settings.run.sandbox_settings()
    if why_off(settings) is None:
        project.sandbox = stack.enter_context(sandboxes(project, settings))


def _end_gate(hosted: Hosted, run: str) -> None:
    """End the check of a gate whose job is stopping; it does not watch for it itself."""
    job = hosted.job
    if job.is_stopping() and job.is_at_gate and job.claim is not None:
        end_marked(f"{variables.RUN}={run}", f"{variables.GATE}={job.claim.token}")


def identity(labels: tuple[str, ...], slots: int) -> str:
    """The name of a worker in the lists of Temporal."""
    return f"{os.uname().nodename} process {os.getpid()}, {slots} slots" + (f", {'+'.join(labels)}" if labels else "")


async def serve(
    directory: str, package: str | None, address: Address, offer: Offer, *, ready: Callable[[list[str]], object]
) -> int:
    """Serve until the worker is drained; returns the number of activities that it did."""
    client = await connect(address, identity=identity(offer.labels, offer.slots))
    serving = Serving(directory, package, client, offer)
    with serving.project() as project:
        key, sets = project_key(project), label_sets(project.settings, offer.labels)
    drained = asyncio.Event()
    _drain_on_signals(drained, serving)
    with ThreadPoolExecutor(LOOPS) as loops, ThreadPoolExecutor(offer.slots * len(sets)) as jobs:
        beats = timedelta(seconds=_WATCH_S)
        workers = [
            Worker(
                client,
                task_queue=loop_queue(key),
                workflows=[SessionFlow],
                activities=[serving.run_loop],
                activity_executor=loops,
                max_concurrent_activities=LOOPS,
                max_concurrent_activity_task_polls=POLLS,
                max_concurrent_workflow_task_polls=POLLS + 1,
                workflow_runner=UnsandboxedWorkflowRunner(),
                sticky_queue_schedule_to_start_timeout=timedelta(seconds=STICKY_S),
                graceful_shutdown_timeout=timedelta(seconds=DRAIN_S),
                max_heartbeat_throttle_interval=beats,
                default_heartbeat_throttle_interval=beats,
            ),
            *(
                Worker(
                    client,
                    task_queue=job_queue(key, labels),
                    activities=[serving.do_job],
                    activity_executor=jobs,
                    max_concurrent_activities=offer.slots,
                    max_concurrent_activity_task_polls=POLLS,
                    graceful_shutdown_timeout=timedelta(seconds=DRAIN_S),
                    max_heartbeat_throttle_interval=beats,
                    default_heartbeat_throttle_interval=beats,
                )
                for labels in sets
            ),
        ]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        ready([loop_queue(key), *(job_queue(key, labels) for labels in sets)])
        waiting = asyncio.create_task(_drained(drained, serving, offer.idle_s))
        await asyncio.wait([waiting, *running], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.gather(*(worker.shutdown() for worker in workers))
        await asyncio.gather(*running)
    serving.close()
    return serving.done


async def _drained(drained: asyncio.Event, serving: Serving, idle_s: float | None) -> None:
    """Wait for a signal; or until the worker was idle for long, after it has done something."""
    idle = 0.0
    while not drained.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(drained.wait(), _WATCH_S)
        idle = idle + _WATCH_S if serving.busy == 0 else 0.0
        if idle_s is not None and idle >= idle_s:
            return


def _drain_on_signals(drained: asyncio.Event, serving: Serving) -> None:
    """The first signal drains the worker; a second one ends its jobs."""

    def handle(kind: int) -> None:
        if drained.is_set():
            serving.stop_jobs(f"the worker was ended by signal {kind}")
        drained.set()

    loop = asyncio.get_running_loop()
    for kind in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(kind, handle, kind)
