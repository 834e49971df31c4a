"""One check of a gate in a session: what its kind may run, compare and keep (`CheckRunner`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from detent import process
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Program, Receipt
from detent.core.gate.kind import KnownNames
from detent.core.session.session import Session
from detent.core.testrun.baseline import KnownTests
from detent.core.testrun.runner_files import Role

if TYPE_CHECKING:
    from detent.core.gate.environment import CheckEnvironment
    from detent.engine.gates.checks import GateChecks


class Started(NamedTuple):
    """The state that a command found when it was started. It may leave another one behind."""

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
        touched = digest is not None and self.checks.touched(
            self.session, digest, self._accepted_files(), self._roles()
        )
        self.started.append(Started(self.checks.program(command, variables), touched))
        return self.checks.run_command(command, variables, files=self.gate.report_files)

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
            roles=self._roles(),
            files=self.gate.report_files,
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
            roles=self._roles(),
            files=self.gate.report_files,
        )

    def _roles(self) -> tuple[Role, ...]:
        """The roles of the files that the gate protects."""
        return (Role.TEST, Role.STAND_IN) if self.gate.frees_settings else tuple(Role)

    def _accepted_files(self) -> frozenset[str]:
        """The files that a person accepted as they are."""
        return frozenset(name.removeprefix("file:") for name in self.session.baseline.accepted)

    def known(self, command: str) -> KnownNames | None:
        return self._known(self.session.baseline.tests.get(command))

    def _known(self, tests: KnownTests | None) -> KnownNames | None:
        if tests is None:
            return None
        names = None if tests.names is None else self.checks.names(tests.names)
        return KnownNames(tests.count, names)

    def last_pass(self, command: str) -> KnownNames | None:
        return self._known(self.session.baseline.last.get(command))

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
        return self.checks.run_copy(command, variables, of_start=of_start, only=only, files=self.gate.report_files)

    def run_before(self, command: str) -> process.Ran | None:
        tree = self.session.phases[self.phase].tree
        if tree is None:
            return None
        return self.checks.run_before(command, self.environment.variables, tree=tree, files=self.gate.report_files)

    def run_mutants(
        self, command: str, lines: Mapping[str, Collection[int]], *, most: int, minutes: float
    ) -> process.Ran:
        variables = self.environment.variables
        self.started.append(Started(self.checks.program(command, variables), touched=False))
        return self.checks.run_mutants(command, variables, lines=lines, most=most, minutes=minutes)

    def changed_lines(self, against: str) -> dict[str, dict[int, bytes]]:
        return self.checks.changed_lines(against)

    def present(self) -> frozenset[str]:
        return self.checks.present()

    def changed_settings(self) -> tuple[str, ...]:
        digest = self.session.now_protected
        return () if digest is None else self.checks.changed_settings(self.session, digest, self._accepted_files())

    def changed_files(self, patterns: Sequence[str]) -> tuple[str, ...]:
        accepted = self._accepted_files()
        return tuple(path for path in self.checks.changed_files(patterns) if path not in accepted)

    def stood(self, test: str) -> bool:
        return self.checks.start_files().stood(test)

    def has_new_tests(self) -> bool:
        return self.checks.has_new_tests()


def last_receipt(session: Session, phase: str, gate: Gate) -> Receipt | None:
    return session.phases[phase].at_gate(gate_name(gate)).receipt
