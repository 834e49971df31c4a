"""One task of a phase: taken, its steps run, done by an agent, and given back if that comes to nothing."""

from typing import TYPE_CHECKING, Any

from detent.core.flow.progress import StepRun, StepState
from detent.core.flow.step import Step
from detent.core.run.agent_event import Failed, Failure
from detent.core.run.run_event import StepRan, TaskEnded, TurnStarted
from detent.core.session.budget import BUDGET_EXCEEDED
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session, SessionStatus
from detent.engine.flow.flow import Flow, FlowOutcome
from detent.engine.flow.record import Ended as FlowEnded
from detent.engine.tasks.tasks import Claimed
from detent.errors import NotFound, Refused
from detent.render.prompt.prompt import task_prompt
from detent.run.job import Job, JobClaim
from detent.run.result import JobOutcome, JobResult
from detent.run.turn import delegate, over_budget

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: The process tells whether its holder lives; this is for whoever asks from another machine.
LEASE_S = 24 * 3600.0


class _Stopped(Exception):
    """Raised by whoever looks on while steps run, to end them."""


class TaskRun:
    def __init__(self, project: "Project", job: Job, *, pid: int) -> None:
        self._project, self._job, self._run_context, self._pid = project, job, job.run_context, pid
        self._handle: SessionHandle = project.session(job.run_context.session)

    def run(self) -> JobResult:
        """Take the next task that is ready and do it."""
        try:
            claimed = self._handle.tasks.start(pid=self._pid, lease_s=LEASE_S)
        except (NotFound, Refused):
            # Somebody was quicker, or the session went on without us.
            return JobResult(JobOutcome.ELSEWHERE)
        target = JobClaim(claimed.session.token(self._job.phase), claimed.task, claimed.fence)
        self._job.claim = target
        try:
            return self._do(claimed)
        except BaseException as error:
            session = self._handle.state
            if session.status is SessionStatus.ACTIVE and target.is_held(session):
                # The process lives on, so that nobody else would notice.
                self._handle.tasks.release(claimed.task, reason=type(error).__name__, fence=claimed.fence)
            if isinstance(error, Refused) and not target.is_live(session):
                # Of what was looked at a moment ago: somebody took the task, or ended its phase or the session.
                return JobResult(JobOutcome.ELSEWHERE)
            raise

    def _do(self, claimed: Claimed) -> JobResult:
        try:
            flow = self._run_steps(claimed)
        except _Stopped:
            return self._give_back(claimed)
        if flow is not None and flow.ended is not FlowEnded.FINISHED:
            waits = flow.ended is FlowEnded.WAITING
            self._tell_ended("blocked" if waits else "failed", f"step {flow.step}: {flow.reason}")
            return (
                JobResult(JobOutcome.ESCALATED) if waits else JobResult(JobOutcome.FAILED, Failure.ERROR, flow.reason)
            )
        found = flow.context.get("flow", {}) if flow is not None and flow.context else {}
        return self._delegate(claimed, found)

    def _run_steps(self, claimed: Claimed) -> FlowOutcome | None:
        flow = Flow(self._project, self._handle, env=self._run_context.marks)
        known = flow.show(claimed.task)
        if not known.steps:
            return None
        begun = any(step.state is not StepState.PENDING for step in known.run.steps)
        go = flow.resume if begun and known.run.current is not None else flow.run
        return go(claimed.task, claim=claimed.fence, observer=_Watching(self._job, claimed.task))

    def _delegate(self, claimed: Claimed, found: dict[str, Any]) -> JobResult:
        task, phase = claimed.task, self._job.phase
        context = {**self._handle.tasks.context(task), **({"flow": found} if found else {})}
        role = str(context["task"].get("meta", {}).get("agent") or "").lstrip("@")
        name, agent = self._run_context.agents.for_phase(phase, role or self._handle.state.workflow.by_key[phase].agent)
        agent_id = f"{self._run_context.next_agent_id(name)}/{task}"
        self._handle.record_agent_started(phase, role or name, agent_id)
        session = self._handle.state
        self._tell_turn(session, task, name, role)
        came = delegate(
            self._handle,
            self._job,
            name=name,
            agent=agent,
            agent_id=agent_id,
            prompt=task_prompt(session, context, failed=self._run_context.failures.get(task, "")),
            cwd=self._project.place.base,
            minutes=self._run_context.agents.settings_of(name).timeout_minutes,
        )
        self._handle.record_agent_ended(
            agent_id, succeeded=not isinstance(came.end, Failed), report=came.report, phase=phase
        )
        if isinstance(came.end, Failed):
            return self._failed(claimed, came.end)
        summary = came.report.summary or f"{task} done"
        self._handle.tasks.done(task, summary, fence=claimed.fence)
        self._tell_ended("completed", summary)
        return JobResult(JobOutcome.FINISHED)

    def _failed(self, claimed: Claimed, end: Failed) -> JobResult:
        if end.failure is Failure.STOPPED:
            if (over := over_budget(self._handle, self._job.phase, Tokens())) is not None:
                # It is not taken again before a person has said so.
                self._handle.escalate(BUDGET_EXCEEDED, self._job.phase, over)
            return self._give_back(claimed)
        self._handle.tasks.fail(claimed.task, end.reason, fence=claimed.fence)
        reason = self._handle.tasks.row(claimed.task).reason or ""
        self._tell_ended("failed", reason)
        return JobResult(JobOutcome.FAILED, end.failure, reason)

    def _give_back(self, claimed: Claimed) -> JobResult:
        self._handle.tasks.release(claimed.task, reason=self._job.why_stopped, fence=claimed.fence)
        self._tell_ended("pending", self._job.why_stopped)
        return JobResult(JobOutcome.STOPPED, Failure.STOPPED, self._job.why_stopped)

    def _tell_turn(self, session: Session, task: str, name: str, role: str) -> None:
        phase, tries = self._job.phase, self._handle.tasks.row(task).attempts
        self._run_context.tell(
            TurnStarted(
                at=self._run_context.clock(),
                phase=phase,
                attempt=session.phases[phase].attempt,
                turn=max(1, tries),
                agent=name,
                role=role,
                task=task,
            )
        )

    def _tell_ended(self, status: str, said: str) -> None:
        task = self._job.task or ""
        self._run_context.tell(
            TaskEnded(at=self._run_context.clock(), phase=self._job.phase, task=task, status=status, said=said)
        )


class _Watching:
    """Looks on while the steps of a task run; see `Observer` of the engine."""

    def __init__(self, job: Job, task: str) -> None:
        self._job, self._task = job, task

    def begins(self, number: int, total: int, step: Step) -> None:
        self._check()
        self._tell(step.step, f"step {number} of {total}: {step.action}")

    def watches(self, line: str) -> None:  # noqa: ARG002 - only whether to go on matters here
        self._check()

    def ended(self, number: int, total: int, came: StepRun) -> None:
        self._tell(came.step, f"step {number} of {total}: {came.state}" + (f", {came.reason}" if came.reason else ""))

    def _check(self) -> None:
        if self._job.is_stopping():
            raise _Stopped

    def _tell(self, step: str, said: str) -> None:
        run_context = self._job.run_context
        run_context.tell(StepRan(at=run_context.clock(), phase=self._job.phase, task=self._task, step=step, said=said))
