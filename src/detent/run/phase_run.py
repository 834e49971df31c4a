"""One attempt of a phase, from wherever it stands: begin, turns of an agent, gates, finish."""

from typing import TYPE_CHECKING

from detent.core.gate.evidence import Judgement, Result, Verdict
from detent.core.run.agent_event import Failed
from detent.core.run.run_event import Need, PersonNeeded, TurnStarted
from detent.core.session.events import PhaseRedone
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.errors import Refused
from detent.render.prompt.prompt import phase_prompt
from detent.run.attempt_end import AttemptEnd
from detent.run.job import Job, JobClaim
from detent.run.phase_gates import PhaseGates
from detent.run.policy import Next, after_gates, is_only_stale, task_phase
from detent.run.result import JobOutcome, JobResult
from detent.run.turn import delegate

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: So often are gates run again because files changed meanwhile that they are about.
STALE_RUNS = 8


class PhaseRun:
    def __init__(self, project: "Project", job: Job) -> None:
        self._job, self._run_context, self._phase = job, job.run_context, job.phase
        self._handle: SessionHandle = project.session(job.run_context.session)
        self._base = project.place.base
        session = self._handle.state
        declared = session.workflow.by_key[self._phase]
        self._title, self._role, self._minutes = declared.title or self._phase, declared.agent, declared.timeout_minutes
        self._gates = declared.gates if session.gates_apply else ()
        self._name, self._agent = self._run_context.agents.for_phase(self._phase, self._role)
        self._at_gates = PhaseGates(self._handle, job, self._gates)
        self._end = AttemptEnd(self._handle, job, self._base, self._gates)
        #: What was closed after the last turn, and after how many in a row.
        self._closed: tuple[Judgement, ...] | None = None
        self._repeats = 0

    def run(self) -> JobResult:
        """Go on until the attempt has ended, or nothing but a person can end it."""
        try:
            return self._run()
        except Refused:
            # Of what was looked at a moment ago: somebody may have begun or ended the attempt in between.
            session, target = self._handle.state, self._job.claim
            is_as_before = session.version == self._job.version if target is None else target.is_live(session)
            if is_as_before:
                raise
            return JobResult(JobOutcome.ELSEWHERE)

    def _run(self) -> JobResult:
        session = self._handle.state
        state = session.phases[self._phase]
        if state.status.is_settled:
            return JobResult(JobOutcome.ELSEWHERE)
        if state.status is not Status.IN_PROGRESS:
            agent_id = self._begin(state)
            if self._has_tasks():
                return JobResult(JobOutcome.BEGUN)
            if not self._is_only_voted_on():
                return self._turns(agent_id, what_failed(state))
        else:
            self._job.claim = JobClaim(session.token(self._phase))
            if state.report is None and not self._tasks_are_done() and not self._is_only_voted_on():
                return self._turns(None, self._why_again(state))
        # An agent has done its part, in a run that did not get to the end; or there is no part to be done.
        return self._judged() or self._turns(None, "")

    def _begin(self, state: PhaseState) -> str | None:
        """The id of the agent that the attempt begins with; none where there are tasks, or but a vote."""
        works = not (self._has_tasks() or self._is_only_voted_on())
        agent_id = self._run_context.next_agent_id(self._name) if works else None
        role = self._role or self._name
        if state.status is Status.FAILED:
            begun = self._handle.redo(self._phase, agent=role, reason=state.error or "", launch=agent_id)
        else:
            is_alone = self._run_context.busy == 1
            begun = self._handle.begin(self._phase, agent=role, launch=agent_id, is_next=is_alone)
        self._job.claim = JobClaim(begun.token)
        return agent_id

    def _is_only_voted_on(self) -> bool:
        """Whether the phase is nothing but a vote: nobody's work, and gates at which approvers agree."""
        return not self._role and bool(self._gates) and all(gate.needs_quorum for gate in self._gates)

    def _has_tasks(self) -> bool:
        with self._handle.reading() as session:
            return self._phase == task_phase(session) and not session.tasks.is_completed

    def _tasks_are_done(self) -> bool:
        with self._handle.reading() as session:
            return self._phase == task_phase(session) and session.tasks.is_completed

    def _why_again(self, state: PhaseState) -> str:
        """Why a person began the attempt again, which is what its agent has to know."""
        if state.attempt < 2:
            return ""
        again = (event for commit in self._handle.log() for event in commit.events if isinstance(event, PhaseRedone))
        reasons = [event.reason for event in again if event.phase == self._phase and event.attempt == state.attempt]
        return reasons[-1] if reasons else ""

    # Turns

    def _turns(self, agent_id: str | None, failed: str) -> JobResult:
        while True:
            ended = self._turn(agent_id, failed) or self._judged()
            if ended is not None:
                return ended
            agent_id, failed = None, ""

    def _turn(self, agent_id: str | None, failed: str) -> JobResult | None:
        """One turn; None if the agent says that it is done and the attempt goes on."""
        if agent_id is None:
            agent_id = self._run_context.next_agent_id(self._name)
            self._handle.record_agent_started(self._phase, self._role or self._name, agent_id)
        session = self._handle.state
        number = self._turns_so_far(session)
        self._tell_turn(session, number)
        came = delegate(
            self._handle,
            self._job,
            name=self._name,
            agent=self._agent,
            agent_id=agent_id,
            prompt=self._prompt(session, number, failed),
            cwd=self._base,
            minutes=self._minutes or self._run_context.agents.settings_of(self._name).timeout_minutes,
        )
        if not self._is_live():
            return JobResult(JobOutcome.ELSEWHERE)
        if isinstance(came.end, Failed):
            return self._end.fail(came, came.end, agent_id)
        report = self._end.inside(came.report)
        if not self._gates:
            return self._end.finish(self._summary(), report, agent_id)
        self._handle.record_agent_ended(agent_id, succeeded=True, report=report, phase=self._phase)
        return None

    def _prompt(self, session: Session, number: int, failed: str) -> str:
        handover, judged = self._handle.handover(self._phase), self._at_gates.judge()
        return phase_prompt(
            session, handover, judged, turn=number, failed=failed, tests=self._run_context.options.tests
        )

    def _tell_turn(self, session: Session, number: int) -> None:
        now, attempt = self._run_context.clock(), session.phases[self._phase].attempt
        self._run_context.tell(
            TurnStarted(at=now, phase=self._phase, attempt=attempt, turn=number, agent=self._name, role=self._role)
        )
        if self._run_context.agents.settings_of(self._name).adapter == "manual":
            way_out = f"detent finish {self._phase} -m SUMMARY"
            text = f"{self._title} is done by hand"
            self._run_context.tell(PersonNeeded(at=now, need=Need.WORK, phase=self._phase, text=text, way_out=way_out))

    def _turns_so_far(self, session: Session) -> int:
        """Turns that runners have given in this attempt, of whichever run."""
        return sum(is_turn(one.agent_id) for one in session.phases[self._phase].delegations)

    # Gates

    def _judged(self) -> JobResult | None:
        """How the attempt ends after its gates; None if another turn follows."""
        alone = 0
        for again in range(STALE_RUNS):
            version, is_alone = self._handle.state.version, self._run_context.busy <= 1
            judged, stopped = self._at_gates.run()
            if stopped is not None:
                return stopped
            if not is_only_stale(judged):
                if not self._is_open(judged):
                    return self._closed_by(judged, version)
                if (ended := self._end.finish(self._summary())) is not None:
                    return ended
            # Those who work beside it change files too: the same evidence is gathered again, and no agent is to blame.
            alone = alone + 1 if is_alone and self._run_context.busy <= 1 else 0
            if alone > 1:
                break
            self._job.wait(min(0.05 * 2**again, 2.0))
        return self._never_fresh(judged, by_itself=alone > 1)

    def _is_open(self, judged: tuple[Judgement, ...]) -> bool:
        return all(one.verdict is Verdict.PASS for one in judged)

    def _closed_by(self, judged: tuple[Judgement, ...], version: int) -> JobResult | None:
        session = self._handle.state
        if not self._is_live():
            return JobResult(JobOutcome.ELSEWHERE)
        if any(one.phase == self._phase for one in session.escalations):
            return JobResult(JobOutcome.ESCALATED)
        closed = tuple(one for one in judged if one.verdict is not Verdict.PASS)
        self._repeats, self._closed = (self._repeats + 1 if closed == self._closed else 1), closed
        left = self._run_context.options.turns - self._turns_so_far(session)
        came = after_gates(
            self._gates, judged, turns_left=left, repeats=self._repeats, sees_tests=self._run_context.sees_tests
        )
        match came:
            case Next.TURN | Next.FINISH:
                return None
            case Next.REJECTED if not self._is_only_voted_on():
                return self._end.reject(judged)
            case Next.HOLD | Next.REJECTED:
                # A vote that is nothing but a vote can only be changed by those who cast it.
                return JobResult(JobOutcome.HELD, version=version)
            case Next.GIVE_UP:
                told = "; ".join(f"{one.gate} is {one.verdict}: {one.reason}" for one in closed)
                self._handle.escalate("gates_closed", self._phase, f"the agent does not get its gates open: {told}")
                return JobResult(JobOutcome.ESCALATED)

    def _never_fresh(self, judged: tuple[Judgement, ...], *, by_itself: bool) -> JobResult:
        """What passed is never about the files as they are: either its own command changes them, or somebody does."""
        stale = "; ".join(f"{one.gate}: {one.reason}" for one in judged if one.verdict is Verdict.STALE)
        why = "running it does that itself" if by_itself else "others go on changing it"
        detail = f"{stale or 'a gate closes again each time'}; {why}: name the gate's inputs, or ignore the file in git"
        self._handle.escalate("gates_stale", self._phase, detail)
        return JobResult(JobOutcome.ESCALATED)

    def _is_live(self) -> bool:
        target = self._job.claim
        return target is not None and target.is_live(self._handle.state)

    def _summary(self) -> str:
        """What is said where no agent said anything."""
        if not self._tasks_are_done():
            return f"{self._title} done"
        with self._handle.reading() as session:
            return f"all {session.tasks.leaf_count} tasks are done"


def is_turn(agent_id: str) -> bool:
    """Whether the id is of an agent that a run gave a turn of a phase, and not of one that did a task."""
    return agent_id.startswith("run-") and agent_id.count("/") == 2


def what_failed(state: PhaseState) -> str:
    """What an attempt ended with, and the evidence of the gates that had failed in it."""
    failed = [
        f"{name}: {at_gate.receipt.error or 'failed'}\n{at_gate.receipt.tail}"
        for name, at_gate in state.gates.items()
        if at_gate.receipt is not None and at_gate.receipt.result is Result.FAILED
    ]
    return "\n\n".join([state.error or "", *failed]).strip()
