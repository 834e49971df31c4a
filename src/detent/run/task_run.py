"""One task of a phase: takes it, runs its steps, gives it to an agent, and releases it if it is stopped."""

from typing import TYPE_CHECKING, Any

from detent.clients.installing.texts import role_text
from detent.core.flow.progress import StepRun, StepState
from detent.core.flow.step import Step
from detent.core.run.agent_event import Failed, Failure
from detent.core.run.run_event import StepRan, TaskEnded, TurnStarted
from detent.core.session.escalation import BUDGET_EXCEEDED
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session, SessionStatus
from detent.engine.flow.flow import Flow, FlowOutcome
from detent.engine.flow.record import Ended as FlowEnded
from detent.engine.tasks.tasks import Claimed
from detent.errors import NotFound, Refused
from detent.render.prompt.prompt import task_prompt
from detent.run.job import Job, JobClaim, JobOutcome, JobResult
from detent.run.turn import delegate, over_budget

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: Lease of a task in seconds. On this machine the process id decides; another machine relies on the lease.
LEASE_S = 24 * 3600.0


class _Stopped(Exception):
    """Raised by the observer of the steps to end them."""


class TaskRun:
    def __init__(self, project: "Project", job: Job, *, pid: int) -> None:
        self._project, self._job, self._context, self._pid = project, job, job.context, pid
        self._handle: SessionHandle = project.session(job.context.session)

    def run(self) -> JobResult:
        """Take the next task that is ready and do it."""
        try:
            claimed = self._handle.tasks.start(pid=self._pid, lease_s=LEASE_S)
        except (NotFound, Refused):
            # Another worker took the task, or the session has changed.
            return JobResult(JobOutcome.ELSEWHERE)
        claim = JobClaim(claimed.session.token(self._job.phase), claimed.task, claimed.fence)
        self._job.claim = claim
        try:
            return self._do(claimed)
        except BaseException as error:
            session = self._handle.state
            if session.status is SessionStatus.ACTIVE and claim.is_held(session):
                # This process stays alive, so that no other worker would release the task.
                self._handle.tasks.release(claimed.task, reason=type(error).__name__, fence=claimed.fence)
            if isinstance(error, Refused) and not claim.is_live(session):
                # Another process took the task, or ended its phase or the session.
                return JobResult(JobOutcome.ELSEWHERE)
            raise

    def _do(self, claimed: Claimed) -> JobResult:
        try:
            flow = self._run_steps(claimed)
        except _Stopped:
            return self._release(claimed)
        if flow is not None and flow.ended is not FlowEnded.FINISHED:
            waits = flow.ended is FlowEnded.WAITING
            self._tell_ended("blocked" if waits else "failed", f"step {flow.step}: {flow.reason}")
            if waits:
                return JobResult(JobOutcome.ESCALATED)
            return JobResult(JobOutcome.FAILED, Failure.ERROR, flow.reason)
        values = flow.context.get("flow", {}) if flow is not None and flow.context else {}
        return self._delegate(claimed, values)

    def _run_steps(self, claimed: Claimed) -> FlowOutcome | None:
        flow = Flow(self._project, self._handle, env=self._context.marks)
        known = flow.show(claimed.task)
        if not known.steps:
            return None
        begun = any(step.state is not StepState.PENDING for step in known.run.steps)
        go = flow.resume if begun and known.run.current is not None else flow.run
        return go(claimed.task, claim=claimed.fence, observer=_StepObserver(self._job, claimed.task))

    def _delegate(self, claimed: Claimed, values: dict[str, Any]) -> JobResult:
        task, phase = claimed.task, self._job.phase
        context = {**self._handle.tasks.context(task), **({"flow": values} if values else {})}
        role = str(context["task"].get("meta", {}).get("agent") or "").lstrip("@")
        name, agent = self._context.agents.for_phase(phase, role or self._handle.state.workflow.by_key[phase].agent)
        agent_id = f"{self._context.next_agent_id(name)}/{task}"
        self._handle.record_agent_started(phase, role or name, agent_id)
        session = self._handle.state
        self._tell_turn(session, task, name, role)
        minutes, declared = self._context.agents.settings_of(name).timeout_minutes, session.workflow.by_key[phase]
        delegated = delegate(
            self._handle,
            self._job,
            name=name,
            agent=agent,
            agent_id=agent_id,
            prompt=task_prompt(
                session,
                context,
                failed=self._context.failures.get(task, ""),
                role=role_text(role or declared.agent),
                instructions=declared.instructions,
            ),
            place=self._project.place,
            minutes=min(minutes, declared.timeout_minutes or minutes),
        )
        self._handle.record_agent_ended(
            agent_id, succeeded=not isinstance(delegated.end, Failed), report=delegated.report, phase=phase
        )
        if delegated.never_answered and isinstance(delegated.end, Failed):
            # The escalation keeps the task from being taken again before a person decides.
            self._handle.escalate(f"agent_{delegated.end.failure}", phase, f"{task}: {delegated.end.reason}")
            self._handle.tasks.release(task, reason=delegated.end.reason, fence=claimed.fence)
            self._tell_ended("pending", delegated.end.reason)
            return JobResult(JobOutcome.ESCALATED)
        if isinstance(delegated.end, Failed):
            return self._failed(claimed, delegated.end)
        if unmet := self._handle.tasks.unmet(task, delegated.report.met):
            return self._failed(claimed, Failed(failure=Failure.ERROR, reason=unmet))
        if self._job.files is not None:
            # The next task may be done on another machine.
            self._job.settled(lambda check: self._handle.checkpoints.take(f"after {task}", phase=phase, then=check))
        summary = delegated.report.summary or f"{task} done"
        met = delegated.report.met[: self._handle.tasks.row(task).criteria]
        self._handle.tasks.done(task, summary, met=met, fence=claimed.fence)
        self._tell_ended("completed", summary)
        return JobResult(JobOutcome.FINISHED)

    def _failed(self, claimed: Claimed, end: Failed) -> JobResult:
        if end.failure is Failure.STOPPED:
            if (over := over_budget(self._handle, self._job.phase, Tokens())) is not None:
                # The escalation keeps the task from being taken again before a person decides.
                self._handle.escalate(BUDGET_EXCEEDED, self._job.phase, over)
            return self._release(claimed)
        self._handle.tasks.fail(claimed.task, end.reason, fence=claimed.fence)
        reason = self._handle.tasks.row(claimed.task).reason or ""
        self._tell_ended("failed", reason)
        return JobResult(JobOutcome.FAILED, end.failure, reason)

    def _release(self, claimed: Claimed) -> JobResult:
        self._handle.tasks.release(claimed.task, reason=self._job.why_stopped, fence=claimed.fence)
        self._tell_ended("pending", self._job.why_stopped)
        return JobResult(JobOutcome.STOPPED, Failure.STOPPED, self._job.why_stopped)

    def _tell_turn(self, session: Session, task: str, name: str, role: str) -> None:
        phase, tries = self._job.phase, self._handle.tasks.row(task).attempts
        attempt = session.phases[phase].attempt
        self._job.tell(TurnStarted, attempt=attempt, turn=max(1, tries), agent=name, role=role, task=task)

    def _tell_ended(self, status: str, text: str) -> None:
        self._job.tell(TaskEnded, task=self._job.task or "", status=status, said=text)


class _StepObserver:
    """Reports the steps of a task and ends them when the job is stopped. An `Observer` of the engine."""

    def __init__(self, job: Job, task: str) -> None:
        self._job, self._task = job, task

    def begins(self, number: int, total: int, step: Step) -> None:
        self._check()
        self._tell(step.step, f"step {number} of {total}: {step.action}")

    def watches(self, line: str) -> None:  # noqa: ARG002 - the interface of `Observer`
        self._check()

    def ended(self, number: int, total: int, ran: StepRun) -> None:
        self._tell(ran.step, f"step {number} of {total}: {ran.state}" + (f", {ran.reason}" if ran.reason else ""))

    def _check(self) -> None:
        if self._job.is_stopping():
            raise _Stopped

    def _tell(self, step: str, text: str) -> None:
        self._job.tell(StepRan, task=self._task, step=step, said=text)
