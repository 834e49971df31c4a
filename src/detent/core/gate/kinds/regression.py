"""The `regression` gate: a test must show the bug. It fails on the files of the session's start, and passes now."""

import shlex
from collections.abc import Collection, Iterable
from typing import ClassVar

from msgspec.structs import replace

from detent.core.counted import listed
from detent.core.gate.checked import OneCommand, receipt_of
from detent.core.gate.evidence import MAX_LOST, GateState, Receipt, Result, Verdict
from detent.core.gate.kind import GIVEN_COMMAND, CheckRunner, Evidence, GateSettings, Ran, Surroundings, gate_name
from detent.core.gate.kinds.changes import NOT_CAPTURED
from detent.core.gate.reported import Patterns, check_patterns, patterns_of, read_suite
from detent.core.reports.limits import Unreadable
from detent.core.testrun.baseline import Baseline
from detent.core.testrun.suite import Outcome, Suite
from detent.errors import Refused

#: How many tests a reason names.
_MAX_NAMED = 5
_NO_COMMAND = "no test command is known"


class RegressionGate(GateSettings, OneCommand, frozen=True, kw_only=True, tag="regression"):
    """A test must fail on the files of the session's start, in the test itself, and pass now.

    Both runs are in copies of the project that differ in nothing but the files that are no tests, so that a test
    cannot tell them apart by their place.
    """

    runs_tests: ClassVar[bool] = True
    takes_names: ClassVar[bool] = True

    #: The test command; a session takes the one of `[run] tests`.
    command: str | None = None
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    env: tuple[str, ...] = ()
    #: Patterns of the JUnit XML that the command writes.
    junit: Patterns = ()

    def __post_init__(self) -> None:
        self.check_settings()
        check_patterns("junit", self.junit)

    @property
    def report_files(self) -> tuple[str, ...]:
        return patterns_of(self.junit)

    def suite_of(self, ran: Ran) -> Suite | None:
        try:
            return read_suite(ran, self.report_files)
        except Unreadable:
            return None

    # Judging

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        verdict, reason = super().judge(evidence)
        if evidence.gate.receipt is None and self.command is None:
            reason = f"{_NO_COMMAND}, so no test has shown the bug yet"
        return verdict, reason

    def passed(self, receipt: Receipt, baseline: Baseline) -> str:
        if not receipt.shown:
            return "the tests failed on the files of the start, and pass now; the test runner does not name them"
        return f"{listed(receipt.shown, _MAX_NAMED)} failed on the files of the start, and passes now"

    def way_out(self, phase: str, state: GateState) -> str:
        name = gate_name(self)
        by_person = f"or, as a person, detent approve {phase} --gate {name} -m WHY"
        if self.command is None and state.receipt is None:
            return f"detent gate run tests{GIVEN_COMMAND}, then detent gate run {name}; {by_person}"
        shown = shlex.join(state.receipt.shown) if state.receipt is not None else ""
        return f"detent gate run {name} -- {shown or 'TEST…'}; {by_person}"

    def requirement(self, phase: str, folder: str) -> str:
        name = gate_name(self)
        when = "Detent runs it when your turn ends" if self.command else f"Run `detent gate run {name}`"
        return (
            "write a test that shows the bug. It must fail on the files as they were when the session began, "
            "in the test itself (a failed import is no proof), and pass now. All new tests are tried; if only some of "
            f"them show the bug, name these with `detent gate run {name} --phase {phase} -- tests/test_x.py::test_y`. "
            f"{when}{self.tries()}. "
            "If no test can show the bug, ask a person: only a person can open the gate without one."
        )

    # Running

    @property
    def recorded_command(self) -> None:
        """Another gate of the phase may have the command."""
        return

    def contradiction(self, receipt: Receipt) -> str | None:
        """Two runs decide, so the receipt of a pass has no exit code."""
        return super().contradiction(replace(receipt, exit_code=receipt.exit_code or 0))

    def skipped_because(self, project: Surroundings) -> str | None:
        return None if project.captures_all else f"no changes and regression gates: {NOT_CAPTURED}"

    def fitted(self, project: Surroundings) -> "tuple[RegressionGate, str | None]":
        return (self if self.command is not None else replace(self, command=project.tests)), None

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        """`command` is the one of the gate, or the names of tests as words of a shell."""
        line = runner.test_command()
        if line is None:
            raise Refused(
                f"gate {gate_name(self)} has no command: {_NO_COMMAND}",
                way_out=f"detent gate set tests --command COMMAND -m WHY, or detent gate run tests{GIVEN_COMMAND}",
            )
        named = runner.named() if command in (None, line) else tuple(shlex.split(command or ""))
        return replace(self._tried(runner, line, named), command=line, named=named[:MAX_LOST])

    def _tried(self, runner: CheckRunner, command: str, named: tuple[str, ...]) -> Receipt:
        present = runner.run_copy(command, of_start=False)
        if present.problem:
            return receipt_of(present, command, Result.ERROR)
        now = self.suite_of(present)
        if now is None or not now.outcomes:
            return self._counted(runner, command, present, named)
        if named:
            chosen, unknown = _matching(now.outcomes, named)
            if unknown:
                return _failed(present, f"{listed(unknown, _MAX_NAMED)}: no such test in `{command}`")
        else:
            chosen = tuple(sorted(test for test in now.outcomes if not runner.stood(test)))
        if not chosen:
            return _failed(present, "no test is new since the session began; a new one must show the bug")
        if failing := [test for test in chosen if now.outcomes[test] is not Outcome.PASSED]:
            return _failed(present, f"{_outcomes(failing, now)}: it must pass now")
        before = runner.run_copy(command, of_start=True, only=chosen)
        suite = self.suite_of(before)
        if not before.problem and (suite is None or not (suite.unnamed or suite.outcomes.keys() >= set(chosen))):
            # A test that pytest does not find by the name that it reports, such as one of a base class.
            before = runner.run_copy(command, of_start=True)
            suite = self.suite_of(before)
        return _compared(before, suite, chosen)

    def _counted(self, runner: CheckRunner, command: str, present: Ran, named: tuple[str, ...]) -> Receipt:
        """For a runner that does not name its tests: their numbers count."""
        from detent.core.testrun import verdict  # noqa: PLC0415 - only a run needs it

        now = verdict.judge(present.output, present.exit_code)
        if named:
            error = f"`{command}` names no tests, so {listed(named, _MAX_NAMED)} cannot be found in it"
            return replace(_failed(present, error), result=Result.UNCLEAR)
        if now.result is not verdict.Result.PASSED:
            result = Result(now.result)
            return replace(receipt_of(present, command, result), error=now.error, signature=now.signature)
        if not runner.has_new_tests():
            return _failed(present, "no test file is new or changed since the session began; a test must show the bug")
        before = runner.run_copy(command, of_start=True)
        if before.problem:
            return _compared(before, None, ())
        then = verdict.judge(before.output, before.exit_code)
        if not (then.counts is not None and then.counts.failed):
            why = then.error or "they passed"
            return _failed(before, f"no test failed on the files of the start with the tests of now: {why}")
        return _passed(before, ())

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        return self.command is None and verdict is Verdict.PENDING and not sees_tests

    def person_task(self, phase: str) -> str | None:
        return f"gate {gate_name(self)} has no command that runs the tests of {phase}"


def _compared(before: Ran, suite: Suite | None, chosen: tuple[str, ...]) -> Receipt:
    """The receipt by the run on the files of the start."""
    if before.problem:
        return replace(receipt_of(before, "", Result.ERROR), error=f"on the files of the start: {before.problem}")
    if suite is None:
        return replace(
            _failed(before, "the run on the files of the start wrote no report that names its tests"),
            result=Result.UNCLEAR,
        )
    others = [test for test in chosen if test not in suite.failed_inside]
    if not others:
        return _passed(before, chosen)
    shown = tuple(test for test in chosen if test in suite.failed_inside)
    how = f"; {listed(shown, _MAX_NAMED)} shows it: name only those that do" if shown else ""
    failed = _failed(before, f"not shown on the files of the start: {_outcomes(others, suite)}{how}")
    return replace(failed, shown=shown[:MAX_LOST])


def _passed(ran: Ran, shown: tuple[str, ...]) -> Receipt:
    # It ended with a failure, as it must.
    return replace(receipt_of(ran, "", Result.PASSED), exit_code=None, shown=shown[:MAX_LOST])


def _failed(ran: Ran, error: str) -> Receipt:
    return receipt_of(ran, "", Result.FAILED).because(error)


def _matching(tests: Collection[str], named: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests that the names mean, each a test, a class or a file; and the names that mean none."""
    chosen: dict[str, None] = {}
    unknown: list[str] = []
    for name in named:
        whole = name.partition("[")[0].removeprefix("./")
        inside = [test for test in tests if test == whole or test.startswith(f"{whole}::")]
        chosen.update(dict.fromkeys(inside))
        if not inside:
            unknown.append(name)
    return tuple(chosen), tuple(unknown)


def _outcomes(tests: Iterable[str], suite: Suite) -> str:
    def outcome_text(test: str) -> str:
        outcome = suite.outcomes.get(test)
        if outcome is None:
            return "could not be collected" if suite.unnamed else "did not run"
        is_outside = outcome is Outcome.FAILED and test not in suite.failed_inside
        return "failed outside of the test" if is_outside else str(outcome)

    return listed([f"{test} ({outcome_text(test)})" for test in tests], _MAX_NAMED)
