"""One attempt of a phase, from wherever it stands: begin, turns of an agent, gates, finish."""

from typing import TYPE_CHECKING

from detent.core.agent_event import Failed
from detent.core.events import PhaseRedone
from detent.core.gate.evidence import Judgement, Result, Verdict
from detent.core.phase_state import PhaseState
from detent.core.run_event import Need, PersonNeeded, TurnStarted
from detent.core.session import Session
from detent.core.status import Status
from detent.errors import Refused
from detent.run.attempt_end import AttemptEnd
from detent.run.course import Next, after_gates, is_only_stale, task_phase
from detent.run.delegate import delegate
from detent.run.ended import Came, Ended
from detent.run.phase_gates import PhaseGates
from detent.run.work import Target, Work
from detent.views.prompt import phase_prompt

if TYPE_CHECKING:
    from detent.engine.handle import SessionHandle
    from detent.engine.project import Project

#: So often are gates run again because files changed meanwhile that they are about.
STALE_RUNS = 8


class PhaseRun:
    def __init__(self, project: "Project", work: Work) -> None:
        self._work, self._desk, self._phase = work, work.desk, work.phase
        self._handle: SessionHandle = project.session(work.desk.session)
        self._base = project.place.base
        session = self._handle.state
        declared = session.workflow.by_key[self._phase]
        self._title, self._role, self._minutes = declared.title or self._phase, declared.agent, declared.timeout_minutes
        self._gates = declared.gates if session.gates_apply else ()
        self._name, self._agent = self._desk.agents.for_phase(self._phase, self._role)
        self._at_gates = PhaseGates(self._handle, work, self._gates)
        self._end = AttemptEnd(self._handle, work, self._base, self._gates)
        #: What was closed after the last turn, and after how many in a row.
        self._closed: tuple[Judgement, ...] | None = None
        self._repeats = 0

    def run(self) -> Ended:
        """Go on until the attempt has ended, or nothing but a person can end it."""
        try:
            return self._run()
        except Refused:
            # Of what was looked at a moment ago: somebody may have begun or ended the attempt in between.
            session, target = self._handle.state, self._work.target
            is_as_before = session.version == self._work.version if target is None else target.is_live(session)
            if is_as_before:
                raise
            return Ended(Came.ELSEWHERE)

    def _run(self) -> Ended:
        session = self._handle.state
        state = session.phases[self._phase]
        if state.status.is_settled:
            return Ended(Came.ELSEWHERE)
        if state.status is not Status.IN_PROGRESS:
            agent_id = self._begin(state)
            if self._has_tasks():
                return Ended(Came.BEGUN)
            if not self._is_only_voted_on():
                return self._turns(agent_id, what_failed(state))
        else:
            self._work.target = Target(session.token(self._phase))
            if state.report is None and not self._tasks_are_done() and not self._is_only_voted_on():
                return self._turns(None, self._why_again(state))
        # An agent has done its part, in a run that did not get to the end; or there is no part to be done.
        return self._judged() or self._turns(None, "")

    def _begin(self, state: PhaseState) -> str | None:
        """The id of the agent that the attempt begins with; none where there are tasks, or but a vote."""
        works = not (self._has_tasks() or self._is_only_voted_on())
        agent_id = self._desk.next_agent_id(self._name) if works else None
        role = self._role or self._name
        if state.status is Status.FAILED:
            begun = self._handle.redo(self._phase, agent=role, reason=state.error or "", launch=agent_id)
        else:
            is_alone = self._desk.busy == 1
            begun = self._handle.begin(self._phase, agent=role, launch=agent_id, is_next=is_alone)
        self._work.target = Target(begun.token)
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

    def _turns(self, agent_id: str | None, failed: str) -> Ended:
        while True:
            ended = self._turn(agent_id, failed) or self._judged()
            if ended is not None:
                return ended
            agent_id, failed = None, ""

    def _turn(self, agent_id: str | None, failed: str) -> Ended | None:
        """One turn; None if the agent says that it is done and the attempt goes on."""
        if agent_id is None:
            agent_id = self._desk.next_agent_id(self._name)
            self._handle.launched(self._phase, self._role or self._name, agent_id)
        session = self._handle.state
        number = self._turns_so_far(session)
        self._tell_turn(session, number)
        came = delegate(
            self._handle,
            self._work,
            name=self._name,
            agent=self._agent,
            agent_id=agent_id,
            prompt=self._prompt(session, number, failed),
            cwd=self._base,
            minutes=self._minutes or self._desk.agents.settings_of(self._name).timeout_minutes,
        )
        if not self._is_live():
            return Ended(Came.ELSEWHERE)
        if isinstance(came.end, Failed):
            return self._end.fail(came, came.end, agent_id)
        report = self._end.inside(came.report)
        if not self._gates:
            return self._end.finish(self._summary(), report, agent_id)
        self._handle.landed(agent_id, succeeded=True, report=report, phase=self._phase)
        return None

    def _prompt(self, session: Session, number: int, failed: str) -> str:
        handover, judged = self._handle.handover(self._phase), self._at_gates.judge()
        return phase_prompt(session, handover, judged, turn=number, failed=failed, tests=self._desk.options.tests)

    def _tell_turn(self, session: Session, number: int) -> None:
        now, attempt = self._desk.clock(), session.phases[self._phase].attempt
        self._desk.tell(
            TurnStarted(at=now, phase=self._phase, attempt=attempt, turn=number, agent=self._name, role=self._role)
        )
        if self._desk.agents.settings_of(self._name).adapter == "manual":
            way_out = f"detent finish {self._phase} -m SUMMARY"
            text = f"{self._title} is done by hand"
            self._desk.tell(PersonNeeded(at=now, need=Need.WORK, phase=self._phase, text=text, way_out=way_out))

    def _turns_so_far(self, session: Session) -> int:
        """Turns that runners have given in this attempt, of whichever run."""
        return sum(is_turn(one.agent_id) for one in session.phases[self._phase].delegations)

    # Gates

    def _judged(self) -> Ended | None:
        """How the attempt ends after its gates; None if another turn follows."""
        alone = 0
        for again in range(STALE_RUNS):
            version, is_alone = self._handle.state.version, self._desk.busy <= 1
            judged, stopped = self._at_gates.run()
            if stopped is not None:
                return stopped
            if not is_only_stale(judged):
                if not self._is_open(judged):
                    return self._closed_by(judged, version)
                if (ended := self._end.finish(self._summary())) is not None:
                    return ended
            # Those who work beside it change files too: the same evidence is gathered again, and no agent is to blame.
            alone = alone + 1 if is_alone and self._desk.busy <= 1 else 0
            if alone > 1:
                break
            self._work.wait(min(0.05 * 2**again, 2.0))
        return self._never_fresh(judged, by_itself=alone > 1)

    def _is_open(self, judged: tuple[Judgement, ...]) -> bool:
        return all(one.verdict is Verdict.PASS for one in judged)

    def _closed_by(self, judged: tuple[Judgement, ...], version: int) -> Ended | None:
        session = self._handle.state
        if not self._is_live():
            return Ended(Came.ELSEWHERE)
        if any(one.phase == self._phase for one in session.escalations):
            return Ended(Came.ESCALATED)
        closed = tuple(one for one in judged if one.verdict is not Verdict.PASS)
        self._repeats, self._closed = (self._repeats + 1 if closed == self._closed else 1), closed
        left = self._desk.options.turns - self._turns_so_far(session)
        came = after_gates(
            self._gates, judged, turns_left=left, repeats=self._repeats, sees_tests=self._desk.sees_tests
        )
        match came:
            case Next.TURN | Next.FINISH:
                return None
            case Next.REJECTED if not self._is_only_voted_on():
                return self._end.reject(judged)
            case Next.HOLD | Next.REJECTED:
                # A vote that is nothing but a vote can only be changed by those who cast it.
                return Ended(Came.HELD, version=version)
            case Next.GIVE_UP:
                told = "; ".join(f"{one.gate} is {one.verdict}: {one.reason}" for one in closed)
                self._handle.escalate("gates_closed", self._phase, f"the agent does not get its gates open: {told}")
                return Ended(Came.ESCALATED)

    def _never_fresh(self, judged: tuple[Judgement, ...], *, by_itself: bool) -> Ended:
        """What passed is never about the files as they are: either its own command changes them, or somebody does."""
        stale = "; ".join(f"{one.gate}: {one.reason}" for one in judged if one.verdict is Verdict.STALE)
        why = "running it does that itself" if by_itself else "others go on changing it"
        detail = f"{stale or 'a gate closes again each time'}; {why}: name the gate's inputs, or ignore the file in git"
        self._handle.escalate("gates_stale", self._phase, detail)
        return Ended(Came.ESCALATED)

    def _is_live(self) -> bool:
        target = self._work.target
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
