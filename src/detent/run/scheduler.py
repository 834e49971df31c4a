"""The run loop: gives runnable phases to a dispatcher until the session ends or needs a person."""

import queue
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from detent.core.actor import as_runner
from detent.core.gate.closed import is_held
from detent.core.run.agent_event import Failure
from detent.core.run.run_event import End, PhaseEnded, RunEnded, RunEvent, RunStarted
from detent.core.session.budget import budget_escalation
from detent.core.session.phase_name import phase_name
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus
from detent.engine.agents import environment as variables
from detent.engine.sandbox import check_available, sandboxes, why_off
from detent.errors import DetentError, Refused
from detent.process.marked import kill_marked
from detent.run.context import RUN_LIMIT, Agents, RunContext, RunOptions, limit_text
from detent.run.dispatcher import LocalDispatcher, MakeDispatcher
from detent.run.feed import FeedRedaction
from detent.run.inbox import Inbox, LocalInbox
from detent.run.job import Job, JobOutcome, JobResult
from detent.run.lease import Lease
from detent.run.people import Person, apply_answer, needs
from detent.run.policy import may_try_again, runnable
from detent.run.recovery import recover

if TYPE_CHECKING:
    from detent.engine.project import Project

#: Interval of the checks for commits of other processes and for answers of a person.
TICK_S = 0.2


class Hosting(NamedTuple):
    """The place in which the loop and its jobs run."""

    dispatcher: MakeDispatcher = LocalDispatcher
    inbox: Callable[[], Inbox] = LocalInbox
    #: The id of the run; a new one by default.
    run: str | None = None
    #: Whether the files of this process are those of the session.
    has_files: bool = True
    #: The scheduler of machines that keeps one loop a session: a later loop of it takes the session over.
    on: str = ""
    #: Whether another run of the same scheduler is later, so that this one may not take its lease.
    yields_to: Callable[[str], bool] = lambda run: False  # noqa: ARG005
    #: How often the loop looks at the session if nothing wakes it.
    tick_s: float = TICK_S


LOCAL = Hosting()


class Runner:
    """Runs one session, once. `tell`, and several times a second `idle`, are called in the thread of `run` only.

    Events reach `tell` without secrets: this is the one place that redacts them.
    """

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
        hosting: Hosting = LOCAL,
    ) -> None:
        self._hosting = hosting
        self._project, self._handle = project, project.session(session, actor=as_runner(project.actor))
        if not hosting.has_files:
            self._handle = self._handle.without_checkpoints()
        #: Answers of the person at the terminal are applied in that person's name.
        self._person_handle = project.session(session)
        self._agents, self._options, self._receiver, self._person = agents, options, tell, person
        self._redacted = FeedRedaction()
        self._idle = idle
        self._inbox = hosting.inbox()
        self._jobs: list[Job] = []
        #: Phases that wait for a person, each with the version of the session that was judged.
        self._held: dict[str, int] = {}
        self._tries: dict[str, int] = {}
        self._announced: set[tuple[str, ...]] = set()
        self._pausing = self._leaving = ""
        self._lease: Lease | None = None

    def run(self) -> End:
        """Run until the session ends, needs a person, or is paused. Raises `Conflict` if another runner holds it."""
        settings = self._project.settings.run.sandbox_settings()
        check_available(settings)
        off = why_off(settings)
        hosting = self._hosting
        lease = Lease(
            self._project, self._handle.id, off=off, run=hosting.run, on=hosting.on, yields_to=hosting.yields_to
        )
        self._lease = lease
        with (
            sandboxes(self._project, settings) if off is None else nullcontext() as sandbox,
            self._project.store.waking(self._handle.id, lambda: self._inbox.put(None)),
        ):
            self._project.sandbox = sandbox
            try:
                return self._run(lease)
            finally:
                self._project.sandbox = None

    def _run(self, lease: Lease) -> End:
        self._context = RunContext(
            self._project,
            self._handle.id,
            lease.run,
            agents=self._agents,
            options=self._options,
            tell=self._inbox.put,
        )
        self._context.took_over = lease.took_over
        self._dispatcher = self._hosting.dispatcher(self._project, self._context)
        self._set_limits(self._handle.state)
        with ExitStack() as end_of_run:
            end_of_run.callback(lease.give_back)
            end_of_run.callback(self._project.flush)
            # An agent that finished the last phase itself may have been ended before it published that.
            end_of_run.callback(self._project.touched, self._handle.id)
            end_of_run.callback(self._dispatcher.close)
            recovered = self._recover()
            self._tell(
                RunStarted(
                    at=self._project.clock(),
                    run=lease.run,
                    session=self._handle.id,
                    parallel=self._options.parallel,
                    taken_over=recovered,
                )
            )
            try:
                end, reason = self._loop(lease)
            except DetentError as error:
                self._tell(RunEnded(at=self._project.clock(), end=End.ERROR, said=error.message))
                raise
        self._tell(RunEnded(at=self._project.clock(), end=end, said=reason))
        return end

    def _recover(self) -> tuple[str, ...]:
        """Adopt the jobs that workers still do, and record the end of all other work that earlier runs left."""
        ended = self._dispatcher.end_left_behind()
        for job, future in self._dispatcher.adopt():
            self._jobs.append(job)
            self._hear(job, future)
        self._context.busy = len(self._jobs)
        busy = {job.phase for job in self._jobs}
        recovered = recover(self._project, self._handle, self._agents, in_flight=busy)
        return (f"{ended} processes of an earlier run were ended", *recovered) if ended else recovered

    def pause(self, why: str) -> None:
        """Stop the jobs, record their end, and return from `run`. For any thread or signal handler."""
        self._pausing = why
        self._inbox.put(None)

    def leave(self, why: str) -> None:
        """Return from `run` as lost, and leave the jobs to the next loop. For any thread."""
        self._leaving = why
        self._inbox.put(None)

    def kill(self) -> None:
        """Kill all processes of the run at once. The next run records the end of their work."""
        if self._lease is not None:
            kill_marked(f"{variables.RUN}={self._lease.run}")

    # The loop

    def _loop(self, lease: Lease) -> tuple[End, str]:
        seen, has_free_slot, open_needs = None, True, False
        while True:
            if self._leaving:
                return End.LOST, self._leaving
            if not lease.keep():
                self._stop_all("another runner took the session over")
                return End.LOST, "another runner took the session over"
            session = self._handle.state
            self._escalate_limit(session)
            if session is not seen or has_free_slot:
                seen = session
                if session.paused_at is not None:
                    self.pause("the session was paused")
                end = self._schedule(session)
                if end is not None:
                    return end
                open_needs = self._tell_needs(session)
                if not self._jobs and not (self._options.wait and open_needs):
                    if self._handle.state.version != session.version:
                        # A person may have decided since the session was read, so that nothing needs one any more.
                        continue
                    if open_needs or not self._is_done(session):
                        return End.WAITING, self._obstacle()
                    # All phases are done but the session is not completed, as after the undo of a rollback.
                    self._act(session, self._handle.complete)
            if self._pausing:
                self._stop_all(self._pausing)
            self._stop_ended_jobs()
            if self._project.sandbox is not None:
                self._project.sandbox.set_aside()
            self._idle()
            has_free_slot = self._apply_answer(open_needs) or self._receive()

    def _schedule(self, session: Session) -> tuple[End, str] | None:
        """Start jobs in free slots. Returns the end of the run, if it ends."""
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

    def _receive(self) -> bool:
        """Handle the messages of the jobs until one has ended, the store wakes the loop, or a tick is over.

        Returns whether a slot is free. An event of a job changes nothing for the loop: to look at the session for each
        of them would be wasted.
        """
        before, since = len(self._jobs), self._project.clock()
        try:
            message = self._inbox.get(timeout=self._hosting.tick_s)
            while True:
                if isinstance(message, tuple):
                    self._ended(*message)
                elif message is not None:
                    self._tell(message)
                left_s = TICK_S - (self._project.clock() - since).total_seconds()
                is_over = message is None or len(self._jobs) < before or self._pausing or self._leaving or left_s <= 0
                message = self._inbox.get_nowait() if is_over else self._inbox.get(timeout=min(left_s, TICK_S))
        except queue.Empty:
            return len(self._jobs) < before or bool(self._pausing)

    def _submit(self, session: Session) -> None:
        if len(self._jobs) >= self._options.parallel:
            return
        if session.tasks_sum and not session.escalations:
            self._retry_tasks()
        self._held = {key: at for key, at in self._held.items() if not self._is_released(session, key, at)}
        busy: dict[str, int] = {}
        for job in self._jobs:
            busy[job.phase] = busy.get(job.phase, 0) + 1
        current, free = self._handle.state, self._options.parallel - len(self._jobs)
        phases = runnable(current, busy=busy, held=self._held, most=free)
        if phases and (reached := self._context.turn_limit_reached()) is not None:
            self._act(session, self._handle.escalate, RUN_LIMIT, phases[0].phase, reached)
            return
        for phase in phases:
            for _ in range(phase.slots):
                if len(self._jobs) >= self._options.parallel:
                    return
                self._start_job(Job(self._context, phase.phase, version=current.version, does_task=phase.has_tasks))

    def _retry_tasks(self) -> None:
        """Retry failed tasks: automatically a few times, then when a person decides so."""
        # The result of a task that is still busy has not been received yet.
        busy = {job.task for job in self._jobs}
        with self._handle.reading() as session:
            failed = {task: session.tasks[task].reason for task in session.tasks.with_status(TaskStatus.FAILED)}
        for task, reason in failed.items():
            if task not in busy:
                self._context.failures.setdefault(task, reason or "")
                self._act(session, self._handle.tasks.retry, task)

    def _is_released(self, session: Session, phase: str, at: int) -> bool:
        """Whether a held phase may be runnable again: the session has changed, and not only a person can act."""
        if session.version == at:
            return False
        self._held[phase] = session.version
        if session.phases[phase].status is not Status.IN_PROGRESS:
            return True
        judged = self._handle.gates.judgements(phase)[phase]
        return not is_held(session.workflow.by_key[phase].gates, judged, sees_tests=self._context.sees_tests)

    def _start_job(self, job: Job) -> None:
        self._jobs.append(job)
        # A job looks at the number when it begins.
        self._context.busy = len(self._jobs)
        self._hear(job, self._dispatcher.start(job))

    def _hear(self, job: Job, future: "Future[JobResult]") -> None:
        future.add_done_callback(lambda done: self._inbox.put((job, done)))

    def _ended(self, job: Job, future: "Future[JobResult]") -> None:
        self._jobs.remove(job)
        self._context.busy = len(self._jobs)
        ended = future.result()
        match ended.outcome:
            case JobOutcome.HELD:
                self._held[job.phase] = ended.version
            case JobOutcome.FINISHED:
                self._tries.pop(job.task or job.phase, None)
                if job.task is None:
                    self._dispatcher.finished(job.phase)
            case JobOutcome.FAILED:
                self._failed(job, ended)
            case JobOutcome.ELSEWHERE:
                self._ended_elsewhere(job)
            case JobOutcome.ESCALATED | JobOutcome.BEGUN | JobOutcome.STOPPED:
                pass

    def _ended_elsewhere(self, job: Job) -> None:
        """Count an attempt that the agent itself ended or restarted as failed, to prevent an endless loop."""
        session = self._handle.state
        state = session.phases[job.phase]
        if job.claim is not None and job.task is None:
            reason = state.summary or state.error or state.skip_reason or "another process ended it"
            job.tell(PhaseEnded, attempt=job.token.attempt, status=state.status, said=reason)
        if job.had_turn and session.status is SessionStatus.ACTIVE and not self._is_settled(job, state):
            reason = state.error or f"{job.task or job.phase} was ended, or begun again, while an agent worked on it"
            self._failed(job, JobResult(JobOutcome.FAILED, Failure.ERROR, reason))

    def _is_settled(self, job: Job, state: PhaseState) -> bool:
        if job.task is None or state.status is not Status.IN_PROGRESS:
            return state.status.is_settled
        with self._handle.reading() as session:
            return session.tasks.is_done(job.task)

    def _failed(self, job: Job, ended: JobResult) -> None:
        """Leave the phase to another attempt while some are left; then escalate to a person."""
        what = job.task or job.phase
        self._tries[what] = self._tries.get(what, 0) + 1
        assert ended.failure is not None
        if job.task is not None:
            self._context.failures[job.task] = ended.reason
        if may_try_again(ended.failure, tries=self._tries[what], attempts=self._options.attempts):
            return
        self._tries.pop(what)
        session = self._handle.state
        if not any(escalation.phase == job.phase for escalation in session.escalations):
            named = f"{job.task}: " if job.task else ""
            kind, detail = f"agent_{ended.failure}", f"{named}{ended.reason}"
            self._act(session, self._handle.escalate, kind, job.phase, detail)

    def _act(self, session: Session, act: Callable[..., object], *arguments: str) -> None:
        """Act on `session`; a refusal is ignored if the session has changed since, because the loop decides again."""
        try:
            act(*arguments)
        except Refused:
            if self._handle.state.version == session.version:
                raise

    def _stop_all(self, why: str) -> None:
        for job in self._jobs:
            self._dispatcher.stop(job, why)
        self._dispatcher.tend()

    def _stop_ended_jobs(self) -> None:
        """Stop the jobs whose attempt another process has ended, and those over their budget."""
        # The claims are read first: a session that is read later contains their beginning.
        claimed = [(job, job.claim) for job in self._jobs if job.claim is not None]
        if not claimed:
            return
        session, now = self._handle.state, self._project.clock()
        for job, claim in claimed:
            if not claim.is_live(session):
                self._dispatcher.stop(job, "another process ended the attempt")
            elif raised := budget_escalation(session, job.phase, now):
                # Escalate first, or the loop would begin the stopped attempt again.
                self._act(session, self._handle.escalate, raised[0].kind, job.phase, raised[0].detail)
                self._dispatcher.stop(job, raised[0].detail)
        self._dispatcher.tend()

    # Limits of the run

    def _set_limits(self, session: Session) -> None:
        """Count from here on: a run begins, or a person decides about a limit that was reached."""
        self._worked, self._looked_at = timedelta(), self._project.clock()
        self._most_tasks = session.added_tasks + self._options.max_tasks

    def _limit_reached(self, session: Session) -> tuple[str, bool] | None:
        """The limit of time or of added tasks that is reached, as a sentence, and whether work stops at once.

        Time counts while something is worked on, not while the run waits for a person.
        """
        now = self._project.clock()
        self._worked, self._looked_at = self._worked + (now - self._looked_at if self._jobs else timedelta()), now
        if any(escalation.kind == RUN_LIMIT for escalation in session.escalations):
            self._set_limits(session)
            return None
        hours, tasks = self._options.max_hours, self._options.max_tasks
        if self._worked >= timedelta(hours=hours):
            return limit_text(f"the run has lasted {hours:g} hours", "max_hours", hours), True
        if session.added_tasks > self._most_tasks:
            added = session.added_tasks - self._most_tasks + tasks
            return limit_text(f"{added} tasks were added by agents", "max_tasks", tasks), False
        return None

    def _escalate_limit(self, session: Session) -> None:
        reached = self._limit_reached(session) if session.status is SessionStatus.ACTIVE else None
        if reached is None:
            return
        text, stops = reached
        live = [job.phase for job in self._jobs] or session.with_status(Status.IN_PROGRESS) or session.unfinished
        for phase in dict.fromkeys(live):
            self._act(session, self._handle.escalate, RUN_LIMIT, phase, text)
        self._set_limits(session)
        if stops:
            self._stop_all(text)

    # People

    def _tell_needs(self, session: Session) -> bool:
        """Announce each request to a person once. Returns whether any is open."""
        requests = needs(self._project, session, self._held, sees_tests=self._context.sees_tests)
        for request in requests:
            if (key := (*request.key, request.text)) not in self._announced:
                self._announced.add(key)
                self._tell(request)
        if self._person is not None:
            self._person.needed(requests)
        return bool(requests)

    def _apply_answer(self, asked: bool) -> bool:  # noqa: FBT001
        """Apply an answer of the person at the terminal. Returns whether it was applied."""
        answer = self._person.poll() if self._person is not None and asked else None
        if answer is None:
            return False
        need, text = answer
        try:
            apply_answer(self._person_handle, need, text)
        except DetentError as error:
            assert self._person is not None
            self._person.show(error.message + (f" (try: {error.way_out})" if error.way_out else ""))
            return False
        self._tries.pop(need.phase, None)
        return True

    def _is_done(self, session: Session) -> bool:
        with self._handle.reading():
            open_tasks = len(session.tasks) > 0 and not session.tasks.is_completed
        return not open_tasks and not session.unfinished

    def _obstacle(self) -> str:
        obstacles = self._handle.why()
        if not obstacles:
            return "nothing is runnable"
        first = obstacles[0]
        where = phase_name(self._handle.state, first.phase) if first.phase else self._handle.id
        return f"{where}: {first.message}"

    def _tell(self, event: RunEvent) -> None:
        self._receiver(self._redacted(event))
