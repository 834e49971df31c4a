"""The `tests` gate: a test run must pass, within a number of tries, without losing tests of the baseline."""

from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from detent.core.gate.checked import TAIL_CHARS, OneCommand, own_command, receipt_of
from detent.core.gate.coverage_judge import coverage_shortfall, coverage_unknown
from detent.core.gate.evidence import MAX_LOST, GateState, ProtectedRun, RanBy, Receipt, Result, Verdict
from detent.core.gate.kind import (
    GIVEN_COMMAND,
    CheckRunner,
    Evidence,
    GateSettings,
    KnownNames,
    Ran,
    Surroundings,
    gate_name,
)
from detent.core.gate.reported import Patterns, check_patterns, patterns_of, read_suite
from detent.core.reports.limits import Unreadable
from detent.core.testrun.baseline import FILES_ONLY, OTHERS, Baseline, KnownTests, lost_tests, unaccepted
from detent.core.testrun.suite import Counts, Outcome, Suite
from detent.errors import Refused

_RESULT_WORDS = {
    Result.PASSED: "passed",
    Result.FAILED: "failed",
    Result.UNCLEAR: "inconclusive",
    Result.ERROR: "inconclusive",
}
#: How many lost tests a reason names.
_MAX_NAMED = 10
#: Values of settings with which a rule only tells, and does not hold.
_LOOSE = ("report", "free")
_AS_BEGUN = "the tests as they were when the session began"


class TestsGate(GateSettings, OneCommand, frozen=True, kw_only=True, tag="tests"):
    """A test run must pass, within a number of tries, without losing tests of the baseline."""

    # pytest would take the name for a class of tests.
    __test__: ClassVar[bool] = False
    protects: ClassVar[bool] = True
    runs_tests: ClassVar[bool] = True

    #: The command that decides; without it a whole run that was given to Detent or seen in the agent's shell counts.
    command: str | None = None
    #: The files whose change makes a passed run stale.
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    coverage: int | None = None
    #: Leave the threshold out of a session if the command measures no coverage when it starts.
    coverage_if_measured: bool = False
    #: Files besides the tests and the runner's settings that are kept as they were when the session began.
    protected: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    #: Patterns of the JUnit XML that the command writes. Only the tests in them count.
    junit: Patterns = ()
    #: Patterns of the coverage report that the command writes; without it the printed coverage counts.
    coverage_report: Patterns = ()
    #: How many tests must pass. That none ran, or all were skipped, is never a pass.
    min_tests: Annotated[int, msgspec.Meta(ge=1)] = 1
    #: Tests of the baseline that are missing, skipped or expected to fail: a person accepts them, or they are named.
    lost: Literal["accept", "report"] = "accept"
    #: The same if fewer tests pass than in the last pass.
    fewer: Literal["accept", "report"] = "accept"
    #: Whether the settings of the runner are protected with the tests.
    test_settings: Literal["protected", "free"] = "protected"

    def __post_init__(self) -> None:
        self.check_settings()
        check_patterns("junit", self.junit)
        check_patterns("coverage_report", self.coverage_report)

    @property
    def report_files(self) -> tuple[str, ...]:
        return (*patterns_of(self.junit), *patterns_of(self.coverage_report))

    @property
    def frees_settings(self) -> bool:
        return self.test_settings == "free"

    def suite_of(self, ran: Ran) -> Suite | None:
        try:
            return read_suite(ran, patterns_of(self.junit))
        except Unreadable:
            return None

    # Judging

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        verdict, reason = super().judge(evidence)
        is_told = self._tells_baseline(evidence, verdict) and not evidence.baseline.is_named(self.command)
        return verdict, f"{reason}; baseline: {FILES_ONLY}" if is_told else reason

    def _tells_baseline(self, evidence: Evidence, verdict: Verdict) -> bool:
        """Whether the reason says that the tests are not known by name: if none ran, or the runner names none."""
        receipt = evidence.gate.receipt
        if verdict is Verdict.PASS:
            return receipt is not None and (self.command or "") in evidence.baseline.tests
        if evidence.gate.escalated is not None or (receipt is not None and receipt.result is Result.PASSED):
            return False
        return receipt is None or receipt.tests is None or not receipt.tests.passed

    def shortfall(self, receipt: Receipt, baseline: Baseline) -> str | None:
        short = coverage_shortfall(receipt, total=self.coverage)
        return short if short is not None or not receipt.lost_count else lost_reason(receipt, baseline)

    def unknown(self, receipt: Receipt) -> str | None:
        return coverage_unknown(receipt, total=self.coverage)

    def passed(self, receipt: Receipt, baseline: Baseline) -> str:
        known = baseline.tests.get(self.command or "")
        seen = "; seen in the agent's shell, no command is known" if receipt.by is RanBy.SEEN else ""
        text = f"passed: {receipt.command}{counts_text(receipt.tests, known)}{_accepted_text(baseline)}{seen}"
        return f"{text}{self._loosened(receipt)}"

    def _loosened(self, receipt: Receipt) -> str:
        """The part of a pass that tells which rules the settings switch off, and what they let through."""
        loose = {"lost": self.lost, "fewer": self.fewer, "test_settings": self.test_settings}
        names = [f'{name} = "{value}"' for name, value in loose.items() if value in _LOOSE]
        return f"; loosened by {', '.join(names)}{f': {receipt.error}' if receipt.error else ''}" if names else ""

    def limit_reason(self, receipt: Receipt) -> str:
        return "coverage_below_threshold" if self._falls_short(receipt) else "max_iterations"

    def _falls_short(self, receipt: Receipt) -> bool:
        return coverage_shortfall(receipt, total=self.coverage) is not None

    def way_out(self, phase: str, state: GateState) -> str:
        name, receipt = gate_name(self), state.receipt
        run = f"detent gate run {name}"
        if receipt is not None and receipt.protected is not None and receipt.protected.failing and self.command:
            return f"{run}; or, as a person, first detent gate accept {name} TEST… -m WHY"
        if receipt is not None and receipt.result is Result.PASSED and not self._falls_short(receipt):
            if receipt.lost_count and not receipt.lost:
                return f"bring the tests back; or, as a person, detent gate baseline {name} -m WHY"
            if receipt.lost_count:
                return f"bring the tests back; or, as a person, detent gate accept {name} NAME… -m WHY"
            if self.command and self.unknown(receipt) is not None:
                return f"detent gate set {name} --command COMMAND -m WHY, with a command that measures coverage"
        return run if self.command else f"{run}{GIVEN_COMMAND}"

    def requirement(self, phase: str, folder: str) -> str:
        enough = f", with {self.coverage} % coverage or more" if self.coverage is not None else ""
        patterns = ", ".join(self.protected)
        protected = f"; {patterns} must be as they were when the session began" if patterns else ""
        if self.command:
            return (
                f"`{self.command}` must pass{enough}{protected}. Detent runs it when your turn ends{self.tries()}. "
                "Tests that stood when the session began must still run and pass: "
                "deleted, skipped or expected-to-fail tests keep the gate closed."
            )
        run = f"detent gate run {gate_name(self)} --phase {phase}{GIVEN_COMMAND}"
        return f"the tests must pass{enough}{protected}. Run all of them after your last change with `{run}`."

    # Running

    def fitted(self, project: Surroundings) -> "tuple[TestsGate, str | None]":
        gate = self
        if self.command is None and project.tests is not None:
            gate = replace(self, command=project.tests, env=self.env or project.env)
        if not self.coverage_if_measured:
            return gate, None
        reason = project.without_coverage(gate.command) if self.coverage is not None else None
        if reason is None:
            return replace(gate, coverage_if_measured=False), None
        return replace(gate, coverage=None, coverage_if_measured=False), f"no coverage threshold: {reason}"

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        line = self._test_command(command)
        ran = runner.run(line)
        if ran.problem:
            return receipt_of(ran, line, Result.ERROR)
        receipt, suite = self._read(runner, ran, line)
        if receipt.result is not Result.PASSED:
            return receipt
        if self.command is None and (part := runner.selection(line)) is not None:
            return replace(receipt, aside=_part(part))
        again = runner.run_protected(line)
        stood = None
        if again is not None:
            shown, stood = self._with_protected(runner, again, receipt)
            if shown.result is not Result.PASSED and not runner.rewrites_tests():
                return shown
            # A phase that rewrites tests need not pass the old ones, but none of them may be missing.
            receipt = replace(receipt, protected=shown.protected)
        original = runner.run_original(line)
        if original is not None and original.problem:
            error = f"{_AS_BEGUN} could not run: {original.problem}"
            return receipt.because(error, Result.FAILED)
        first = _first(original, patterns_of(self.junit)) if original is not None else None
        if first is not None and first.names is not None:
            receipt = self._with_first(runner, receipt, first.names, stood)
        return self._with_lost(runner, receipt, suite, stood, first)

    def _with_first(self, runner: CheckRunner, receipt: Receipt, names: frozenset[str], stood: Suite | None) -> Receipt:
        """The receipt with the tests of the start among those that stood, which become the baseline."""
        ran = receipt.protected or ProtectedRun(result=receipt.result, tests=receipt.tests)
        known = names | (stood.tried if stood is not None else frozenset())
        return replace(receipt, protected=replace(ran, names=runner.keep(known)))

    def _with_protected(self, runner: CheckRunner, again: Ran, receipt: Receipt) -> tuple[Receipt, Suite | None]:
        """The receipt with the run on the protected files. If that did not pass, it is what the receipt shows."""
        phase = runner.tests_rewritten_by()
        as_kept = _AS_BEGUN if phase is None else f"the tests as {phase} left them"
        if again.problem:
            protected = ProtectedRun(result=Result.ERROR, error=again.problem)
            error = f"{as_kept} could not run: {again.problem}"
            return replace(receipt, result=Result.FAILED, error=error, signature=error, protected=protected), None
        shown, suite = self._read(runner, again, receipt.command)
        failing = suite.failed[:MAX_LOST] if suite is not None else ()
        names = runner.keep(suite.tried) if suite is not None else None
        protected = ProtectedRun(
            result=shown.result, error=shown.error, failing=failing, tests=shown.tests, names=names
        )
        is_accepted = suite is not None and not suite.unnamed and runner.accepted().issuperset(suite.failed)
        if shown.result is Result.PASSED or (shown.result is Result.FAILED and is_accepted):
            return replace(receipt, protected=protected), suite
        named = f" ({', '.join(failing[:_MAX_NAMED])})" if failing else ""
        error = f"{as_kept} did not pass: {shown.error}{named}"
        failed = replace(shown, result=Result.FAILED, error=error, duration_s=receipt.duration_s, protected=protected)
        return replace(failed, names=None, signature=f"{as_kept}: {shown.signature}"), suite

    def _with_lost(
        self,
        runner: CheckRunner,
        receipt: Receipt,
        suite: Suite | None,
        stood: Suite | None,
        first: "_First | None" = None,
    ) -> Receipt:
        """The receipt with the tests of the baseline that this run lost. `first` are the tests of the start."""
        known = _and_first(_and_stood(runner.known(self.command or ""), stood), first)
        if known is None:
            left_out = self._left_out_since(runner, receipt, suite)
            if not left_out:
                return self._with_fewer(runner, receipt, suite)
            lost = dict(list(left_out.items())[:MAX_LOST])
            return self._with_loss(replace(receipt, lost=lost, lost_count=len(left_out)))
        if known.names is not None and suite is not None:
            receipt = replace(receipt, new=tuple(sorted(suite.passed - known.names))[:MAX_LOST])
        if known.names is not None:
            known = known._replace(names=known.names - runner.accepted())
        if known.names is not None and suite is None and receipt.by is not RanBy.SEEN:
            error = f"the run named no test, and the baseline names {len(known.names)}"
            return receipt.because(error, Result.UNCLEAR)
        if known.names is None or suite is None:
            missing = known.passed - (receipt.tests.passed if receipt.tests is not None else 0)
            if missing <= 0:
                return self._with_fewer(runner, receipt, suite)
            return self._with_loss(replace(receipt, lost_count=missing))
        lost = lost_tests(known.names, suite)
        old_pass = runner.is_protected() if stood is None else runner.accepted().issuperset(stood.failed)
        old_pass &= first is None or first.passes
        is_renamed = old_pass and len(suite.passed) >= len(known.names)
        if is_renamed and all(outcome is Outcome.MISSING for outcome in lost.values()):
            # The old tests pass, in the present files or in the copy, and there are no fewer of them now.
            lost = {}
        if not lost:
            return self._with_fewer(runner, receipt, suite)
        return self._with_loss(replace(receipt, lost=dict(list(lost.items())[:MAX_LOST]), lost_count=len(lost)))

    def _left_out_since(self, runner: CheckRunner, receipt: Receipt, suite: Suite | None) -> dict[str, Outcome]:
        """The tests that this run left out, and that ran with the code of the start, while no baseline names them.

        The code under test can skip its own test, or say that it is expected to fail.
        """
        if suite is None or not suite.left_out or receipt.by is RanBy.SEEN:
            return {}
        ran = runner.run_copy(receipt.command, of_start=True, only=suite.left_out)
        try:
            before = read_suite(ran, patterns_of(self.junit)) if not ran.problem else None
        except Unreadable:
            return {}
        tried = before.tried - runner.accepted() if before is not None else frozenset()
        return {name: suite.outcomes[name] for name in sorted(suite.left_out) if name in tried}

    def _with_loss(self, receipt: Receipt) -> Receipt:
        """The receipt with the reason that tests were lost. They count only if the settings say so."""
        reason = lost_reason(receipt, Baseline())
        if (self.fewer if receipt.is_fewer else self.lost) in _LOOSE:
            return replace(receipt, error=reason, lost_count=0)
        return replace(receipt, error=reason, signature=reason)

    def _with_fewer(self, runner: CheckRunner, receipt: Receipt, suite: Suite | None) -> Receipt:
        """The receipt with the tests that are missing since the last pass, if fewer passed than then."""
        last = runner.last_pass(self.command or "")
        if last is None or receipt.result is not Result.PASSED:
            return receipt
        if last.names is None or suite is None:
            missing = last.passed - (receipt.tests.passed if receipt.tests is not None else 0)
            fewer = replace(receipt, lost_count=missing, is_fewer=True)
            return self._with_loss(fewer) if missing > 0 else receipt
        names = last.names - runner.accepted()
        if len(suite.passed) >= len(names):
            return receipt
        lost = lost_tests(names, suite)
        cut = dict(list(lost.items())[:MAX_LOST])
        return self._with_loss(replace(receipt, lost=cut, lost_count=len(lost), is_fewer=True))

    def observe(self, runner: CheckRunner, command: str, output: str, exit_code: int | None) -> Receipt | None:
        from detent.core.testrun import verdict  # noqa: PLC0415 - only a run needs it

        judged = verdict.judge(output, exit_code)
        receipt = Receipt(
            result=Result(judged.result),
            command=command,
            exit_code=exit_code,
            tail=output[-TAIL_CHARS:],
            error=judged.error,
            signature=judged.signature,
            coverage=judged.coverage,
            tests=judged.counts,
            by=RanBy.SEEN,
        )
        if self.command is not None:
            return replace(receipt, aside=f"seen in the agent's shell; a run of `{self.command}` by Detent decides")
        if receipt.result is not Result.PASSED:
            return receipt
        if self.protected:
            return replace(
                receipt, aside="seen in the agent's shell; only Detent can run the protected files as they were"
            )
        if (part := runner.selection(command)) is not None:
            return replace(receipt, aside=_part(part))
        return self._with_lost(runner, receipt, None, None)

    def _read(self, runner: CheckRunner, ran: Ran, command: str) -> tuple[Receipt, Suite | None]:
        """The receipt of a run, and its tests by name if it wrote a report that can be read."""
        from detent.core.testrun import verdict  # noqa: PLC0415 - only a run needs it

        try:
            suite = read_suite(ran, patterns_of(self.junit))
        except Unreadable as problem:
            return self._unread(ran, command, f"the report of the tests does not count: {problem}"), None
        judged = verdict.judge(ran.output, ran.exit_code, suite=suite)
        receipt = receipt_of(ran, command, Result(judged.result))
        if suite is None and receipt.result is Result.PASSED and verdict.writes_report(command):
            error = "pytest wrote no report that names its tests; it ended early, or the command has a --junitxml"
            return replace(self._unread(ran, command, error), tests=judged.counts), None
        receipt = replace(
            receipt,
            error=judged.error or receipt.error,
            signature=judged.signature,
            coverage=judged.coverage,
            tests=judged.counts,
            names=runner.keep(suite.passed) if suite is not None and receipt.result is Result.PASSED else None,
        )
        if suite is not None:
            receipt = replace(receipt, failing=suite.failed[:MAX_LOST], skipped=suite.left_out[:MAX_LOST])
        if receipt.result is Result.PASSED and (few := self._too_few(receipt)) is not None:
            receipt = receipt.because(few, Result.UNCLEAR)
        return self._with_coverage(runner, ran, receipt), suite

    def _unread(self, ran: Ran, command: str, error: str) -> Receipt:
        """The receipt of a run whose report is no evidence. A failure is one all the same."""
        result = Result.FAILED if ran.exit_code else Result.UNCLEAR
        return receipt_of(ran, command, result).because(error)

    def _too_few(self, receipt: Receipt) -> str | None:
        passed = receipt.tests.passed if receipt.tests is not None else None
        if passed is None or passed >= self.min_tests:
            return None
        return f"{passed} {_tests(passed)} passed, and {self.min_tests} are needed (min_tests)"

    def _with_coverage(self, runner: CheckRunner, ran: Ran, receipt: Receipt) -> Receipt:
        """The coverage of a declared report counts instead of what the run printed."""
        if not self.coverage_report or receipt.result is not Result.PASSED:
            return receipt
        from detent.core.gate.measured import measured_total  # noqa: PLC0415 - few gates declare one

        return replace(receipt, coverage=measured_total(runner, ran, patterns_of(self.coverage_report)))

    def _test_command(self, given: str | None) -> str:
        if self.command is not None:
            return own_command(self, self.command, given)
        name = gate_name(self)
        if given is None:
            raise Refused(f"gate {name} has no command", way_out=f"detent gate run {name}{GIVEN_COMMAND}")
        from detent.core.guard.shell.walk import simple_commands  # noqa: PLC0415
        from detent.core.testrun.detect import runner  # noqa: PLC0415

        if not any(runner(words) for words in simple_commands(given)):
            raise Refused(
                f"the command given to gate {name} runs no test runner that Detent knows",
                way_out=f"as a person, detent gate set {name} --command COMMAND -m WHY",
            )
        return given

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        return self.command is None and verdict is Verdict.PENDING and not sees_tests

    def person_task(self, phase: str) -> str | None:
        return f"gate {gate_name(self)} has no command that runs the tests of {phase}"

    def state_record(self, state: GateState, *, is_open: bool) -> tuple[tuple[str, ...], dict[str, Any]]:
        receipt = state.receipt or Receipt(result=Result.UNCLEAR)
        result = Result.FAILED if receipt.lost_count and not is_open else receipt.result
        return ("iteration_requirements", "test_iteration"), {
            "required": True,
            "completed": is_open and state.iterations > 0,
            "current_iteration": state.iterations,
            "max_iterations": self.max_iterations,
            "last_test_result": _RESULT_WORDS[result] if state.receipt else None,
            "last_test_command": receipt.command or None,
            "last_error": receipt.error,
            "failures_count": state.failures,
            "identical_failure_count": state.repeats,
            "coverage": receipt.coverage,
            "escalated": state.escalated is not None,
            "escalation_reason": state.escalated,
            "escalation_approved": state.approved_by is not None,
        }


class _First(NamedTuple):
    """The tests of the start, in a run on the present code; they need not pass if a phase has rewritten tests."""

    tried: int
    names: frozenset[str] | None
    passes: bool


def _first(ran: Ran, junit: tuple[str, ...]) -> _First | None:
    from detent.core.testrun import verdict  # noqa: PLC0415 - only a run needs it

    try:
        suite = read_suite(ran, junit)
    except Unreadable:
        return None
    judged = verdict.judge(ran.output, ran.exit_code, suite=suite)
    if judged.counts is None:
        return None
    return _First(
        judged.counts.passed + judged.counts.failed,
        suite.tried if suite is not None else None,
        judged.result is verdict.Result.PASSED,
    )


def _and_first(known: KnownNames | None, first: _First | None) -> KnownNames | None:
    if first is None or known is None:
        return known if first is None else KnownNames(first.tried, first.names)
    names = (known.names or frozenset()) | (first.names or frozenset())
    is_named = known.names is not None or first.names is not None
    return KnownNames(max(known.passed, first.tried), names if is_named else None)


def _and_stood(known: KnownNames | None, stood: Suite | None) -> KnownNames | None:
    """The baseline with the tests of the protected files, which may have been changed before it was recorded."""
    if stood is None:
        return known
    if known is None:
        return KnownNames(stood.counts.passed, stood.tried)
    return KnownNames(max(known.passed, stood.counts.passed), stood.tried | (known.names or frozenset()))


def lost_reason(receipt: Receipt, baseline: Baseline) -> str | None:
    """The sentence about lost tests that were not accepted; None if there are none."""
    lost = unaccepted(receipt.lost, baseline.accepted)
    before = "last pass" if receipt.is_fewer else "baseline"
    if not receipt.lost:
        count = receipt.lost_count
        return f"{count} {_tests(count)} fewer passed than in the {before}" if count else None
    if not lost and receipt.lost_count == len(receipt.lost):
        return None
    count = len(lost) + receipt.lost_count - len(receipt.lost)
    named = ", ".join(f"{name} ({outcome})" for name, outcome in list(lost.items())[:_MAX_NAMED])
    more = f" and {count - _MAX_NAMED} more" if count > _MAX_NAMED else ""
    return f"{count} {_tests(count)} of the {before} did not pass: {named}{more}"


def counts_text(counts: Counts | None, known: KnownTests | None) -> str:
    """Count the tests that ran and those of the start, as text."""
    if counts is None:
        return ""
    start = f" (start: {known.count})" if known is not None else ""
    others = {"failed": counts.failed, "skipped": counts.skipped, "expected to fail": counts.expected_fail}
    rest = "".join(f", {number} {word}" for word, number in others.items() if number)
    return f": {counts.passed} {_tests(counts.passed)}{start}{rest}"


def _accepted_text(baseline: Baseline) -> str:
    count = sum(not name.startswith(OTHERS) for name in baseline.accepted)
    return f"; the loss of {count} {_tests(count)} was accepted" if count else ""


def _tests(count: int) -> str:
    return "test" if count == 1 else "tests"


def _part(argument: str) -> str:
    return f"it runs a part of the tests ({argument}); run all of them"
