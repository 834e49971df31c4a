"""The gates of one session: judge them, run their checks, record receipts."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from detent.core.gate import gate_name
from detent.core.gate.evidence import GateState, Judgement, Receipt
from detent.core.gate.judge import judgements
from detent.core.session.commands import CheckGate
from detent.core.session.decide_gate import find_gate
from detent.core.session.decide_phase import known_phase, live_phase
from detent.core.session.status import Status
from detent.engine.policy import Decision, authorize
from detent.engine.redact_command import redact_text
from detent.engine.results import Outcome
from detent.errors import Refused

if TYPE_CHECKING:
    from detent.engine.gates.checks import GateChecks
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle


class SessionGates:
    def __init__(self, project: "Project", handle: "SessionHandle") -> None:
        self._project, self._handle = project, handle

    @cached_property
    def checks(self) -> "GateChecks":
        # Running checks needs processes and parsers, and looking at a session does not.
        from detent.engine.gates.checks import GateChecks  # noqa: PLC0415

        return GateChecks(self._project.store, self._project.place, self._handle.id, self._project.checkpoints.moment)

    def judgements(self, phase: str | None = None) -> dict[str, tuple[Judgement, ...]]:
        """The verdict on every gate of the phases in progress, or of the one named."""
        session = self._handle.state
        phases = session.with_status(Status.IN_PROGRESS) if phase is None else (known_phase(session, phase),)
        now, moment = self._project.clock(), self._project.checkpoints.moment()
        return {key: judgements(session, key, self.checks.facts(session, key, now, moment)) for key in phases}

    def run(self, gate: str, *, phase: str | None = None, command: str | None = None) -> Outcome:
        """Run the gate's check now and record the receipt."""
        key = live_phase(self._handle.state, phase)
        return self.record(gate, phase=key, receipt=self.check(gate, phase=key, command=command))

    def check(
        self, gate: str, *, phase: str, command: str | None = None, env: Mapping[str, str] | None = None
    ) -> Receipt:
        """Run the gate's check now and record nothing. `env` adds to the environment of this process."""
        session = self._handle.state
        return self.checks.run(session, phase, find_gate(session, phase, gate), command, env)

    def record(self, gate: str, *, phase: str, receipt: Receipt) -> Outcome:
        return self._handle.execute(CheckGate(phase=phase, gate=gate, receipt=receipt))

    def observe(self, phase: str, command: str, output: str, exit_code: int | None) -> Outcome | None:
        """Record a test run that was seen in the agent's shell, if the phase asks for one and names no command."""
        gates = self._handle.state.workflow.by_key[phase].gates if self._handle.state.gates_apply else ()
        output = redact_text(output) if gates else ""
        for gate in gates:
            receipt = self.checks.observed(gate, command, output, exit_code)
            if receipt is not None:
                return self._handle.execute(CheckGate(phase=phase, gate=gate_name(gate), receipt=receipt))
        return None

    def report(self, gate: str, *, compliant: bool, note: str = "", phase: str | None = None) -> Outcome:
        """Record a reviewer's finding about a constitution whose articles no command can check."""
        key = live_phase(self._handle.state, phase)
        declared = find_gate(self._handle.state, key, gate)
        if not declared.is_reported:
            raise Refused(f"gate {gate} of {key} is not reported", way_out=declared.way_out(key, GateState()))
        author = authorize(self._project.actor, Decision.REPORT) if compliant else self._project.actor
        receipt = self.checks.reported(compliant=compliant, note=note)
        return self._project.session(self._handle.id, actor=author).execute(
            CheckGate(phase=key, gate=gate, receipt=receipt)
        )
