"""One attempt of a phase, from wherever it stands: begin, turns of an agent, gates, finish."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from detent.core.agent_event import Failed, Failure
from detent.core.budget import budget_escalation
from detent.core.commands import Fail, Finish
from detent.core.events import PhaseRedone
from detent.core.evidence import Judgement, Result, Verdict
from detent.core.gate import Artifacts, Consensus
from detent.core.judge import artifact_paths
from detent.core.limits import MAX_ERROR, cut
from detent.core.phase_state import PhaseState, Report, Tokens
from detent.core.run_event import Need, PersonNeeded, PhaseEnded, TurnStarted
from detent.core.session import Session
from detent.core.status import Status
from detent.core.token import Token
from detent.errors import GateClosed, Refused
from detent.run.agent import Turn
from detent.run.course import Next, after_gates, is_only_stale, task_phase
from detent.run.desk import AGENT_MARK, Delegated, Target, Work, delegate
from detent.run.ended import Came, Ended
from detent.run.phase_gates import PhaseGates
from detent.views.prompt import phase_prompt

if TYPE_CHECKING:
    from detent.engine.handle import SessionHandle
    from detent.engine.project import Project


#: So often are gates run again because files changed meanwhile that they are about.
STALE_RUNS = 8


class PhaseRun:
    def __init__(self, project: "Project", work: Work) -> None:
        self._project, self._work, self._desk = project, work, work.desk
        self._handle: SessionHandle = project.session(work.desk.session)
        self._phase = work.phase

    def run(self) -> Ended:
        """Go on until the attempt has ended, or nothing but a person can end it."""
        try:
            return self._run()
        except Refused:
            # Of what was looked at a moment ago: somebody may have ended the attempt in between.
            target = self._work.target
            if target is None or target.is_live(self._handle.state):
                raise
            return Ended(Came.ELSEWHERE)

    def _run(self) -> Ended:
        session = self._handle.state
        state, declared = session.phases[self._phase], session.workflow.by_key[self._phase]
        name, self._agent = self._desk.agents.for_phase(self._phase, declared.agent)
        self._name, self._role, self._gates = name, declared.agent, declared.gates if session.gates_apply else ()
        self._at_gates = PhaseGates(self._handle, self._work, self._gates)
        if state.status is Status.COMPLETED or state.status is Status.SKIPPED:
            return Ended(Came.ELSEWHERE)
        failed = ""
        if state.status is Status.IN_PROGRESS:
            failed = self._why_again(state)
            self._aim(session.token(self._phase))
            agent_id = None
        else:
            failed = what_failed(state)
            agent_id = self._begin(state)
            if self._has_tasks():
                return Ended(Came.BEGUN)
        has_report = state.status is Status.IN_PROGRESS and (state.report is not None or self._tasks_are_done())
        if has_report or self._is_only_voted_on():
            # An agent has done its part already, in a run that did not get to the end; or there is none to be done.
            return self._judged() or self._turns(None, failed)
        return self._turns(agent_id, failed)

    def _aim(self, token: Token) -> None:
        self._token = token
        self._work.target = Target(token)

    def _is_only_voted_on(self) -> bool:
        """Whether the phase is nothing but a vote: nobody's work, and gates at which approvers agree."""
        return not self._role and bool(self._gates) and all(isinstance(gate, Consensus) for gate in self._gates)

    def _why_again(self, state: PhaseState) -> str:
        """Why a person began the attempt again, which is what its agent has to know."""
        if state.attempt < 2 or state.report is not None:
            return ""
        again = (event for commit in self._handle.log() for event in commit.events if isinstance(event, PhaseRedone))
        reasons = [event.reason for event in again if event.phase == self._phase and event.attempt == state.attempt]
        return reasons[-1] if reasons else ""

    def _begin(self, state: PhaseState) -> str | None:
        """The id of the agent that the attempt begins with; none where its tasks are what is to be done."""
        works = not (self._has_tasks() or self._is_only_voted_on())
        agent_id = self._desk.next_agent_id(self._name) if works else None
        if state.status is Status.FAILED:
            begun = self._handle.redo(
                self._phase, agent=self._role or self._name, reason=state.error or "", launch=agent_id
            )
        else:
            begun = self._handle.begin(self._phase, agent=self._role or self._name, launch=agent_id)
        self._aim(begun.token)
        return agent_id

    def _has_tasks(self) -> bool:
        with self._handle.reading() as session:
            return self._phase == task_phase(session) and not session.tasks.is_completed

    def _tasks_are_done(self) -> bool:
        with self._handle.reading() as session:
            return self._phase == task_phase(session) and session.tasks.is_completed

    # Turns

    def _turns(self, agent_id: str | None, failed: str) -> Ended:
        while True:
            ended = self._turn(agent_id, failed) or self._judged()
            if ended is not None:
                return ended
            agent_id, failed = None, ""

    def _judged(self) -> Ended | None:
        """How the attempt ends after its gates; None if another turn follows."""
        for again in range(STALE_RUNS):
            judged, stopped = self._at_gates.run()
            if stopped is not None:
                return stopped
            if not is_only_stale(judged):
                break
            if again and self._desk.busy <= 1:
                return self._stale_by_itself(judged)
            # Those who work beside it change files too: the same evidence is gathered again, and no agent is to blame.
            self._work.wait(min(0.05 * 2**again, 2.0))
        closed = tuple(one for one in judged if one.verdict is not Verdict.PASS)
        self._repeats, self._closed = (self._repeats + 1 if closed == self._closed else 1), closed
        return self._next(judged, self._repeats)

    def _stale_by_itself(self, judged: tuple[Judgement, ...]) -> Ended:
        """Nobody else works, and what was run is stale at once: its own command changes what it is about."""
        stale = "; ".join(f"{one.gate}: {one.reason}" for one in judged if one.verdict is Verdict.STALE)
        self._handle.escalate(
            "gates_stale",
            self._phase,
            f"{stale}; running it does that itself: ignore the file in .gitignore, or name the gate's inputs",
        )
        return Ended(Came.ESCALATED)

    def _next(self, judged: tuple[Judgement, ...], repeats: int) -> Ended | None:
        session = self._handle.state
        if not self._is_live(session):
            return Ended(Came.ELSEWHERE)
        if any(one.phase == self._phase for one in session.escalations):
            return Ended(Came.ESCALATED)
        left = self._desk.options.turns - self._turns_so_far(session)
        sees_tests = self._desk.sees_tests
        match after_gates(self._gates, judged, turns_left=left, repeats=repeats, sees_tests=sees_tests):
            case Next.FINISH:
                return self._finish()
            case Next.HOLD:
                return Ended(Came.HELD)
            case Next.REJECTED:
                return self._rejected(judged)
            case Next.GIVE_UP:
                closed = "; ".join(f"{one.gate} is {one.verdict}: {one.reason}" for one in judged if one.way_out)
                self._handle.escalate("gates_closed", self._phase, f"the agent does not get its gates open: {closed}")
                return Ended(Came.ESCALATED)
            case Next.TURN:
                return None

    def _turn(self, agent_id: str | None, failed: str) -> Ended | None:
        """One turn; None if the agent says that it is done and the attempt goes on."""
        if agent_id is None:
            agent_id = self._desk.next_agent_id(self._name)
            self._handle.launched(self._phase, self._role or self._name, agent_id)
        session = self._handle.state
        number = self._turns_so_far(session)
        self._tell_turn(session, number)
        with self._desk.scratch(agent_id) as scratch:
            turn = self._make_turn(session, agent_id, scratch, number, failed)
            came = delegate(self._work, turn, self._name, self._agent, self._over_budget)
        if not self._is_live(self._handle.state):
            return Ended(Came.ELSEWHERE)
        if isinstance(came.end, Failed):
            return self._fail(came, came.end, agent_id)
        report, outside = self._inside(came.report)
        self._outside = outside
        if not self._gates:
            return self._finish(report, agent_id)
        self._handle.landed(agent_id, succeeded=True, report=report)
        return None

    def _make_turn(self, session: Session, agent_id: str, scratch: str, number: int, failed: str) -> Turn:
        minutes = session.workflow.by_key[self._phase].timeout_minutes
        settings = self._desk.agents.settings_of(self._name)
        prompt = phase_prompt(
            session,
            self._handle.handover(self._phase),
            self._at_gates.judge(),
            turn=number,
            failed=failed,
            tests=self._desk.options.tests,
        )
        env = {
            **self._desk.marks(),
            AGENT_MARK: agent_id,
            "DETENT_PHASE": self._phase,
            "DETENT_TOKEN": str(self._token),
            "DETENT_ACTOR": self._name,
        }
        return Turn(
            agent_id=agent_id,
            session=self._desk.session,
            phase=self._phase,
            token=str(self._token),
            prompt=prompt,
            cwd=self._project.place.base,
            scratch=scratch,
            env=env,
            timeout_s=(minutes or settings.timeout_minutes) * 60.0,
        )

    def _tell_turn(self, session: Session, number: int) -> None:
        now = self._desk.clock()
        self._desk.tell(
            TurnStarted(
                at=now,
                phase=self._phase,
                attempt=session.phases[self._phase].attempt,
                turn=number,
                agent=self._name,
                role=self._role,
            )
        )
        if self._desk.agents.settings_of(self._name).adapter == "manual":
            title = session.workflow.by_key[self._phase].title or self._phase
            way_out = f"detent finish {self._phase} -m SUMMARY"
            text = f"{title} is done by hand"
            self._desk.tell(PersonNeeded(at=now, need=Need.WORK, phase=self._phase, text=text, way_out=way_out))

    def _turns_so_far(self, session: Session) -> int:
        """Turns that runners have given in this attempt, of whichever run."""
        return sum(is_turn(one.agent_id) for one in session.phases[self._phase].delegations)

    def _over_budget(self, used: Tokens) -> str | None:
        session = self._handle.state
        known = session.phases[self._phase].report
        more = used + (known.tokens if known is not None else Tokens())
        raised = budget_escalation(session, self._phase, self._desk.clock(), more)
        return raised[0].detail if raised else None

    # The end of the attempt

    def _finish(self, report: Report | None = None, agent_id: str | None = None) -> Ended:
        session = self._handle.state
        whole = report or session.phases[self._phase].report or Report()
        title = session.workflow.by_key[self._phase].title or self._phase
        summary = whole.summary or self._tasks_summary() or f"{title} done"
        made = self._gate_artifacts(session)
        last = report or Report()
        command = Finish(
            token=self._token,
            summary=summary,
            artifacts=tuple(dict.fromkeys((*last.artifacts, *made))),
            deliverables=last.deliverables,
            context=last.context,
            tokens=last.tokens,
            tools=last.tools,
            agent_id=agent_id,
        )
        try:
            outcome = self._handle.carry_out(command)
        except GateClosed:
            # Something changed between the verdict and the end: the verdicts are asked for again.
            return self._judged() or self._turns(None, "")
        self._tell_ended(outcome.session, "completed", summary, outcome.warnings)
        return Ended(Came.FINISHED)

    def _fail(self, came: Delegated, end: Failed, agent_id: str) -> Ended:
        reason = cut(self._handle.redacted(end.reason).strip() or "no reason was given", MAX_ERROR)
        command = Fail(
            token=self._token, error=reason, tokens=came.report.tokens, tools=came.report.tools, agent_id=agent_id
        )
        outcome = self._handle.carry_out(command)
        self._tell_ended(outcome.session, "failed", reason, outcome.warnings)
        stopped = end.failure is Failure.STOPPED
        return Ended(Came.STOPPED if stopped else Came.FAILED, end.failure, reason)

    def _rejected(self, judged: tuple[Judgement, ...]) -> Ended:
        """A new attempt mends what somebody said no to; where there is nothing but the vote, it can only be changed."""
        if self._is_only_voted_on():
            return Ended(Came.HELD)
        reason = "; ".join(f"{one.gate}: {one.reason}" for one in judged if one.verdict is Verdict.FAIL)
        outcome = self._handle.carry_out(Fail(token=self._token, error=cut(reason, MAX_ERROR)))
        self._tell_ended(outcome.session, "failed", reason, outcome.warnings)
        return Ended(Came.FAILED, Failure.ERROR, reason)

    def _tell_ended(self, session: Session, status: str, said: str, warnings: Iterable[str]) -> None:
        now, attempt = self._desk.clock(), session.phases[self._phase].attempt
        more = tuple(f"{path} is outside the project or not there, and was left out" for path in self._outside)
        self._desk.tell(
            PhaseEnded(
                at=now,
                phase=self._phase,
                attempt=attempt,
                status=status,
                said=said,
                warnings=(*warnings, *more),
            )
        )

    _outside: tuple[str, ...] = ()
    _closed: tuple[Judgement, ...] | None = None
    _repeats = 0

    def _inside(self, report: Report) -> tuple[Report, tuple[str, ...]]:
        """The report with those of its artifacts that are in the project, and the others."""
        base = os.path.realpath(self._project.place.base)
        kept: list[str] = []
        left_out: list[str] = []
        for path in report.artifacts:
            full = os.path.realpath(os.path.join(base, path))
            is_inside = full.startswith(base + os.sep) and os.path.exists(full)
            (kept if is_inside else left_out).append(os.path.relpath(full, base) if is_inside else path)
        return msgspec.structs.replace(report, artifacts=tuple(kept)), tuple(left_out)

    def _gate_artifacts(self, session: Session) -> list[str]:
        """What the phase was asked to leave behind is an artifact of it, whether the agent says so or not."""
        paths = [
            path for gate in self._gates if isinstance(gate, Artifacts) for path in artifact_paths(gate, session.folder)
        ]
        return [path for path in paths if os.path.isfile(os.path.join(self._project.place.base, path))]

    def _tasks_summary(self) -> str:
        if not self._tasks_are_done():
            return ""
        with self._handle.reading() as session:
            return f"all {session.tasks.leaf_count} tasks are done"

    def _is_live(self, session: Session) -> bool:
        return Target(self._token).is_live(session)


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
