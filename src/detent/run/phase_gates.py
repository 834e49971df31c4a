"""The gates of an attempt that is worked on in a run: run, recorded and told."""

from typing import TYPE_CHECKING

from detent.core.evidence import Judgement, Verdict
from detent.core.gate import Command, Constitution, Gate, Tests, gate_name
from detent.core.run_event import GateJudged, GateStarted
from detent.engine import agent_environment as variables
from detent.run.course import is_merge
from detent.run.ended import Came, Ended
from detent.run.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detent.engine.handle import SessionHandle


class PhaseGates:
    def __init__(self, handle: "SessionHandle", work: Work, gates: "Sequence[Gate]") -> None:
        self._handle, self._work, self._desk, self._phase = handle, work, work.desk, work.phase
        self._gates = gates

    def run(self) -> tuple[tuple[Judgement, ...], Ended | None]:
        """Run what can be run and is not open; the merge comes last, when nothing else is closed."""
        for gate in self._gates:
            command = self._command_of(gate)
            if command is None or not self._is_due(gate):
                continue
            if self._work.is_stopping():
                return (), Ended(Came.STOPPED)
            if (stopped := self._run_gate(gate, command)) is not None:
                return (), stopped
        judged = self.judge()
        for one in judged:
            if one.verdict is not Verdict.PASS and one.kind not in ("tests", "command"):
                self._tell_verdict(one)
        return judged, None

    def _run_gate(self, gate: Gate, command: str) -> Ended | None:
        name = gate_name(gate)
        self._desk.tell(GateStarted(at=self._desk.clock(), phase=self._phase, gate=name, command=command))
        given = command if isinstance(gate, Tests) else None
        assert self._work.target is not None
        env = {**self._desk.marks, variables.GATE: str(self._work.target.token)}
        self._work.is_at_gate = True
        try:
            receipt = self._handle.check_gate(name, phase=self._phase, command=given, env=env)
        finally:
            self._work.is_at_gate = False
        if self._work.is_stopping():
            # What was cut short says nothing about the work; the attempt goes on with its gates in the next run.
            return Ended(Came.STOPPED)
        if self._is_over():
            return Ended(Came.ELSEWHERE)
        self._handle.record_gate(name, phase=self._phase, receipt=receipt)
        for one in self.judge():
            if one.gate == name:
                self._tell_verdict(one)
        return None

    def _command_of(self, gate: Gate) -> str | None:
        """What is run for the gate, for showing it; None if nothing can be."""
        match gate:
            case Tests():
                return gate.command or self._desk.options.tests
            case Command():
                return gate.command
            case Constitution():
                return "its articles" if gate.checks else None
            case _:
                return None

    def _is_due(self, gate: Gate) -> bool:
        name = gate_name(gate)
        closed = {one.gate for one in self.judge() if one.verdict is not Verdict.PASS}
        return name in closed and (not is_merge(gate) or closed == {name})

    def judge(self) -> tuple[Judgement, ...]:
        return self._handle.judgements(self._phase)[self._phase]

    def _tell_verdict(self, one: Judgement) -> None:
        now = self._desk.clock()
        self._desk.tell(GateJudged(at=now, phase=self._phase, gate=one.gate, verdict=one.verdict, reason=one.reason))

    def _is_over(self) -> bool:
        target = self._work.target
        return target is not None and not target.is_live(self._handle.state)
