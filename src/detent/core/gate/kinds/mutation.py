"""The `mutation` gate: the tests must notice small faults in the lines that were changed."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from detent.core.gate.checked import OneCommand, own_command, receipt_of, unaccepted_findings
from detent.core.gate.evidence import MAX_LOST, GateState, Receipt, Result, Verdict
from detent.core.gate.kind import START, CheckRunner, GateSettings, Ran, Surroundings, gate_name
from detent.core.gate.kinds.changes import NOT_CAPTURED
from detent.core.gate.kinds.coverage import pinned
from detent.core.gate.reported import Patterns, check_patterns, files_of, patterns_of
from detent.core.reports.limits import Unreadable
from detent.core.testrun.baseline import Baseline
from detent.errors import Corrupt, Refused

if TYPE_CHECKING:
    from detent.core.reports.mutants import Fate, Mutant

_MAX_NAMED = 10


class MutationGate(GateSettings, OneCommand, frozen=True, kw_only=True, tag="mutation"):
    """The tests must notice small faults in the lines that were changed."""

    runs_tests: ClassVar[bool] = True
    accepts_findings: ClassVar[bool] = True

    #: The test command, which cosmic-ray runs on each mutant; or the command of another tool, if `report` is set.
    command: str | None = None
    #: Patterns of the JSON of another tool, in the mutation testing report schema.
    report: Patterns = ()
    #: The changed lines are those that differ from the session's start, or from a commit or branch of git.
    against: str = START
    #: How many mutants are tried at most, and for how long.
    max_mutants: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 50
    minutes: Annotated[float, msgspec.Meta(gt=0, le=25)] = 10.0
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    env: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_settings()
        check_patterns("report", self.report)

    @property
    def report_files(self) -> tuple[str, ...]:
        return patterns_of(self.report)

    # Judging

    def shortfall(self, receipt: Receipt, baseline: Baseline) -> str | None:
        left, count = unaccepted_findings(receipt, baseline)
        if not count:
            return None
        of = "mutants of the changed lines survive" if count > 1 else "mutant of the changed lines survives"
        return f"{count} {of}, so no test notices them: {', '.join(left[:_MAX_NAMED])}"

    def passed(self, receipt: Receipt, baseline: Baseline) -> str:
        accepted = f"; {receipt.finding_count} survived and were accepted" if receipt.finding_count else ""
        return f"passed: {receipt.tail}{accepted}"

    def way_out(self, phase: str, state: GateState) -> str:
        name = gate_name(self)
        run = f"detent gate run {name}"
        if state.receipt is not None and state.receipt.findings:
            return f"write tests that notice them, and {run}; or, as a person, detent gate accept {name} MUTANT… -m WHY"
        return run if self.command else f"detent gate set {name} --command COMMAND -m WHY"

    def requirement(self, phase: str, folder: str) -> str:
        return (
            "the tests must notice faults in the lines that you change: a tool puts small faults into them, and a test "
            f"must fail for each. Detent runs it when your turn ends{self.tries()}."
        )

    # Running

    def fitted(self, project: Surroundings) -> "tuple[MutationGate, str | None]":
        gate = replace(self, against=pinned(self.against, project))
        if self.command is None and not self.report and project.tests is not None:
            gate = replace(gate, command=project.tests, env=self.env or project.env)
        return gate, None

    def skipped_because(self, project: Surroundings) -> str | None:
        is_blind = self.against == START and not project.captures_all
        return f"no mutation gate: {NOT_CAPTURED}" if is_blind else None

    def contradiction(self, receipt: Receipt) -> str | None:
        """Another tool may end with a failure if a mutant survives that a person accepted."""
        return super().contradiction(replace(receipt, exit_code=0))

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        name = gate_name(self)
        if self.command is None:
            raise Refused(f"gate {name} has no command", way_out=f"detent gate set {name} --command COMMAND -m WHY")
        line = own_command(self, self.command, command)
        try:
            lines = runner.changed_lines(self.against)
        except Corrupt as problem:
            return Receipt(result=Result.UNCLEAR, command=line, error=problem.message, signature=problem.message)
        changed = {path: numbers for path, numbers in lines.items() if not _is_test(path)}
        if not self.report:
            changed = {path: numbers for path, numbers in changed.items() if path.endswith(".py")}
        if not changed:
            return Receipt(result=Result.PASSED, command=line, exit_code=0, tail="no line of the code was changed")
        ran = (
            runner.run(line)
            if self.report
            else runner.run_mutants(line, changed, most=self.max_mutants, minutes=self.minutes)
        )
        if ran.problem:
            return receipt_of(ran, line, Result.ERROR)
        return self._judged(ran, line, changed)

    def _judged(self, ran: Ran, line: str, changed: Mapping[str, Mapping[int, bytes]]) -> Receipt:
        from detent.core.reports.mutants import Fate, read_mutants  # noqa: PLC0415 - only a run needs it

        receipt = replace(receipt_of(ran, line, Result.PASSED), error=None, signature=None)
        try:
            files = files_of(ran, self.report_files) if self.report else ran.files
            mutants = tuple(mutant for file in files for mutant in read_mutants(file.data))
        except Unreadable as problem:
            error = f"the mutants cannot be read: {problem}"
            return receipt.because(error, Result.UNCLEAR)
        mine = tuple(mutant for mutant in mutants if _is_changed(mutant, changed))
        survivors = [mutant.describe() for mutant in mine if mutant.fate is Fate.SURVIVED]
        killed, untried = _count(mine, Fate.KILLED), _count(mine, Fate.UNTRIED)
        text = f"{killed + len(survivors)} mutants of the changed lines were tried, {killed} were noticed"
        text += f", {untried} were not tried" if untried else ""
        receipt = replace(receipt, tail=text, findings=tuple(survivors[:MAX_LOST]), finding_count=len(survivors))
        if untried and not killed and not survivors:
            error = f"no mutant was tried; {untried} were left when the time was over"
            return receipt.because(error, Result.UNCLEAR)
        return self.with_shortfall(receipt)

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        return self.command is None

    def person_task(self, phase: str) -> str | None:
        return f"gate {gate_name(self)} has no command that runs the tests of {phase}"


def _is_test(path: str) -> bool:
    from detent.core.testrun.runner_files import roles, test_directory  # noqa: PLC0415 - only a run needs it

    return bool(roles((path,))) or test_directory(path) is not None


def _is_changed(mutant: "Mutant", changed: Mapping[str, Mapping[int, bytes]]) -> bool:
    return any(line in changed.get(mutant.path, {}) for line in range(mutant.line, mutant.last + 1))


def _count(mutants: "Iterable[Mutant]", fate: "Fate") -> int:
    return sum(mutant.fate is fate for mutant in mutants)
