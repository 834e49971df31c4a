"""The `findings` gate: an analysis tool must report nothing new of a level, in SARIF."""

from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec.structs import replace

from detent.core.gate.checked import OneCommand, own_command, receipt_of, unaccepted_findings
from detent.core.gate.evidence import MAX_LOST, GateState, Receipt, Result
from detent.core.gate.kind import CheckRunner, GateSettings, Ran, gate_name
from detent.core.gate.reported import Patterns, check_patterns, files_of, patterns_of
from detent.core.reports.limits import Unreadable
from detent.core.testrun.baseline import Baseline

if TYPE_CHECKING:
    from detent.core.reports.sarif import Finding

#: Settings of analysis tools, by name. A part of a larger file, such as `[tool.ruff]`, is not among them.
TOOL_SETTINGS = (
    *("ruff.toml", ".ruff.toml", ".flake8", ".pylintrc", "pylintrc", "mypy.ini", ".mypy.ini", ".bandit", "bandit.yaml"),
    *(".eslintrc*", "eslint.config.*", ".eslintignore", "biome.json*", ".golangci.*", "clippy.toml", ".clippy.toml"),
    *(".semgrepignore", ".semgrep.y*ml", "codeql-config.yml", ".trivyignore*", ".gitleaks.toml", ".gitleaksignore"),
)


class FindingsGate(GateSettings, OneCommand, frozen=True, kw_only=True, tag="findings"):
    """An analysis tool must report nothing new of a level."""

    needs_begin: ClassVar[bool] = True
    accepts_findings: ClassVar[bool] = True

    command: str
    #: Patterns of the SARIF files that the command writes.
    report: Patterns
    #: The least level that counts.
    level: Literal["error", "warning", "note"] = "warning"
    #: Findings count that are new since the phase began, or all.
    since: Literal["phase", "ever"] = "phase"
    #: Whether findings that the code suppresses count.
    suppressed: Literal["count", "ignore"] = "count"
    #: Names of files that steer the tool. A change of one keeps the gate closed until a person accepts it.
    settings_files: tuple[str, ...] = TOOL_SETTINGS
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    env: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_settings()
        check_patterns("report", self.report)
        if not self.report:
            raise ValueError('report: name the SARIF file that the command writes, such as report = "out.sarif"')

    @property
    def report_files(self) -> tuple[str, ...]:
        return patterns_of(self.report)

    # Judging

    def shortfall(self, receipt: Receipt, baseline: Baseline) -> str | None:
        left, count = unaccepted_findings(receipt, baseline)
        if not count:
            return None
        new = "new " if self.since == "phase" else ""
        return f"{count} {new}finding{'s' if count > 1 else ''} of level {self.level} or worse: {'; '.join(left)}"

    def passed(self, receipt: Receipt, baseline: Baseline) -> str:
        of = "no new finding" if self.since == "phase" else "no finding"
        accepted = f"; {receipt.finding_count} accepted" if receipt.finding_count else ""
        return f"passed: {receipt.command}: {of} of level {self.level} or worse{accepted}"

    def way_out(self, phase: str, state: GateState) -> str:
        name = gate_name(self)
        run = f"detent gate run {name}"
        if state.receipt is not None and state.receipt.findings:
            return f"mend them, and {run}; or, as a person, detent gate accept {name} FINDING… -m WHY"
        return run

    def requirement(self, phase: str, folder: str) -> str:
        of = "that was not there when the phase began" if self.since == "phase" else "at all"
        return (
            f"`{self.command}` must report no finding of level {self.level} or worse {of}. Suppressing a finding, or "
            f"changing the settings of the tool, does not open the gate. Detent runs it when your turn ends"
            f"{self.tries()}."
        )

    # Running

    def contradiction(self, receipt: Receipt) -> str | None:
        """Tools end with a failure if they find something, old or new."""
        return super().contradiction(replace(receipt, exit_code=0))

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        line = own_command(self, self.command, command)
        from detent.core.reports.sarif import new_findings  # noqa: PLC0415 - only a run needs it

        ran = runner.run(line)
        if ran.problem:
            return receipt_of(ran, line, Result.ERROR)
        receipt = replace(receipt_of(ran, line, Result.PASSED), error=None, signature=None)
        changed = runner.changed_files(self.settings_files) if self.settings_files else ()
        if changed:
            names = " ".join(f"file:{path}" for path in changed)
            return receipt.because(
                f"{', '.join(changed)} steers the tool and has changed since the session began; "
                f"a person accepts it with `detent gate accept {gate_name(self)} {names} -m WHY`",
                Result.FAILED,
            )
        try:
            now = self._findings(ran)
        except Unreadable as problem:
            return receipt.because(f"the findings cannot be read: {problem}", Result.UNCLEAR)
        counted = new_findings(now, self._before(runner, line)) if now and self.since == "phase" else now
        named = tuple(dict.fromkeys(finding.describe() for finding in counted))
        receipt = replace(receipt, findings=named[:MAX_LOST], finding_count=len(named))
        return self.with_shortfall(receipt)

    def _findings(self, ran: Ran) -> "tuple[Finding, ...]":
        from detent.core.reports.sarif import Level, read_sarif  # noqa: PLC0415 - only a run needs it

        least = Level(self.level)
        everything = (
            finding for file in files_of(ran, self.report_files) for finding in read_sarif(file.data, ran.directory)
        )
        is_counted = self.suppressed == "count"
        return tuple(
            finding for finding in everything if finding.level.reaches(least) and (is_counted or not finding.suppressed)
        )

    def _before(self, runner: CheckRunner, line: str) -> "tuple[Finding, ...]":
        """The findings in the files of the phase's begin; none if they are not known, so that all of now count."""
        before = runner.run_before(line)
        if before is None or before.problem:
            return ()
        try:
            return self._findings(before)
        except Unreadable:
            return ()
