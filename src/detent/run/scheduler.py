"""Running a session: whoever is free works on what is due, until it is over or only a person can move it on."""

import os
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from detent.core.actor import as_runner
from detent.core.run.agent_event import Failure
from detent.core.run.run_event import End, PhaseEnded, RunEnded, RunEvent, RunStarted
from detent.core.session.budget import budget_escalation
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus
from detent.engine.agents import environment as variables
from detent.errors import DetentError, Refused
from detent.process.marked import end_marked, kill_marked
from detent.run.context import Agents, RunContext, RunOptions
from detent.run.feed import redact_event
from detent.run.job import Job
from detent.run.lease import Lease
from detent.run.people import Person, apply_answer, is_held, needs
from detent.run.phase_run import PhaseRun
from detent.run.policy import may_try_again, runnable
from detent.run.recovery import recover
from detent.run.result import JobOutcome, JobResult
from detent.run.task_run import TaskRun
from detent.run.workspaces import Workspaces

if TYPE_CHECKING:
    from detent.engine.project import Project

#: How often is looked whether somebody else moved the session, or a person said something.
TICK_S = 0.2


class Runner:
    """Runs one session, once. `tell`, and several times a second `idle`, are called from the thread of `run` only."""

    def __init__(
        self,
        project: "Project",
        session: str,
        agents: Agents,
        *,
        options: RunOptions,
        tell: Callable[[RunEvent], None],
        person: Person | None = None,
        idle: Callable[[], None] = lambda: None,
    ) -> None:
        self._project, self._handle = project, project.session(session, actor=as_runner(project.actor))
        #: What the person at the terminal says is done in that person's name.
        self._person_handle = project.session(session)
        self._agents, self._options, self._person = agents, options, person
        self._tell: Callable[[RunEvent], None] = lambda event: tell(redact_event(event))
        self._idle = idle
        self._inbox: queue.SimpleQueue[RunEvent | tuple[Job, Future[JobResult]]] = queue.SimpleQueue()
        self._jobs: list[Job] = []
        #: Phases that wait for a person, and the version of the session at which that was found out.
        self._held: dict[str, int] = {}
        self._tries: dict[str, int] = {}
        self._told: set[tuple[str, ...]] = set()
        self._pausing = ""
        self._lease: Lease | None = None

    def run(self) -> End:
        """Until the session is over, a person is needed, or somebody says `pause`. `Conflict` if another runs it."""
        lease = Lease(self._project, self._handle.id)
        self._lease = lease
        self._run_context = RunContext(
            self._project,
            self._handle.id,
            lease.run,
            agents=self._agents,
            options=self._options,
            tell=self._inbox.put,
        )
        self._workspaces = Workspaces(self._project, self._handle.id)
        with ExitStack() as end_of_run:
            end_of_run.callback(lease.give_back)
            # Whatever a gate, a step or an agent has left behind.
            end_of_run.callback(end_marked, f"{variables.RUN}={lease.run}")
            end_of_run.callback(self._workspaces.close)
            taken_over = recover(self._project, self._handle)
            self._tell(
                RunStarted(
                    at=self._project.clock(),
                    run=lease.run,
                    session=self._handle.id,
                    parallel=self._options.parallel,
                    taken_over=taken_over,
                )
            )
            self._pool = end_of_run.enter_context(ThreadPoolExecutor(max_workers=self._options.parallel))
            # Whatever ends the loop, nobody goes on working behind it.
            end_of_run.callback(self._stop_all, "the run ended")
            try:
                end, said = self._go_on(lease)
            except DetentError as error:
                self._tell(RunEnded(at=self._project.clock(), end=End.ERROR, said=error.message))
                raise
        self._tell(RunEnded(at=self._project.clock(), end=end, said=said))
        return end

    def pause(self, why: str) -> None:
        """End what goes on, record it, and leave; from any thread or signal handler."""
        self._pausing = why

    def kill(self) -> None:
        """End what goes on at once; what it was is recorded by the next run."""
        if self._lease is not None:
            kill_marked(f"{variables.RUN}={self._lease.run}")

    # The loop

    def _go_on(self, lease: Lease) -> tuple[End, str]:
        seen, has_hands, open_needs = None, True, False
        while True:
            if not lease.keep():
                self._stop_all("another runner took the session over")
                return End.LOST, "another runner took the session over"
            session = self._handle.state
            if session is not seen or has_hands:
                # Otherwise nothing has happened but that somebody said something.
                seen = session
                if session.paused_at is not None:
                    self.pause("the session was paused")
                end = self._next(session)
                if end is not None:
                    return end
                open_needs = self._tell_needs(session)
                if not self._jobs and not (self._options.wait and open_needs):
                    if open_needs or not self._is_settled(session):
                        return End.WAITING, self._what_holds()
                    # Everything is done; only nobody has said so, as after undoing a rollback.
                    self._act(session, self._handle.complete)
            if self._pausing:
                self._stop_all(self._pausing)
            self._stop_what_ended()
            self._idle()
            has_hands = self._answered(open_needs) or self._listen()

    def _next(self, session: Session) -> tuple[End, str] | None:
        """Put whoever is free to work; how the run ends, if it does."""
        if not self._pausing and session.status is SessionStatus.ACTIVE:
            self._submit(session)
        if self._jobs:
            return None
        match session.status:
            case SessionStatus.COMPLETED:
                return End.COMPLETED, ""
            case SessionStatus.CANCELLED:
                return End.CANCELLED, session.cancel_reason or ""
            case SessionStatus.ACTIVE:
                return (End.PAUSED, self._pausing) if self._pausing else None

    def _listen(self) -> bool:
        """Pass on what was told; whether somebody has become free."""
        before = len(self._jobs)
        try:
            message = self._inbox.get(timeout=TICK_S)
            while True:
                if isinstance(message, tuple):
                    self._ended(*message)
                else:
                    self._tell(message)
                message = self._inbox.get_nowait()
        except queue.Empty:
            return len(self._jobs) < before or bool(self._pausing)

    def _submit(self, session: Session) -> None:
        if len(self._jobs) >= self._options.parallel:
            return
        if not session.escalations:
            self._retry_tasks()
        self._held = {key: at for key, at in self._held.items() if not self._is_released(session, key, at)}
        busy: dict[str, int] = {}
        for job in self._jobs:
            busy[job.phase] = busy.get(job.phase, 0) + 1
        with self._handle.reading() as current:
            found = runnable(current, busy=busy, held=self._held)
        for one in found:
            for _ in range(one.slots):
                if len(self._jobs) >= self._options.parallel:
                    return
                self._start_job(Job(self._run_context, one.phase, version=current.version), has_tasks=one.has_tasks)

    def _retry_tasks(self) -> None:
        """Tasks that failed are tried again, as phases are: by themselves a few times, then when a person says so."""
        # Of one that somebody still works on, what came of it has not been heard yet.
        busy = {job.task for job in self._jobs}
        with self._handle.reading() as session:
            failed = {task: session.tasks[task].reason for task in session.tasks.with_status(TaskStatus.FAILED)}
        for task, reason in failed.items():
            if task not in busy:
                self._run_context.failures.setdefault(task, reason or "")
                self._act(session, self._handle.tasks.retry, task)

    def _is_released(self, session: Session, phase: str, at: int) -> bool:
        """Whether it is worth looking again at a phase that was held: something happened in the session."""
        if session.version == at:
            return False
        self._held[phase] = session.version
        if session.phases[phase].status is not Status.IN_PROGRESS:
            return True
        judged = self._handle.gates.judgements(phase)[phase]
        return not is_held(session, phase, judged, sees_tests=self._run_context.sees_tests)

    def _start_job(self, job: Job, *, has_tasks: bool) -> None:
        self._jobs.append(job)
        self._run_context.busy = len(self._jobs)
        future = self._pool.submit(self._do_task if has_tasks else self._do_phase, job)
        future.add_done_callback(lambda done: self._inbox.put((job, done)))

    def _do_phase(self, job: Job) -> JobResult:
        return PhaseRun(self._workspaces.project(job.phase), job).run()

    def _do_task(self, job: Job) -> JobResult:
        return TaskRun(self._workspaces.project(job.phase), job, pid=os.getpid()).run()

    def _ended(self, job: Job, future: "Future[JobResult]") -> None:
        self._jobs.remove(job)
        self._run_context.busy = len(self._jobs)
        ended = future.result()
        match ended.outcome:
            case JobOutcome.HELD:
                self._held[job.phase] = ended.version
            case JobOutcome.FINISHED:
                self._tries.pop(job.task or job.phase, None)
                if job.task is None:
                    self._workspaces.done(job.phase)
            case JobOutcome.FAILED:
                self._failed(job, ended)
            case JobOutcome.ELSEWHERE:
                self._ended_elsewhere(job)
            case JobOutcome.ESCALATED | JobOutcome.BEGUN | JobOutcome.STOPPED:
                pass

    def _ended_elsewhere(self, job: Job) -> None:
        """What an agent ended itself, or began again, counts as a try that failed, or it would go on for ever."""
        session = self._handle.state
        state = session.phases[job.phase]
        if job.claim is not None and job.task is None:
            said = state.summary or state.error or state.skip_reason or "somebody else ended it"
            self._tell(
                PhaseEnded(
                    at=self._project.clock(),
                    phase=job.phase,
                    attempt=job.claim.token.attempt,
                    status=state.status,
                    said=said,
                )
            )
        if job.had_turn and session.status is SessionStatus.ACTIVE and not self._is_done(job, state):
            reason = state.error or f"{job.task or job.phase} was ended, or begun again, while an agent worked on it"
            self._failed(job, JobResult(JobOutcome.FAILED, Failure.ERROR, reason))

    def _is_done(self, job: Job, state: PhaseState) -> bool:
        if job.task is None or state.status is not Status.IN_PROGRESS:
            return state.status.is_settled
        with self._handle.reading() as session:
            return session.tasks.is_done(job.task)

    def _failed(self, job: Job, ended: JobResult) -> None:
        """Another attempt follows by itself while there are some left; then a person decides."""
        what = job.task or job.phase
        self._tries[what] = self._tries.get(what, 0) + 1
        assert ended.failure is not None
        if job.task is not None:
            self._run_context.failures[job.task] = ended.reason
        if may_try_again(ended.failure, tries=self._tries[what], attempts=self._options.attempts):
            return
        self._tries.pop(what)
        session = self._handle.state
        if not any(one.phase == job.phase for one in session.escalations):
            named = f"{job.task}: " if job.task else ""
            kind, detail = f"agent_{ended.failure}", f"{named}{ended.reason}"
            self._act(session, self._handle.escalate, kind, job.phase, detail)

    def _act(self, session: Session, act: Callable[..., object], *given: str) -> None:
        """Do what follows from how the session stood; if it has moved on since, the next look decides anew."""
        try:
            act(*given)
        except Refused:
            if self._handle.state.version == session.version:
                raise

    def _stop_all(self, why: str) -> None:
        for job in self._jobs:
            job.stop(why)
        self._end_gates()

    def _end_gates(self) -> None:
        """A check that runs for a gate knows nothing of stopping."""
        for job in self._jobs:
            if job.is_stopping() and job.is_at_gate and job.claim is not None:
                end_marked(f"{variables.RUN}={self._run_context.run}", f"{variables.GATE}={job.claim.token}")

    def _stop_what_ended(self) -> None:
        """Nobody goes on with what somebody else has ended, or what has used more than it may."""
        # What is worked on is looked at first: the session that is read after it knows of its beginning.
        known = [(job, job.claim) for job in self._jobs if job.claim is not None]
        session, now = self._handle.state, self._project.clock()
        for job, target in known:
            if not target.is_live(session):
                job.stop("somebody else ended the attempt")
            elif raised := budget_escalation(session, job.phase, now):
                # First, or what is stopped would be begun again.
                self._act(session, self._handle.escalate, raised[0].kind, job.phase, raised[0].detail)
                job.stop(raised[0].detail)
        self._end_gates()

    # People

    def _tell_needs(self, session: Session) -> bool:
        """Say what a person is needed for, each thing once; whether there is anything."""
        with self._handle.reading():
            found = needs(self._handle, session, self._held)
        for one in found:
            if (said := (*one.key, one.text)) not in self._told:
                self._told.add(said)
                self._tell(one)
        if self._person is not None:
            self._person.needed(found)
        return bool(found)

    def _answered(self, asked: bool) -> bool:  # noqa: FBT001
        """Carry out what the person at the terminal said, if anything; whether it did."""
        said = self._person.poll() if self._person is not None and asked else None
        if said is None:
            return False
        need, text = said
        try:
            apply_answer(self._person_handle, need, text)
        except DetentError as error:
            assert self._person is not None
            self._person.show(f"{error.message}" + (f" (try: {error.way_out})" if error.way_out else ""))
            return False
        self._tries.pop(need.phase, None)
        return True

    def _is_settled(self, session: Session) -> bool:
        with self._handle.reading():
            open_tasks = len(session.tasks) > 0 and not session.tasks.is_completed
        return not open_tasks and not session.unfinished

    def _what_holds(self) -> str:
        found = self._handle.why()
        return f"{found[0].phase or self._handle.id}: {found[0].message}" if found else "nothing can be done"
