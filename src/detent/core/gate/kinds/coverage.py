"""The `coverage` gate: tests must run so much of the code, and of the lines that were changed."""

from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from detent.core.gate.checked import OneCommand, own_command, receipt_of
from detent.core.gate.coverage_judge import coverage_shortfall, coverage_unknown
from detent.core.gate.evidence import MAX_LOST, GateState, Receipt, Result, Verdict
from detent.core.gate.kind import START, CheckRunner, GateSettings, Ran, Surroundings, gate_name
from detent.core.gate.kinds.changes import NOT_CAPTURED
from detent.core.gate.reported import Patterns, check_patterns, patterns_of
from detent.core.testrun.baseline import Baseline
from detent.errors import Corrupt, Refused

_Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]


class CoverageGate(GateSettings, OneCommand, frozen=True, kw_only=True, tag="coverage"):
    """Tests must run so much of the code, and of the lines that were changed."""

    runs_tests: ClassVar[bool] = True
    #: The settings of the coverage tool are kept with the tests.
    protects: ClassVar[bool] = True

    #: The command that measures; a session takes the one of `[run] tests`.
    command: str | None = None
    #: Patterns of the report that the command writes: Cobertura XML, LCOV, or the JSON of coverage.py.
    report: Patterns
    #: Least coverage in all, and of the changed lines.
    total: _Percent | None = None
    changed: _Percent | None = None
    #: The changed lines are those that differ from the session's start, or from a commit or branch of git.
    against: str = START
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    env: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_settings()
        check_patterns("report", self.report)
        if not self.report:
            raise ValueError('report: name the file that the command writes, such as report = "coverage.xml"')
        if self.total is None and self.changed is None:
            raise ValueError("a coverage gate needs total, changed, or both")

    @property
    def report_files(self) -> tuple[str, ...]:
        return patterns_of(self.report)

    # Judging

    def shortfall(self, receipt: Receipt, baseline: Baseline) -> str | None:
        return coverage_shortfall(receipt, total=self.total, changed=self.changed)

    def unknown(self, receipt: Receipt) -> str | None:
        return coverage_unknown(receipt, total=self.total, changed=self.changed)

    def limit_reason(self, receipt: Receipt) -> str:
        return "coverage_below_threshold" if receipt.result is Result.PASSED else "max_iterations"

    def passed(self, receipt: Receipt, baseline: Baseline) -> str:
        parts = {"in all": receipt.coverage, "of the changed lines": receipt.changed_coverage}
        numbers = [f"{value:g} % {of}" for of, value in parts.items() if value is not None]
        return f"passed: {receipt.command}: {', '.join(numbers)}"

    def way_out(self, phase: str, state: GateState) -> str:
        run = f"detent gate run {gate_name(self)}"
        return run if self.command else f"detent gate set {gate_name(self)} --command COMMAND -m WHY"

    def requirement(self, phase: str, folder: str) -> str:
        parts = {"of the code": self.total, f"of the lines changed since {self._since}": self.changed}
        needed = " and ".join(f"{value:g} % {of}" for of, value in parts.items() if value is not None)
        ran = f"by the report of `{self.command}`" if self.command else "by the report of the test command"
        return f"tests must run {needed}, {ran}. Detent runs it when your turn ends{self.tries()}."

    @property
    def _since(self) -> str:
        return "the session began" if self.against == START else self.against

    # Running

    def fitted(self, project: Surroundings) -> "tuple[CoverageGate, str | None]":
        gate = self
        if self.command is None and project.tests is not None:
            gate = replace(gate, command=project.tests, env=self.env or project.env)
        if self.changed is not None and self.against == START and not project.captures_all:
            return replace(gate, changed=None), f"no coverage threshold of changed lines: {NOT_CAPTURED}"
        return replace(gate, against=pinned(self.against, project)), None

    def skipped_because(self, project: Surroundings) -> str | None:
        is_blind = self.total is None and self.against == START and not project.captures_all
        return f"no coverage gate of changed lines: {NOT_CAPTURED}" if is_blind else None

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        if self.command is None:
            name = gate_name(self)
            raise Refused(f"gate {name} has no command", way_out=f"detent gate set {name} --command COMMAND -m WHY")
        line = own_command(self, self.command, command)
        ran = runner.run(line)
        if ran.problem:
            return receipt_of(ran, line, Result.ERROR)
        if ran.exit_code:
            return receipt_of(ran, line, Result.FAILED)
        changed = runner.changed_settings()
        if changed:
            names = " ".join(f"file:{path}" for path in changed)
            error = (
                f"the settings of tests and coverage in {', '.join(changed)} are not as they were when the session "
                f"began; a person accepts them with `detent gate accept {gate_name(self)} {names} -m WHY`"
            )
            return receipt_of(ran, line, Result.FAILED).because(error)
        return self._measured(runner, ran, line)

    def _measured(self, runner: CheckRunner, ran: Ran, line: str) -> Receipt:
        from detent.core.gate.measured import measured, of_changed  # noqa: PLC0415 - only a run needs it
        from detent.core.reports.coverage import total  # noqa: PLC0415
        from detent.core.reports.limits import Unreadable  # noqa: PLC0415

        receipt = receipt_of(ran, line, Result.PASSED)
        try:
            report = measured(runner, ran, self.report_files)
            receipt = replace(receipt, coverage=total(report))
            if self.changed is not None:
                covered = of_changed(report, runner.changed_lines(self.against))
                # Where no changed line can run, none is uncovered.
                share = 100.0 if covered.percent is None else covered.percent
                named, count = covered.uncovered[:MAX_LOST], len(covered.uncovered)
                receipt = replace(receipt, changed_coverage=share, findings=named, finding_count=count)
        except (Unreadable, Corrupt) as problem:
            error = f"coverage cannot be read: {problem}"
            return receipt.because(error, Result.UNCLEAR)
        return self.with_shortfall(receipt)

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        return self.command is None

    def person_task(self, phase: str) -> str | None:
        return f"gate {gate_name(self)} has no command that measures the coverage of {phase}"


def pinned(against: str, project: Surroundings) -> str:
    """The commit that a name of git means when the session starts: a branch that an agent moves changes nothing."""
    return against if against == START else project.commit_of(against) or against
