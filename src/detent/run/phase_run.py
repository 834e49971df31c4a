"""One attempt of a phase: begins it or resumes it, gives turns to an agent, runs the gates, records the end."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from detent.core.gate import Gate, gate_name
from detent.core.gate.closed import closed_gates
from detent.core.gate.evidence import Judgement, RanBy, Result, Verdict
from detent.core.gate.kind import required_paths
from detent.core.limits import MAX_ERROR, cut
from detent.core.run.agent_event import Failed, Failure
from detent.core.run.run_event import GateJudged, GateStarted, Need, PersonNeeded, PhaseEnded, TurnStarted
from detent.core.session.commands import Fail, Finish
from detent.core.session.events import PhaseRedone
from detent.core.session.open_decision import task_phase
from detent.core.session.phase_state import PhaseState, Report
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.engine.agents import environment as variables
from detent.errors import GateClosed, Refused
from detent.run.context import RUN_LIMIT
from detent.run.job import FilesConflict, Job, JobClaim, JobOutcome, JobResult
from detent.run.policy import Next, after_gates, is_only_stale
from detent.run.prompt import prompt_of
from detent.run.turn import Delegated, delegate, is_turn

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.results import Outcome
    from detent.engine.session import SessionHandle

#: Maximum number of gate runs that are repeated because files changed during the run.
STALE_RUNS = 8
_NOTHING = Report()


class PhaseRun:
    def __init__(self, project: "Project", job: Job) -> None:
        self._job, self._context, self._phase = job, job.context, job.phase
        self._handle: SessionHandle = project.session(job.context.session)
        self._place, self._base = project.place, project.place.base
        session = self._handle.state
        declared = session.workflow.by_key[self._phase]
        self._title, self._role, self._minutes = declared.title or self._phase, declared.agent, declared.timeout_minutes
        self._name, self._agent = self._context.agents.for_phase(self._phase, self._role)
        #: The gates that were closed after the last turn, and after how many turns in a row.
        self._closed: tuple[Judgement, ...] | None = None
        self._repeats = 0
        #: Reported artifacts that are not in the project.
        self._outside: tuple[str, ...] = ()

    @property
    def _gates(self) -> tuple[Gate, ...]:
        """The gates of the phase. A person may set the command of one while the phase is in progress."""
        session = self._handle.state
        return session.workflow.by_key[self._phase].gates if session.gates_apply else ()

    def run(self) -> JobResult:
        """Work until the attempt ends, or only a person can end it."""
        try:
            return self._run()
        except FilesConflict as conflict:
            return self._fail_conflict(conflict)
        except Refused:
            # Another process may have begun or ended the attempt since the session was read.
            session, claim = self._handle.state, self._job.claim
            is_unchanged = session.version == self._job.version if claim is None else claim.is_live(session)
            if is_unchanged:
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
        elif not self._job.may_resume(session):
            return JobResult(JobOutcome.ELSEWHERE)
        else:
            self._job.claim = JobClaim(session.token(self._phase))
            if state.report is None and not self._tasks_are_done() and not self._is_only_voted_on():
                return self._turns(None, self._redo_reason(state))
        # The agent finished its turn in an earlier run, or the phase needs no agent.
        return self._run_gates() or self._turns(None, "")

    def _begin(self, state: PhaseState) -> str | None:
        """Begin the attempt. Returns the id of its agent; None for a phase with tasks, or with a vote only."""
        has_agent = not (self._has_tasks() or self._is_only_voted_on())
        agent_id = self._context.next_agent_id(self._name) if has_agent else None
        role = self._role or self._name
        if state.status is Status.FAILED:
            begun = self._handle.redo(
                self._phase, agent=role, reason=state.error or "", launch=agent_id, failed=state.attempt
            )
        else:
            is_alone = self._context.busy == 1
            begun = self._handle.begin(self._phase, agent=role, launch=agent_id, is_next=is_alone)
        self._job.claim = JobClaim(begun.token)
        return agent_id

    def _is_only_voted_on(self) -> bool:
        """Whether the phase is only a vote: it has no role, and all its gates need a quorum."""
        return not self._role and bool(self._gates) and all(gate.needs_quorum for gate in self._gates)

    def _has_tasks(self) -> bool:
        session = self._handle.state
        return self._phase == task_phase(session) and not session.tasks.is_completed

    def _tasks_are_done(self) -> bool:
        session = self._handle.state
        return self._phase == task_phase(session) and session.tasks.is_completed

    def _redo_reason(self, state: PhaseState) -> str:
        """The reason that a person gave for this attempt, for the agent's prompt."""
        if state.attempt < 2:
            return ""
        redone = (event for commit in self._handle.log() for event in commit.events if isinstance(event, PhaseRedone))
        reasons = [event.reason for event in redone if event.phase == self._phase and event.attempt == state.attempt]
        return reasons[-1] if reasons else ""

    # Turns

    def _turns(self, agent_id: str | None, failed: str) -> JobResult:
        while True:
            result = self._turn(agent_id, failed) or self._run_gates()
            if result is not None:
                return result
            agent_id, failed = None, ""

    def _turn(self, agent_id: str | None, failed: str) -> JobResult | None:
        """Give the agent one turn; None if it finished and the gates decide."""
        if agent_id is None:
            agent_id = self._context.next_agent_id(self._name)
            self._handle.record_agent_started(self._phase, self._role or self._name, agent_id)
        session = self._handle.state
        number = turn_count(session, self._phase)
        self._tell_turn(session, number)
        delegated = delegate(
            self._handle,
            self._job,
            name=self._name,
            agent=self._agent,
            agent_id=agent_id,
            prompt=self._prompt(session, number, failed),
            place=self._place,
            minutes=self._minutes_of_turn(),
        )
        if not self._is_live():
            return JobResult(JobOutcome.ELSEWHERE)
        if delegated.never_answered and isinstance(delegated.end, Failed):
            self._handle.record_agent_ended(agent_id, succeeded=False, phase=self._phase)
            self._handle.escalate(f"agent_{delegated.end.failure}", self._phase, delegated.end.reason)
            return JobResult(JobOutcome.ESCALATED)
        if isinstance(delegated.end, Failed):
            return self._fail(delegated, delegated.end, agent_id)
        report = self._inside(delegated.report)
        if not self._gates:
            return self._finish(report, agent_id)
        self._handle.record_agent_ended(agent_id, succeeded=True, report=report, phase=self._phase)
        if self._job.files is not None or self._handle.is_seen_elsewhere:
            # Another machine may run the gates, after this one is gone or a person has decided; people look there too.
            note = f"after a turn of {self._name}"
            self._job.settled(lambda check: self._handle.checkpoints.take(note, phase=self._phase, then=check))
        return None

    def _minutes_of_turn(self) -> float:
        """The shorter of the limits of the phase and of the agent."""
        own = self._context.agents.settings_of(self._name).timeout_minutes
        return min(own, self._minutes or own)

    def _prompt(self, session: Session, number: int, failed: str) -> str:
        return prompt_of(self._handle, session, self._phase, turn=number, failed=failed)

    def _tell_turn(self, session: Session, number: int) -> None:
        attempt = session.phases[self._phase].attempt
        self._job.tell(TurnStarted, attempt=attempt, turn=number, agent=self._name, role=self._role)
        if self._context.agents.settings_of(self._name).adapter == "manual":
            way_out = f"detent finish {self._phase} -m SUMMARY"
            self._job.tell(PersonNeeded, need=Need.WORK, text=f"{self._title} is done by hand", way_out=way_out)

    # Gates

    def _run_gates(self) -> JobResult | None:
        """Run the gates and end the attempt; None if another turn follows."""
        alone = 0
        for run in range(STALE_RUNS):
            version, is_alone = self._handle.state.version, self._context.busy <= 1
            judged, stopped = self._run_each_gate()
            if stopped is not None:
                return stopped
            if not is_only_stale(judged):
                if closed_gates(judged):
                    return self._after_closed(judged, version)
                if (finished := self._finish()) is not None:
                    return finished
            # Parallel jobs change files too, so the gates run again without another turn.
            alone = alone + 1 if is_alone and self._context.busy <= 1 else 0
            if alone > 1:
                break
            self._job.wait(min(0.05 * 2**run, 2.0))
        return self._never_fresh(judged, by_itself=alone > 1)

    def _after_closed(self, judged: tuple[Judgement, ...], version: int) -> JobResult | None:
        session = self._handle.state
        if not self._is_live():
            return JobResult(JobOutcome.ELSEWHERE)
        if any(escalation.phase == self._phase for escalation in session.escalations):
            return JobResult(JobOutcome.ESCALATED)
        closed = closed_gates(judged)
        self._repeats, self._closed = (self._repeats + 1 if closed == self._closed else 1), closed
        left = self._context.options.turns - turn_count(session, self._phase)
        step = after_gates(
            self._gates, judged, turns_left=left, repeats=self._repeats, sees_tests=self._context.sees_tests
        )
        match step:
            case Next.FINISH:
                return None
            case Next.TURN:
                return self._escalate_limit()
            case Next.REJECTED if not self._is_only_voted_on():
                return self._reject(judged)
            case Next.HOLD | Next.REJECTED:
                # In a phase that is only a vote, only the voters can change the result.
                return JobResult(JobOutcome.HELD, version=version)
            case Next.GIVE_UP:
                reasons = "; ".join(f"{each.gate} is {each.verdict}: {each.reason}" for each in closed)
                self._handle.escalate("gates_closed", self._phase, f"the agent cannot open its gates: {reasons}")
                return JobResult(JobOutcome.ESCALATED)

    def _escalate_limit(self) -> JobResult | None:
        """Escalate if the run has given all its turns; None if another turn follows."""
        reached = self._context.turn_limit_reached()
        if reached is None:
            return None
        self._handle.escalate(RUN_LIMIT, self._phase, reached)
        return JobResult(JobOutcome.ESCALATED)

    def _never_fresh(self, judged: tuple[Judgement, ...], *, by_itself: bool) -> JobResult:
        """Escalate: files change during every run of the gates, by the gate's own command or by parallel work."""
        stale = "; ".join(f"{each.gate}: {each.reason}" for each in judged if each.verdict is Verdict.STALE)
        why = "the gate's own command changes it" if by_itself else "parallel work keeps changing it"
        detail = f"{stale or 'a gate closes again each time'}; {why}: name the gate's inputs, or ignore the file in git"
        self._handle.escalate("gates_stale", self._phase, detail)
        return JobResult(JobOutcome.ESCALATED)

    def _run_each_gate(self) -> tuple[tuple[Judgement, ...], JobResult | None]:
        """Run the gates that have a command and are not open by a run of it in this attempt.

        What an agent ran does not count. The merge runs last, when no other gate is closed.
        """
        gates = {gate_name(gate): gate for gate in self._gates}
        commands = {name: command for name, gate in gates.items() if (command := gate.runnable()) is not None}
        for name, gate in gates.items():
            closed = {judgement.gate for judgement in closed_gates(self._judge())}
            is_due = name in commands and (name in closed or not self._has_run(name))
            if not is_due or (gate.runs_last and not closed <= {name}):
                continue
            if self._job.is_stopping():
                return (), JobResult(JobOutcome.STOPPED)
            if (stopped := self._run_gate(name, commands[name])) is not None:
                return (), stopped
        judged = self._judge()
        self._tell_verdicts(judgement for judgement in closed_gates(judged) if judgement.gate not in commands)
        return judged, None

    def _has_run(self, gate: str) -> bool:
        """Whether the run itself made the last check, or a person opened the gate."""
        state = self._handle.state.phases[self._phase].gates.get(gate)
        if state is None or state.approved_by is not None:
            return state is not None
        return state.receipt is not None and state.receipt.by is RanBy.RUNNER

    def _run_gate(self, name: str, command: str) -> JobResult | None:
        self._job.tell(GateStarted, gate=name, command=command)
        self._job.is_at_gate = True
        try:
            env = {**self._context.marks, variables.GATE: str(self._job.token)}
            receipt = self._handle.gates.check(name, phase=self._phase, command=command, env=env, by=RanBy.RUNNER)
        finally:
            self._job.is_at_gate = False
        if self._job.is_stopping():
            # A check that was stopped proves nothing. The next run resumes the attempt with its gates.
            return JobResult(JobOutcome.STOPPED)
        if not self._is_live():
            return JobResult(JobOutcome.ELSEWHERE)
        self._handle.gates.record(name, phase=self._phase, receipt=receipt)
        self._tell_verdicts(judgement for judgement in self._judge() if judgement.gate == name)
        return None

    def _judge(self) -> tuple[Judgement, ...]:
        return self._handle.gates.judgements(self._phase)[self._phase]

    def _tell_verdicts(self, judgements: Iterable[Judgement]) -> None:
        for judgement in judgements:
            self._job.tell(GateJudged, gate=judgement.gate, verdict=judgement.verdict, reason=judgement.reason)

    # The end of the attempt

    def _finish(self, report: Report = _NOTHING, agent_id: str | None = None) -> JobResult | None:
        """Complete the attempt; None if a gate has closed again. `report` is the part that is not recorded yet."""
        session = self._handle.state
        known = session.phases[self._phase].report or _NOTHING
        command = Finish(
            token=self._job.token,
            # The journal already has the report of an earlier turn.
            summary=report.summary or (None if known.summary else self._summary()),
            artifacts=tuple(dict.fromkeys((*report.artifacts, *self._gate_artifacts(session)))),
            deliverables=report.deliverables,
            context=report.context,
            tokens=report.tokens,
            tools=report.tools,
            agent_id=agent_id,
            worker=report.worker,
        )
        try:
            outcome = self._job.settled(lambda check: self._handle.execute(command, then=check))
        except GateClosed:
            return None
        self._tell_end(outcome, "completed", outcome.session.phases[self._phase].summary or "")
        return JobResult(JobOutcome.FINISHED)

    def _fail(self, delegated: Delegated, end: Failed, agent_id: str) -> JobResult:
        """Fail the attempt because the agent's turn failed."""
        error, used = end.reason.strip() or "no reason was given", delegated.report
        command = Fail(
            token=self._job.token,
            error=error,
            tokens=used.tokens,
            tools=used.tools,
            agent_id=agent_id,
            worker=used.worker,
        )
        outcome = self._job.settled(lambda check: self._handle.execute(command, then=check))
        reason = outcome.session.phases[self._phase].error or ""
        self._tell_end(outcome, "failed", reason)
        stopped = end.failure is Failure.STOPPED
        return JobResult(JobOutcome.STOPPED if stopped else JobOutcome.FAILED, end.failure, reason)

    def _fail_conflict(self, conflict: FilesConflict) -> JobResult:
        """Fail the attempt; the next one begins with the files of the others, and knows why."""
        self._handle.without_checkpoints().execute(Fail(token=self._job.token, error=cut(conflict.message, MAX_ERROR)))
        session = self._handle.state
        self._job.tell(
            PhaseEnded, attempt=session.phases[self._phase].attempt, status="failed", said=conflict.message, warnings=()
        )
        return JobResult(JobOutcome.FAILED, Failure.ERROR, conflict.message)

    def _reject(self, judged: Iterable[Judgement]) -> JobResult:
        """Fail the attempt because an approver rejected it; a new attempt addresses the reason."""
        reason = "; ".join(f"{each.gate}: {each.reason}" for each in judged if each.verdict is Verdict.FAIL)
        command = Fail(token=self._job.token, error=cut(reason, MAX_ERROR))
        outcome = self._job.settled(lambda check: self._handle.execute(command, then=check))
        self._tell_end(outcome, "failed", reason)
        return JobResult(JobOutcome.FAILED, Failure.ERROR, reason)

    def _inside(self, report: Report) -> Report:
        """The report with the artifacts that are in the project; the end of the attempt warns of the others."""
        if not report.artifacts:
            return report
        inside: list[str] = []
        outside: list[str] = []
        base = os.path.realpath(self._base)
        for path in report.artifacts:
            full = os.path.realpath(os.path.join(base, path))
            is_inside = full.startswith(base + os.sep) and os.path.exists(full)
            (inside if is_inside else outside).append(os.path.relpath(full, base) if is_inside else path)
        self._outside = tuple(outside)
        return msgspec.structs.replace(report, artifacts=tuple(inside))

    def _gate_artifacts(self, session: Session) -> list[str]:
        """The files that the gates require; they are artifacts whether the agent reports them or not."""
        paths = [path for gate in self._gates for path in required_paths(gate, session.folder)]
        return [path for path in paths if os.path.isfile(os.path.join(self._base, path))]

    def _tell_end(self, outcome: "Outcome", status: str, text: str) -> None:
        left_out = (f"{path} is outside the project or does not exist, and was left out" for path in self._outside)
        attempt, warnings = outcome.session.phases[self._phase].attempt, (*outcome.warnings, *left_out)
        self._job.tell(PhaseEnded, attempt=attempt, status=status, said=text, warnings=warnings)

    def _summary(self) -> str:
        """The summary if the agent gave none."""
        if not self._tasks_are_done():
            return f"{self._title} done"
        return self._handle.state.tasks.done_text

    def _is_live(self) -> bool:
        return self._job.claim is not None and self._job.claim.is_live(self._handle.state)


def turn_count(session: Session, phase: str) -> int:
    """Number of turns in the attempt of the phase, in all runs."""
    return sum(is_turn(delegation.agent_id) for delegation in session.phases[phase].delegations)


def what_failed(state: PhaseState) -> str:
    """The error of an attempt, and the evidence of its failed gates."""
    failed = [
        f"{name}: {at_gate.receipt.error or 'failed'}\n{at_gate.receipt.tail}"
        for name, at_gate in state.gates.items()
        if at_gate.receipt is not None and at_gate.receipt.result is Result.FAILED
    ]
    return "\n\n".join([state.error or "", *failed]).strip()
