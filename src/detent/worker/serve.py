"""A worker: takes run loops and jobs from Temporal until it is asked to drain.

Each activity runs on a thread, opens the project for itself, and sends heartbeats from another thread. The same thread
watches whether the attempt was ended elsewhere. A loop does one job at a time on its own machine. A worker that is
drained finishes those, and leaves the rest of its loops to other workers.
"""

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import timedelta
from math import inf
from typing import Any, NamedTuple

import msgspec
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import ServiceClient
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from detent.core.actor import Channel, as_runner
from detent.core.counted import counted
from detent.core.run.run_event import End, RunEvent
from detent.engine.project import Project
from detent.engine.workspace import Workspace
from detent.errors import DetentError
from detent.run.feed import Feed, FeedRedaction
from detent.run.scheduler import Hosting, Runner
from detent.worker.address import Address
from detent.worker.board import Assignment, is_later_loop, job_run, loop_run
from detent.worker.dispatcher import RemoteDispatcher
from detent.worker.ended_trees import remove_ended
from detent.worker.flow import LEFT, PASSING, SessionFlow
from detent.worker.flow_link import FlowLink
from detent.worker.given import JOB, LOOP, Given, JobTurn, LoopTurn
from detent.worker.host import PASSING as PASSING_ERRORS
from detent.worker.host import ended_with
from detent.worker.own_jobs import OwnJobs
from detent.worker.prepared import prepare, project_key
from detent.worker.queues import job_queue, label_sets, loop_queue, phase_labels
from detent.worker.reach import Reach
from detent.worker.slots import tuner
from detent.worker.temporal import Loop, answers, check_namespace, connect
from detent.worker.workplace import Workplace
from detent.worker.workplace import watch as watch_job

#: Run loops at the same time; a loop mostly waits.
LOOPS = 200
#: A step of a workflow that its last worker does not take is given to another one after this time.
STICKY_S = 1.0
#: Requests for work that wait at the server. Each of them swallows a task if the worker freezes or is cut off.
POLLS = 1
#: Time for jobs to end when the worker is drained.
DRAIN_S = 24 * 3600.0
_WATCH_S = 0.25
#: Heartbeats in the time after which a worker is taken for dead, and the longest pause between two.
BEATS, LONGEST_BEAT_S = 8, 1.0
#: How often a loop looks at its session if no message of the store wakes it.
LOOP_TICK_S = 1.0
#: How often a worker looks for trees of sessions that have ended; it does so when it starts, too.
TREES_S = 60.0
#: How often a worker looks whether the scheduler answers.
_LOOK_S = 5.0
#: Ends that are no failure of the worker: Temporal then writes no trace into its log.
_EXPECTED = ApplicationErrorCategory.BENIGN


class Offer(NamedTuple):
    """The slots and labels that a worker offers."""

    labels: tuple[str, ...] = ()
    #: Jobs at the same time, for each set of labels.
    slots: int = 4
    #: End when there was nothing to do for this long; None serves until it is drained.
    idle_s: float | None = None


class Serving:
    """The activities of one worker process."""

    def __init__(
        self, directory: str, package: str | None, client: Client, offer: Offer, note: Callable[[str], object] = id
    ) -> None:
        self._directory, self._package, self._client, self._offer = directory, package, client, offer
        self._note = note
        self._loop, self._feeds = Loop(), _Feeds()
        #: Number of activities that run, of those that ended, and of jobs that run.
        self.busy, self.done, self.jobs = 0, 0, 0
        self._stop_jobs = ""
        self._counting = threading.Lock()
        with self.project() as project:
            #: The name of the project, and the sets of labels that this worker has.
            self.key, self.sets = project_key(project), label_sets(project.settings, offer.labels)
            self._reach = Reach(self.project, project.settings.run.heartbeat_s)
        self._over = threading.Event()
        threading.Thread(target=self._remove_trees, name="trees", daemon=True).start()

    def may_take_loops(self) -> bool:
        return self._reach.is_there()

    def may_take_jobs(self) -> bool:
        return self._reach.is_there() and self.jobs < self._offer.slots

    def close(self) -> None:
        self._over.set()
        self._reach.close()
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
        with self._working(), self._passing(), self.project() as project:
            prepared = prepare(project, session, wait=turn.given.wait)
            run = loop_run(turn.flow, turn.term)
            flow = self._client.get_workflow_handle(turn.workflow)
            link = FlowLink(self._loop, flow, run, turn.open)
            handle = project.session(session)
            workflow = handle.state.workflow
            own = OwnJobs(handle, self.project, self._feeds.teller, self._own_slot)

            def labels(phase: str) -> tuple[str, ...]:
                return phase_labels(project.settings, phase, workflow.by_key[phase].agent)

            runner = Runner(
                project,
                session,
                prepared.agents,
                options=prepared.options,
                tell=self._feeds.teller(project, session),
                hosting=Hosting(
                    lambda _, context: RemoteDispatcher(context, link, labels, own, term=turn.term),
                    run=run,
                    has_files=False,
                    on=turn.given.on,
                    yields_to=lambda other: is_later_loop(other, run),
                    tick_s=LOOP_TICK_S,
                ),
            )

            def watch() -> None:
                details = activity.cancellation_details()
                if details is not None and not details.cancel_requested and not details.worker_shutdown:
                    own.stop_all("another worker has the loop")
                    runner.leave("another worker has the loop")
                elif details is not None or activity.is_worker_shutdown():
                    # The job of this machine is finished first; what is runnable meanwhile goes to other workers.
                    own.is_leaving = True
                    if not own.is_busy:
                        runner.leave("the worker is drained")
                if self._stop_jobs:
                    own.stop_all(self._stop_jobs)
                own.watch()

            with self._beating(turn.given, watch):
                end = runner.run()
            if end is End.LOST:
                raise ApplicationError("the loop was left", type=LEFT, category=_EXPECTED)
            return str(end)

    @activity.defn(name=JOB, no_thread_cancel_exception=True)
    def do_job(self, given: dict[str, Any]) -> Any:
        """Do a job in a tree of its own."""
        turn = msgspec.convert(given, JobTurn)
        session, run = turn.given.session, job_run(turn.assignment.id, turn.tries)
        try:
            with (
                self._working(),
                self._slot() or nullcontext(),
                self._passing(),
                self.project() as outer,
                Workplace(outer, session, self._feeds.teller) as workplace,
            ):
                hosted = workplace.host(turn.assignment, run)

                def watch() -> None:
                    if activity.is_cancelled():
                        hosted.job.stop("the run stopped the job, or another worker has it")
                    if self._stop_jobs:
                        hosted.job.stop(self._stop_jobs)
                    watch_job(hosted)

                with self._beating(turn.given, watch):
                    ended = workplace.do(hosted, is_retry=turn.tries > 1)
        except DetentError as error:
            ended = ended_with(turn.assignment, error)
        return msgspec.to_builtins(ended)

    def _remove_trees(self) -> None:
        kept: set[str] = set()
        while True:
            if self._reach.is_there():
                with suppress(DetentError), self.project() as project:
                    remove_ended(project, kept, self._note)
            if self._over.wait(TREES_S):
                return

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

    def _own_slot(self, job: Assignment) -> "AbstractContextManager[object] | None":
        """A slot for a job of a loop of this worker; None if none is free, or the worker lacks a label."""
        if not set(job.labels) <= set(self._offer.labels):
            return None
        return self._slot(self._offer.slots)

    def _slot(self, limit: float = inf) -> "AbstractContextManager[object] | None":
        """Take a slot. Closing it frees the slot."""
        with self._counting:
            if self.jobs >= limit:
                return None
            self.jobs += 1

        def give_back() -> None:
            with self._counting:
                self.jobs -= 1

        slot = ExitStack()
        slot.callback(give_back)
        return slot

    @contextmanager
    def _passing(self) -> Iterator[None]:
        """Let Temporal try again what another try can end: a store that cannot be reached, a later loop."""
        if not self._reach.is_there():
            raise ApplicationError("this worker does not reach the journals", type=PASSING, category=_EXPECTED)
        try:
            yield
        except PASSING_ERRORS as error:
            self._note(f"{error.message}; it is tried again")
            raise ApplicationError(error.message, type=PASSING, category=_EXPECTED) from error

    @contextmanager
    def _beating(self, given: Given, watch: Callable[[], None]) -> Iterator[None]:
        """Heartbeats and a look at the job, on a thread of its own. Out of reach of the journals there are none."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(min(given.heartbeat_s / BEATS, LONGEST_BEAT_S)):
                if self._reach.is_there():
                    activity.heartbeat()
                with suppress(DetentError):
                    watch()

        thread = threading.Thread(target=contextvars.copy_context().run, args=[beat], daemon=True, name="heartbeat")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @contextmanager
    def _working(self) -> Iterator[None]:
        with self._counting:
            self.busy += 1
        try:
            yield
        finally:
            with self._counting:
                self.busy, self.done = self.busy - 1, self.done + 1


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


def identity(labels: tuple[str, ...], slots: int) -> str:
    """The name of a worker in the lists of Temporal."""
    return f"{os.uname().nodename} process {os.getpid()}, {slots} slots" + (f", {'+'.join(labels)}" if labels else "")


async def serve(
    directory: str,
    package: str | None,
    address: Address,
    offer: Offer,
    *,
    ready: Callable[[list[str]], object],
    note: Callable[[str], object] = id,
) -> int:
    """Serve until the worker is drained; returns the number of activities that it did.

    `note` gets a line for a person: the worker drains, or the scheduler does not answer.
    """
    service = await connect(address, identity(offer.labels, offer.slots))
    await check_namespace(service, address.namespace)
    client = Client(service, namespace=address.namespace)
    serving = Serving(directory, package, client, offer, note)
    key, sets = serving.key, serving.sets
    drained = asyncio.Event()
    _drain_on_signals(drained, serving, note)
    with ThreadPoolExecutor(LOOPS) as loops, ThreadPoolExecutor(offer.slots * len(sets)) as jobs:
        # Each heartbeat is sent: the interval between them is ours.
        beats = timedelta(seconds=_WATCH_S)
        workers = [
            Worker(
                client,
                task_queue=loop_queue(key),
                workflows=[SessionFlow],
                activities=[serving.run_loop],
                activity_executor=loops,
                tuner=tuner(LOOPS, serving.may_take_loops),
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
                    tuner=tuner(offer.slots, serving.may_take_jobs),
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
        looking = asyncio.create_task(_look(service, address, note))
        await asyncio.wait([waiting, *running], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        looking.cancel()
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


async def _look(service: ServiceClient, address: Address, note: Callable[[str], object]) -> None:
    """Say when the scheduler does not answer, and when it answers again."""
    was_there = True
    while True:
        await asyncio.sleep(_LOOK_S)
        is_there = await answers(service)
        if was_there and not is_there:
            note(f"{address} does not answer; this worker goes on with the sessions it has, and takes no other work")
        elif is_there and not was_there:
            note(f"{address} answers again")
        was_there = is_there


def _drain_on_signals(drained: asyncio.Event, serving: Serving, note: Callable[[str], object]) -> None:
    """The first signal drains the worker; a second one ends its jobs."""

    def handle(kind: int) -> None:
        jobs = counted(serving.jobs, "job")
        if drained.is_set():
            serving.stop_jobs(f"the worker was ended by signal {kind}")
            note(f"ending {jobs}; another worker begins them again")
        elif serving.jobs:
            note(f"drains: {jobs} to finish; a second signal or Ctrl-C ends them")
        drained.set()

    loop = asyncio.get_running_loop()
    for kind in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(kind, handle, kind)
