"""The `tests` gate: a test run must pass, within a number of tries."""

from typing import Any, ClassVar

from msgspec.structs import replace

from detent.core.gate.checked import TAIL_CHARS, Checked, own_command, receipt_of
from detent.core.gate.evidence import GateState, Receipt, Result, Verdict
from detent.core.gate.kind import CheckRunner, GateSettings, Ran, gate_name
from detent.errors import Refused

_RESULT_WORDS = {
    Result.PASSED: "passed",
    Result.FAILED: "failed",
    Result.UNCLEAR: "inconclusive",
    Result.ERROR: "inconclusive",
}


class TestsGate(GateSettings, Checked, frozen=True, kw_only=True, tag="tests"):
    """A test run must pass, within a number of tries."""

    # pytest would take the name for a class of tests.
    __test__: ClassVar[bool] = False
    protects: ClassVar[bool] = True

    #: The command that `detent gate run` executes; without it a run seen in the agent's shell counts.
    command: str | None = None
    #: The files whose change makes a passed run stale.
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    coverage: int | None = None
    #: Files besides the tests and the runner's settings that are kept as they were when the session began.
    protected: tuple[str, ...] = ()
    env: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_settings()

    def shortfall(self, receipt: Receipt) -> str | None:
        if self._falls_short(receipt):
            return f"coverage is {receipt.coverage:g} %, and {self.coverage} % are needed"
        if receipt.protected not in (None, Result.PASSED):
            return f"the tests as they were when the session began: {receipt.protected}"
        return None

    def limit_reason(self, receipt: Receipt) -> str:
        return "coverage_below_threshold" if self._falls_short(receipt) else "max_iterations"

    def _falls_short(self, receipt: Receipt) -> bool:
        return self.coverage is not None and receipt.coverage is not None and receipt.coverage < self.coverage

    def way_out(self, phase: str, state: GateState) -> str:
        run = f"detent gate run {gate_name(self)}"
        return run if self.command else f"{run} -- YOUR TEST COMMAND"

    def requirement(self, phase: str, folder: str, tests: str | None) -> str:
        enough = f", with {self.coverage} % coverage or more" if self.coverage is not None else ""
        protected = "; the tests that stood when the session began must also pass as they were"
        command = self.command or tests
        if command:
            return f"`{command}` must pass{enough}{protected}. Detent runs it when your turn ends{self.tries()}."
        run = f"detent gate run {gate_name(self)} --phase {phase} -- YOUR TEST COMMAND"
        return f"the tests must pass{enough}{protected}. Run them after your last change with `{run}`."

    def runnable(self, tests: str | None) -> str | None:
        return self.command or tests

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        line = self._test_command(command)
        ran = runner.run(line)
        if ran.problem:
            return receipt_of(ran, line, Result.ERROR)
        receipt = self._read(ran, line)
        if receipt.result is not Result.PASSED:
            return receipt
        again = runner.run_protected(line)
        if again is None:
            return receipt
        protected = Result.ERROR if again.problem else self._read(again, line).result
        return replace(receipt, protected=protected)

    def observe(self, command: str, output: str, exit_code: int | None) -> Receipt | None:
        if self.protected or self.command is not None:
            return None
        from detent.core.testrun import verdict  # noqa: PLC0415 - only a run needs it

        judged = verdict.judge(output, exit_code)
        return Receipt(
            result=Result(judged.result),
            command=command,
            exit_code=exit_code,
            tail=output[-TAIL_CHARS:],
            error=judged.error,
            signature=judged.signature,
            coverage=judged.coverage,
            observed=True,
        )

    def _read(self, ran: Ran, command: str) -> Receipt:
        from detent.core.testrun import verdict  # noqa: PLC0415 - only a run needs it

        # Only the exit code of a declared command is trusted; for any other the output decides.
        judged = verdict.judge(ran.output, ran.exit_code, trusted_exit=self.command is not None)
        receipt = receipt_of(ran, command, Result(judged.result))
        return replace(
            receipt, error=judged.error or receipt.error, signature=judged.signature, coverage=judged.coverage
        )

    def _test_command(self, given: str | None) -> str:
        if self.command is not None:
            return own_command(self, self.command, given)
        name = gate_name(self)
        if given is None:
            raise Refused(f"gate {name} has no command", way_out=f"detent gate run {name} -- YOUR TEST COMMAND")
        from detent.core.guard.shell.walk import simple_commands  # noqa: PLC0415
        from detent.core.testrun.detect import runner  # noqa: PLC0415

        if not any(runner(words) for words in simple_commands(given)):
            raise Refused(
                f"the command given to gate {name} runs no test runner that Detent knows",
                way_out=f"declare it as the command of gate {name} in detent.toml, for the next session",
            )
        return given

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        return self.command is None and verdict is Verdict.PENDING and not sees_tests

    def person_task(self, phase: str) -> str | None:
        return f"no command runs the tests of {phase}: set tests under [run] in detent.toml"

    def state_record(self, state: GateState, *, is_open: bool) -> tuple[tuple[str, ...], dict[str, Any]]:
        receipt = state.receipt or Receipt(result=Result.UNCLEAR)
        return ("iteration_requirements", "test_iteration"), {
            "required": True,
            "completed": is_open and state.iterations > 0,
            "current_iteration": state.iterations,
            "max_iterations": self.max_iterations,
            "last_test_result": _RESULT_WORDS[receipt.result] if state.receipt else None,
            "last_test_command": receipt.command or None,
            "last_error": receipt.error,
            "failures_count": state.failures,
            "identical_failure_count": state.repeats,
            "coverage": receipt.coverage,
            "escalated": state.escalated is not None,
            "escalation_reason": state.escalated,
            "escalation_approved": state.approved_by is not None,
        }
