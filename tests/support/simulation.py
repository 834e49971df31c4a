"""A world of machines in one thread: the run loop, its jobs, recovery, the board and the journal are the product's own.

Simulated are the network, the clocks, the agents, and what the scheduler of machines promises: it gives each activity
to one worker, gives it to another one after a time without a heartbeat, and ignores the end of an activity that it gave
away. A machine may crash, freeze and wake, lose the store or the scheduler, lose or double a message, and have a wrong
clock. A seed decides everything, so a seed that breaks an invariant breaks it again.
"""

import hashlib
import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from unittest.mock import patch

import msgspec

from detent.clients.adapter.agent import Turn
from detent.config import place as places
from detent.config.settings import AgentSettings, Settings, parse_settings
from detent.core.actor import Actor, Channel
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished
from detent.core.run.run_event import End
from detent.core.session.events import AgentLaunched, Commit, PhaseBegun, PhaseFailed, PhaseFinished, PhaseRedone
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.phase_state import Report
from detent.core.session.session import SessionStatus
from detent.doctor.finding import Finding
from detent.doctor.journal import check_phases, replay
from detent.engine.actor import identify
from detent.engine.journal import SessionJournal
from detent.engine.project import Project
from detent.errors import Conflict, DetentError, StoreFailed
from detent.run.context import RunContext, RunOptions
from detent.run.inbox import Message
from detent.run.scheduler import Hosting, Runner
from detent.store.memory import MemoryStore
from detent.store.port import Cursor, Tail
from detent.worker.board import Assignment, Board, Ended, is_later_loop, job_run, loop_run
from detent.worker.dispatcher import RemoteDispatcher
from detent.worker.host import PASSING, Hosted, ended_with
from tests.support.fibers import Fiber, FiberLock, FiberLoop

START = datetime(2026, 1, 1, tzinfo=UTC)
HEARTBEAT_S, BEAT_S = 2.0, 0.8
SLOTS, LOOPS = 4, 20
#: Faults happen in this time; afterwards everything must come to its end.
FAULTS_S, LIMIT_S = 15.0, 900.0
_SETTINGS = """
[checkpoint]
capture = "off"
[run]
sandbox = "off"
[workflows.row]
phases = ["a", "b"]
[workflows.single]
phases = ["a"]
[workflows.split]
phases = ["a", {key = "b", needs = ["a"]}, {key = "c", needs = ["a"]}]
"""
_WORKFLOWS = ("split", "single", "row", "single")
_ALWAYS = 10_000


class Broken(Exception):
    """An invariant does not hold."""


class Machine:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_gone = self.is_frozen = False
        self.has_store = self.has_scheduler = True
        self.skew = timedelta()
        self.jobs = self.loops = 0

    def __repr__(self) -> str:
        return self.name


class Activity:
    """A run loop, or a job of it, as the scheduler of machines keeps it."""

    def __init__(self, session: str, assignment: Assignment | None) -> None:
        self.session, self.assignment = session, assignment
        self.name = assignment.id if assignment is not None else f"loop of {session}"
        self.tries = 0
        self.machine: Machine | None = None
        self.beat = 0.0
        self.is_over = False
        #: Why a job is stopped.
        self.why = ""


class SimulatedStore(MemoryStore):
    """The store of one machine, over a network. All of them share the content of `shared`."""

    def __init__(self, world: "World", machine: Machine) -> None:
        super().__init__()
        self._world, self._machine = world, machine
        shared = world.store
        self._journals, self._documents, self._written = shared._journals, shared._documents, shared._written
        self._local: dict[str, FiberLock] = {}

    def read(self, session: str, after: Cursor, limit: int = 5_000) -> Tail:
        if self._world.happens(0.5):
            self._cross()
        return super().read(session, after, limit)

    def append(self, session: str, after: Cursor, commit: Commit) -> Cursor:
        self._world.tempt(self._machine)
        self._cross()
        end = super().append(session, after, commit)
        self._world.committed(session, commit)
        if self._world.happens(self._world.loss):
            # The commit is there, and its writer does not know.
            raise StoreFailed("the connection broke")
        self._cross()
        return end

    @contextmanager
    def lock(self, name: str, **_: Any) -> Iterator[None]:
        """A lock of this machine alone: between machines only the version of an append decides."""
        with self._local.setdefault(name, FiberLock(self._world.loop)):
            yield

    def get(self, name: str) -> bytes | None:
        self._cross()
        return super().get(name)

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        self._cross()
        super().put(name, data, durable=durable)

    def swap(self, name: str, before: bytes | None, after: bytes | None) -> bool:
        self._cross()
        return super().swap(name, before, after)

    def directory(self, name: str) -> str:
        return _DIRECTORY

    def reopen(self) -> "SimulatedStore":
        return self

    def _cross(self) -> None:
        self._world.loop.sleep(self._world.loop.random.random() * 0.02)
        if not self._machine.has_store:
            raise StoreFailed("the store cannot be reached")


class _Journal(SessionJournal):
    """A journal whose lock gives way to other fibers."""

    def __init__(self, world: "World", store: SimulatedStore, session: str) -> None:
        super().__init__(store, session)
        self._mutex = FiberLock(world.loop)  # type: ignore[assignment]


class _Project(Project):
    def __init__(self, world: "World", machine: Machine) -> None:
        self._world, self._own = world, dict[str, SessionJournal]()
        self._simulated = store = SimulatedStore(world, machine)
        clock = lambda: START + timedelta(milliseconds=int(world.loop.now * 1000)) + machine.skew  # noqa: E731
        super().__init__(store, places.at_root(_DIRECTORY), _settings(), actor=_actor(), clock=clock)

    def journal(self, session: str) -> SessionJournal:
        if session not in self._own:
            self._own[session] = _Journal(self._world, self._simulated, session)
        return self._own[session]

    def touched(self, session: str, *, urgent: bool = False) -> None:
        """Views are of no interest here."""


class _Agent:
    """An agent whose work takes time, and sometimes fails."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def for_phase(self, phase: str, role: str) -> tuple[str, "_Agent"]:
        return "agent", self

    def settings_of(self, name: str) -> AgentSettings:
        return AgentSettings(adapter="command", backoff_s=0.5)

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:
        loop = self._world.loop
        for _ in range(loop.random.randrange(1, 5)):
            loop.sleep(loop.random.random() * 1.5)
            if stopping():
                yield Failed(failure=Failure.STOPPED, reason="stopped")
                return
        if self._world.happens(0.05):
            failure = loop.random.choice((Failure.ERROR, Failure.TRANSIENT))
            yield Failed(failure=failure, reason="it broke")
            return
        yield Finished(report=Report(summary=f"{turn.phase} done"))


class _Inbox:
    """Messages of jobs, for a loop in a fiber."""

    def __init__(self, loop: FiberLoop) -> None:
        self._loop = loop
        self._messages: list[Message] = []
        self._reader: Fiber | None = None

    def put(self, item: Message, /) -> None:
        self._messages.append(item)
        if self._reader is not None:
            self._loop.unpark(self._reader)

    def get(self, *, timeout: float) -> Message:
        if not self._messages:
            self._reader = self._loop.current
            # Nothing else would come of looking more often.
            self._loop.park(timeout * 10)
            self._reader = None
        return self.get_nowait()

    def get_nowait(self) -> Message:
        if not self._messages:
            raise queue.Empty
        return self._messages.pop(0)


class _Link:
    """The messages between a loop and the board of its session."""

    def __init__(self, world: "World", machine: Machine, session: str, loop: str, jobs: list[Assignment]) -> None:
        self._world, self._machine, self._session = world, machine, session
        self._name, self._jobs = loop, jobs

    def attach(self, deliver: Callable[[Ended], None]) -> list[Assignment]:
        board = self._world.boards[self._session]
        if board.loop == self._name:
            self._world.listeners[self._session] = (self._name, self._machine, deliver)
            for ended in board.ended:
                self._world.deliver(self._session, ended)
        return self._jobs

    def submit(self, job: Assignment) -> None:
        self._world.ask(self._machine, lambda: self._world.submit(self._session, self._name, job))

    def stop(self, job: str, why: str) -> None:
        self._world.ask(self._machine, lambda: self._world.stop(self._session, self._name, job, why))

    def close(self) -> None:
        """The board notices it when the activity ends."""


class _OwnJobs:
    """The jobs that a machine does for its own loop, each in a fiber. See `Here`."""

    def __init__(self, world: "World", machine: Machine, session: str) -> None:
        self._world, self._machine, self._session = world, machine, session
        self._jobs: dict[str, Hosted] = {}

    def start(self, job: Assignment) -> Future[Ended] | None:
        if self._jobs or self._machine.jobs >= SLOTS:
            return None
        self._machine.jobs += 1
        self._jobs[job.id] = hosted = self._world.hosted(self._machine, self._session, job, 1)
        future: Future[Ended] = Future()

        def work() -> None:
            ended: Ended | None = None
            failure: DetentError | None = None
            try:
                ended = hosted.run(is_retry=False)
            except PASSING as error:
                failure = error
            except DetentError as error:
                ended = ended_with(job, error)
            del self._jobs[job.id]
            self._machine.jobs -= 1
            if failure is not None:
                future.set_exception(failure)
            else:
                assert ended is not None
                future.set_result(ended)

        fiber = self._world.loop.spawn(work, self._machine)
        fiber.activity = (job.id, 1)
        return future

    def stop(self, job: str, why: str) -> None:
        if job in self._jobs:
            self._jobs[job].job.stop(why)

    def stop_all(self, why: str) -> None:
        for job in list(self._jobs):
            self.stop(job, why)

    def watch(self) -> None:
        for hosted in list(self._jobs.values()):
            hosted.watch()

    def close(self) -> None:
        while self._jobs:
            self._world.loop.sleep(0.1)


class World:
    def __init__(self, seed: int, *, machines: int = 5, sessions: int = 20) -> None:
        self.seed = seed
        self.loop = FiberLoop(seed)
        self.store = MemoryStore()
        self.machines = [Machine(f"m{number}") for number in range(machines)]
        #: Probability that a message is lost, or comes twice.
        self.loss = self.loop.random.choice((0.0, 0.01, 0.05))
        self.boards: dict[str, Board] = {}
        self.listeners: dict[str, tuple[str, Machine, Callable[[Ended], None]]] = {}
        self.problems: list[str] = []
        self.faults: list[str] = []
        self._names = [f"WFS-{number}" for number in range(sessions)]
        self._active: list[Activity] = []
        self._queue: list[Activity] = []
        self._jobs: dict[str, Activity] = {}
        self._done: set[str] = set()
        #: The open jobs that each try of a loop is given.
        self._attached: dict[tuple[str, int], list[Assignment]] = {}
        self._owner: dict[tuple[str, str], tuple[int, tuple[str, int] | None]] = {}
        self._ended: dict[tuple[str, str, int], str] = {}
        self._trace = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Of every commit with its time: equal for equal runs."""
        return self._trace.hexdigest()

    def run(self) -> "World":
        for number, name in enumerate(self._names):
            self.store.create(name, _first(name, _WORKFLOWS[number % 4]))
            self.boards[name] = Board()
            self._enqueue(Activity(name, None))
        self.loop.spawn(self._cause_faults)
        self.loop.spawn(self._watch_heartbeats)
        # A pause would take real time, and the program `detent` real files.
        pauses = patch("detent.engine.journal._pause_s", lambda tries: 0.0)
        with pauses, patch("detent.run.context.own_path", lambda directory: {}):
            try:
                self.loop.run(lambda: len(self._done) == len(self._names), LIMIT_S)
            except Broken as broken:
                self.problems.append(str(broken))
            self.loop.close()
        self._check()
        return self

    def happens(self, probability: float) -> bool:
        return self.loop.random.random() < probability

    # What the scheduler of machines does

    def ask(self, machine: Machine, act: Callable[[], Any]) -> Any:
        """A message of a machine to the scheduler, and the answer."""
        self.loop.sleep(self.loop.random.random() * 0.02)
        if not machine.has_scheduler or self.happens(self.loss):
            raise StoreFailed("the scheduler cannot be reached")
        answer = act()
        if self.happens(self.loss):
            act()
        if self.happens(self.loss):
            raise StoreFailed("the answer of the scheduler was lost")
        return answer

    def submit(self, session: str, loop: str, assignment: Assignment) -> None:
        if self.boards[session].submit(loop, assignment):
            activity = Activity(session, assignment)
            self._jobs[assignment.id] = activity
            self._enqueue(activity)

    def stop(self, session: str, loop: str, job: str, why: str) -> None:
        if self.boards[session].stop(loop, job, why):
            self._jobs[job].why = why

    def _enqueue(self, activity: Activity) -> None:
        activity.tries += 1
        activity.machine = None
        # As the workflow does, with a pause that grows.
        pause = 0.0 if activity.tries == 1 else min(0.1 * 2.0 ** min(activity.tries, 6), 5.0)
        self.loop.spawn(lambda: self._assign(activity), after=pause + self.loop.random.random() * 0.05)

    def _assign(self, queued: Activity) -> None:
        self._queue.append(queued)
        while self._queue:
            activity = self._queue[0]
            free = [machine for machine in self.machines if self._is_free(machine, activity)]
            if not free:
                self.loop.sleep(0.3)
                continue
            self._queue.pop(0)
            if activity.is_over:
                continue
            activity.machine, activity.beat = self.loop.random.choice(free), self.loop.now
            if activity.assignment is None:
                loop = loop_run(f"s{_number(activity.session)}", activity.tries)
                self._attached[activity.session, activity.tries] = self.boards[activity.session].attach(loop)
            self._active.append(activity)
            self._begin(activity, activity.machine, activity.tries)

    def _is_free(self, machine: Machine, activity: Activity) -> bool:
        if machine.is_gone or machine.is_frozen or not machine.has_scheduler:
            return False
        return machine.loops < LOOPS * 50 if activity.assignment is None else machine.jobs < SLOTS

    def _begin(self, activity: Activity, machine: Machine, tries: int) -> None:
        is_job = activity.assignment is not None
        machine.jobs, machine.loops = machine.jobs + is_job, machine.loops + (not is_job)

        def work() -> None:
            ended: Ended | End | None = None
            try:
                ended = self._do(activity, machine, tries)
            except (StoreFailed, Conflict):
                # The scheduler tries it again elsewhere.
                pass
            except DetentError as error:
                if activity.assignment is None:
                    raise Broken(f"the loop of {activity.session} ended: {error.message}") from error
                ended = ended_with(activity.assignment, error)
            machine.jobs, machine.loops = machine.jobs - is_job, machine.loops - (not is_job)
            self._end(activity, machine, tries, ended)

        fiber = self.loop.spawn(work, machine, after=0.02)
        fiber.activity = (activity.name, tries)

    def _end(self, activity: Activity, machine: Machine, tries: int, ended: Ended | End | None) -> None:
        while not machine.has_scheduler:
            self.loop.sleep(0.5)
        if activity.is_over or tries != activity.tries or activity not in self._active:
            # The activity was given to another machine: this end is too late.
            return
        self._active.remove(activity)
        if ended is None or ended is End.LOST:
            self._enqueue(activity)
            return
        activity.is_over = True
        if isinstance(ended, End):
            if ended is not End.COMPLETED:
                raise Broken(f"the run of {activity.session} ended as {ended}")
            self._done.add(activity.session)
        elif self.boards[activity.session].end(ended):
            self.deliver(activity.session, ended)

    def deliver(self, session: str, ended: Ended) -> None:
        listener = self.listeners.get(session)
        if listener is None:
            return
        _, machine, deliver = listener

        def arrive() -> None:
            while not machine.has_scheduler:
                self.loop.sleep(0.5)
            deliver(ended)
            if self.happens(self.loss):
                deliver(ended)

        self.loop.spawn(arrive, machine, after=self.loop.random.random() * 0.05)

    def _watch_heartbeats(self) -> None:
        while True:
            self.loop.sleep(0.5)
            for activity in [one for one in self._active if self.loop.now - one.beat > HEARTBEAT_S]:
                self._active.remove(activity)
                self._enqueue(activity)

    # What a machine does

    def _do(self, activity: Activity, machine: Machine, tries: int) -> Ended | End:
        assignment = activity.assignment
        if assignment is None:
            return self._run_loop(activity, machine, tries)
        hosted = self.hosted(machine, activity.session, assignment, tries)

        def look(why: str) -> None:
            if why:
                hosted.job.stop(why)
            hosted.watch()

        with self._beating(activity, machine, tries, look):
            return hosted.run(is_retry=tries > 1)

    def hosted(self, machine: Machine, session: str, assignment: Assignment, tries: int) -> Hosted:
        """The job of a try, on a project of its own."""
        project, run = _Project(self, machine), job_run(assignment.id, tries)
        context = RunContext(project, session, run, agents=_Agent(self), options=_OPTIONS, tell=lambda event: None)
        hosted = Hosted(project, context, assignment)
        hosted.job.wait = self.loop.sleep  # type: ignore[method-assign, assignment]
        return hosted

    def _run_loop(self, activity: Activity, machine: Machine, tries: int) -> End:
        run, session = loop_run(f"s{_number(activity.session)}", tries), activity.session
        # As the workflow does, before it gives the loop to a machine; the machine may have frozen since.
        jobs = self._attached.pop((session, tries))
        link, own = _Link(self, machine, session, run, jobs), _OwnJobs(self, machine, session)

        def dispatcher(_project: Project, context: RunContext) -> RemoteDispatcher:
            return RemoteDispatcher(context, link, lambda phase: (), own, term=tries)

        runner = Runner(
            _Project(self, machine),
            session,
            _Agent(self),
            options=_OPTIONS,
            tell=lambda event: None,
            hosting=Hosting(
                dispatcher,
                lambda: _Inbox(self.loop),
                run,
                has_files=False,
                on="simulation",
                yields_to=lambda other: is_later_loop(other, run),
            ),
        )

        def look(why: str) -> None:
            if why:
                own.stop_all(why)
                runner.leave(why)
            own.watch()

        with self._beating(activity, machine, tries, look):
            return runner.run()

    @contextmanager
    def _beating(self, activity: Activity, machine: Machine, tries: int, look: Callable[[str], None]) -> Iterator[None]:
        """Heartbeats on a fiber of its own; `look` gets the reason why the activity is to stop, or nothing."""

        def beat() -> None:
            while True:
                is_lost = activity.tries != tries or activity.is_over
                why = "the scheduler gave it to another worker" if is_lost else activity.why
                if machine.has_scheduler and not is_lost:
                    activity.beat = self.loop.now
                with suppress(StoreFailed):
                    look(why if machine.has_scheduler else "")
                self.loop.sleep(BEAT_S)

        beats = self.loop.spawn(beat, machine, after=BEAT_S)
        try:
            yield
        finally:
            beats.is_over = True

    # Faults

    def _cause_faults(self) -> None:
        rng = self.loop.random
        while self.loop.now < FAULTS_S:
            self.loop.sleep(rng.random() * 2.0)
            number = rng.randrange(len(self.machines))
            fault = rng.choice(("crash", "freeze", "cut store", "cut scheduler", "skew"))
            self.faults.append(f"{self.loop.now:.2f} {fault} {self.machines[number]}")
            self._cause(fault, number, rng.random() * 8.0)
        self.loop.sleep(10.0)
        self.loss = 0.0

    def tempt(self, machine: Machine) -> None:
        """A writer stops at the worst moment: it has decided, and has not committed."""
        if self.loop.now < FAULTS_S and not machine.is_frozen and self.happens(0.04):
            self._cause("freeze", self.machines.index(machine), 1.0 + self.loop.random.random() * 8.0)

    def _cause(self, fault: str, number: int, seconds: float) -> None:
        machine = self.machines[number]
        match fault:
            case "crash":
                machine.is_gone = True
                self.loop.drop(machine)
                # Another machine with the same name is up after a while.
                self.machines[number] = born = Machine(machine.name)
                born.has_scheduler = False
                self._later(seconds, lambda: setattr(born, "has_scheduler", True))
            case "freeze":
                machine.is_frozen = True
                self.loop.hold(machine)
                self._later(seconds, lambda: self._thaw(machine))
            case "cut store":
                machine.has_store = False
                self._later(seconds, lambda: setattr(machine, "has_store", True))
            case "cut scheduler":
                machine.has_scheduler = False
                self._later(seconds, lambda: setattr(machine, "has_scheduler", True))
            case _:
                machine.skew = timedelta(seconds=self.loop.random.randrange(-3600, 3600))

    def _thaw(self, machine: Machine) -> None:
        machine.is_frozen = False
        self.loop.release(machine)

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        self.loop.spawn(act, after=seconds)

    # Invariants

    def committed(self, session: str, commit: Commit) -> None:
        """Check what must hold at every commit."""
        self._trace.update(f"{self.loop.now} {session} {commit.version} {commit.state}\n".encode())
        fiber = self.loop.current
        by = fiber.activity if fiber is not None else None
        for event in commit.events:
            match event:
                case PhaseBegun() | PhaseRedone():
                    self._owner[session, event.phase] = (event.attempt, by)
                case AgentLaunched():
                    attempt, owner = self._owner.get((session, event.phase), (1, None))
                    if owner is None:
                        self._owner[session, event.phase] = (attempt, by)
                case PhaseFinished() | PhaseFailed():
                    kind = type(event).__name__
                    key = (session, event.phase, event.attempt)
                    if key in self._ended:
                        raise Broken(f"{key} ended twice: {self._ended[key]}, then {kind}")
                    self._ended[key] = kind
                    belongs = self._owner.get((session, event.phase), (1, None))
                    if kind == "PhaseFinished" and belongs != (event.attempt, by):
                        raise Broken(f"{key} was finished by {by}, and belongs to {belongs}")
                case _:
                    pass

    def _check(self) -> None:
        """Check what must hold in the end: every session is completed, and its journal is sound."""
        project = Project(self.store, places.at_root(_DIRECTORY), _settings(), actor=_actor())
        findings: list[Finding] = []
        for name in self._names:
            try:
                session = replay(project, name, findings)
            except DetentError as error:
                self.problems.append(f"{name}: {error.message}")
                continue
            findings.extend(check_phases(session))
            if session.status is not SessionStatus.COMPLETED and not self.problems:
                self.problems.append(f"{name} is {session.status} at the end")
        self.problems.extend(f"{one.invariant} {one.message}" for one in findings)


#: The files of each machine; no directory is made, because nothing is in it.
_DIRECTORY = "/nonexistent/detent-simulation"
_OPTIONS = RunOptions(parallel=2, attempts=_ALWAYS, max_turns=_ALWAYS, max_hours=_ALWAYS)


@cache
def _settings() -> Settings:
    return parse_settings(_SETTINGS, "simulation")


@cache
def _actor() -> Actor:
    return identify({}, Channel.LIBRARY, name="simulation", lineage=())


@cache
def _template(workflow: str) -> Commit:
    store = MemoryStore()
    project = Project(store, places.at_root(_DIRECTORY), _settings(), actor=_actor(), clock=lambda: START)
    handle = project.start(workflow, "a task")
    commits = list(handle.log())
    project.close()
    return commits[0]


@cache
def _first(name: str, workflow: str) -> Commit:
    """The first commit of a session, without the time that starting one takes."""
    template = _template(workflow)
    started, *rest = template.events
    draft = msgspec.structs.replace(template, events=(msgspec.structs.replace(started, session=name), *rest), state="")
    return msgspec.structs.replace(draft, state=fingerprint(evolve(None, draft)))


def _number(session: str) -> str:
    return session.rpartition("-")[2]


def broken_seeds(seeds: Iterable[int], **world: int) -> dict[int, list[str]]:
    """The seeds that break an invariant, with what they broke."""
    broken = {}
    for seed in seeds:
        if problems := World(seed, **world).run().problems:
            broken[seed] = problems
    return broken
