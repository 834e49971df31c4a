"""One check of a gate in a session: what its kind may run, compare and keep (`CheckRunner`)."""

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from detent import process
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Program, Receipt
from detent.core.gate.kind import KnownNames
from detent.core.session.session import Session

if TYPE_CHECKING:
    from detent.core.gate.environment import CheckEnvironment
    from detent.engine.gates.checks import GateChecks


class Started(NamedTuple):
    """What a command found when it was started. It may leave something else behind."""

    program: Program | None
    touched: bool


class SessionCheck(NamedTuple):
    checks: "GateChecks"
    session: Session
    phase: str
    gate: Gate
    environment: "CheckEnvironment"
    started: list[Started]

    def run(self, command: str) -> process.Ran:
        variables = self.environment.variables
        digest = self.session.now_protected if self.gate.protects else None
        touched = digest is not None and self.checks.touched(self.session, digest, self._accepted_files())
        self.started.append(Started(self.checks.program(command, variables), touched))
        return self.checks.run_command(command, variables)

    def run_protected(self, command: str) -> process.Ran | None:
        digest = self.session.now_protected
        if digest is None:
            return None
        return self.checks.run_protected(
            self.session,
            command,
            self.environment.variables,
            digest=digest,
            gate=gate_name(self.gate),
            accepted=self._accepted_files(),
            was_touched=any(started.touched for started in self.started),
        )

    def run_original(self, command: str) -> process.Ran | None:
        digest = self.session.protected
        if digest is None or digest == self.session.now_protected:
            return None
        return self.checks.run_protected(
            self.session,
            command,
            self.environment.variables,
            digest=digest,
            gate=gate_name(self.gate),
            accepted=self._accepted_files(),
        )

    def _accepted_files(self) -> frozenset[str]:
        """The files that a person accepted as they are."""
        return frozenset(name.removeprefix("file:") for name in self.session.baseline.accepted)

    def known(self, command: str) -> KnownNames | None:
        baseline = self.session.baseline
        tests = baseline.tests.get(command)
        if tests is None:
            return None
        names = None if tests.names is None else self.checks.names(tests.names)
        return KnownNames(tests.count, names)

    def accepted(self) -> frozenset[str]:
        return frozenset(self.session.baseline.accepted)

    def keep(self, names: frozenset[str]) -> str:
        return self.checks.keep_names(names)

    def rewrites_tests(self) -> bool:
        return self.session.workflow.by_key[self.phase].rewrites_tests

    def tests_rewritten_by(self) -> str | None:
        return self.session.tests_rewritten_by

    def is_protected(self) -> bool:
        return self.session.protected is not None

    def selection(self, command: str) -> str | None:
        return self.checks.selection(command)

    def test_command(self) -> str | None:
        gates = [gate for gate in self.session.workflow.by_key[self.phase].gates if gate.runs_tests]
        declared = (gate.runnable() for gate in (self.gate, *gates))
        receipts = (last_receipt(self.session, self.phase, gate) for gate in gates if not gate.takes_names)
        counted = (receipt.command for receipt in receipts if receipt is not None)
        return next(filter(None, (*declared, *counted)), None)

    def named(self) -> tuple[str, ...]:
        receipt = last_receipt(self.session, self.phase, self.gate)
        return receipt.named if receipt is not None else ()

    def run_copy(self, command: str, *, of_start: bool, only: Collection[str] = ()) -> process.Ran:
        variables = self.environment.variables
        self.started.append(Started(self.checks.program(command, variables), touched=False))
        return self.checks.run_copy(command, variables, of_start=of_start, only=only)

    def stood(self, test: str) -> bool:
        return self.checks.start_files().stood(test)

    def has_new_tests(self) -> bool:
        return self.checks.has_new_tests()


def last_receipt(session: Session, phase: str, gate: Gate) -> Receipt | None:
    state = session.phases[phase].gates.get(gate_name(gate))
    return state.receipt if state else None
