"""Runs, records and reports the gates of an attempt during a run."""

from typing import TYPE_CHECKING

from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.run.run_event import GateJudged, GateStarted
from detent.engine.agents import environment as variables
from detent.run.job import Job
from detent.run.result import JobOutcome, JobResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.engine.session import SessionHandle


class PhaseGates:
    def __init__(self, handle: "SessionHandle", job: Job, gates: "Sequence[Gate]") -> None:
        self._handle, self._job, self._run_context, self._phase = handle, job, job.run_context, job.phase
        self._gates = gates

    def run(self) -> tuple[tuple[Judgement, ...], JobResult | None]:
        """Run what can be run and is not open; the merge comes last, when nothing else is closed."""
        for gate in self._gates:
            command = gate.runnable(self._run_context.options.tests)
            if command is None or not self._is_due(gate):
                continue
            if self._job.is_stopping():
                return (), JobResult(JobOutcome.STOPPED)
            if (stopped := self._run_gate(gate, command)) is not None:
                return (), stopped
        judged = self.judge()
        runnable = {
            gate_name(gate) for gate in self._gates if gate.runnable(self._run_context.options.tests) is not None
        }
        for judgement in judged:
            if judgement.verdict is not Verdict.PASS and judgement.gate not in runnable:
                self._tell_verdict(judgement)
        return judged, None

    def _run_gate(self, gate: Gate, command: str) -> JobResult | None:
        name = gate_name(gate)
        self._run_context.tell(GateStarted(at=self._run_context.clock(), phase=self._phase, gate=name, command=command))
        assert self._job.claim is not None
        env = {**self._run_context.marks, variables.GATE: str(self._job.claim.token)}
        self._job.is_at_gate = True
        try:
            receipt = self._handle.gates.check(name, phase=self._phase, command=command, env=env)
        finally:
            self._job.is_at_gate = False
        if self._job.is_stopping():
            # What was cut short says nothing about the work; the attempt goes on with its gates in the next run.
            return JobResult(JobOutcome.STOPPED)
        if self._is_over():
            return JobResult(JobOutcome.ELSEWHERE)
        self._handle.gates.record(name, phase=self._phase, receipt=receipt)
        for judgement in self.judge():
            if judgement.gate == name:
                self._tell_verdict(judgement)
        return None

    def _is_due(self, gate: Gate) -> bool:
        name = gate_name(gate)
        closed = {judgement.gate for judgement in self.judge() if judgement.verdict is not Verdict.PASS}
        return name in closed and (not gate.runs_last or closed == {name})

    def judge(self) -> tuple[Judgement, ...]:
        return self._handle.gates.judgements(self._phase)[self._phase]

    def _tell_verdict(self, judgement: Judgement) -> None:
        now = self._run_context.clock()
        self._run_context.tell(
            GateJudged(
                at=now, phase=self._phase, gate=judgement.gate, verdict=judgement.verdict, reason=judgement.reason
            )
        )

    def _is_over(self) -> bool:
        target = self._job.claim
        return target is not None and not target.is_live(self._handle.state)
