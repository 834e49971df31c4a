"""Gates that a run of a check decides: the receipt, retries, and when a passed run is stale."""

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from detent.core.counted import listed
from detent.core.gate.evidence import Facts, GateState, RanBy, Receipt, Result, Verdict
from detent.core.gate.kind import Evidence, Gate, Opener, Ran, gate_name
from detent.core.gate.program import accepted_name, other_program
from detent.core.testrun.baseline import Baseline
from detent.errors import Refused

if TYPE_CHECKING:
    import msgspec

#: Variables that a reason names; the receipt has all of them.
_MAX_NAMES = 8

TAIL_CHARS = 2_000
#: Long enough for the paths of a conflict.
MAX_ERROR = 2_000
#: The beginning of an error that Detent prints.
OWN_ERROR = "detent: "


class Checked(Gate):
    """For kinds that a run decides.

    A kind implements `run`. If a passed run may not be enough it implements `shortfall`; if it may not tell enough,
    `unknown`.
    """

    __slots__ = ()

    opened_by = Opener.RUN

    @property
    def max_iterations(self) -> int:
        """After this many runs without success a person has to decide."""
        return 10

    @property
    def circuit_breaker(self) -> int | None:
        """The same, for the same failure this many times in a row."""
        return None

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """Every file but prose, so that a pass expires with the next edit. Override it to name files, or none."""
        return ()

    def shortfall(self, receipt: Receipt, baseline: Baseline) -> str | None:
        """The reason why a run that passed does not open the gate; None if it does."""
        return None

    def unknown(self, receipt: Receipt) -> str | None:
        """The fact that a passed run does not tell although the gate needs it; None if it tells all."""
        return None

    def passed(self, receipt: Receipt, baseline: Baseline) -> str:
        """The reason of a pass."""
        return f"passed: {receipt.command or 'reported'}"

    def limit_reason(self, receipt: Receipt) -> str:
        """The kind of escalation when no runs are left."""
        return "max_iterations"

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        state = evidence.gate
        receipt = state.receipt
        if receipt is None:
            return Verdict.PENDING, _no_run(state)
        tries = f"run {state.iterations} of {self.max_iterations}"
        if state.escalated is not None:
            return Verdict.FAIL, f"{tries}{self._after_escalation(receipt, evidence.baseline, state.escalated)}"
        if evidence.facts.in_run and receipt.by is not RanBy.RUNNER and self.runnable() is not None:
            return Verdict.PENDING, "the run that started this agent runs the check itself when the turn ends"
        match receipt.result:
            case Result.FAILED:
                violated = f"articles {', '.join(receipt.violated)}: " if receipt.violated else ""
                return Verdict.FAIL, f"{tries} failed: {violated}{receipt.error or f'exit code {receipt.exit_code}'}"
            case Result.UNCLEAR:
                return Verdict.PENDING, f"{tries} was unclear: {receipt.error or 'no result could be read from it'}"
            case Result.ERROR:
                return Verdict.ERROR, f"the check could not run: {receipt.error or receipt.command}{_left_out(receipt)}"
            case Result.PASSED:
                other = self._other_program(evidence)
                if other is not None:
                    return Verdict.FAIL, other
                return self._judge_pass(receipt, evidence.facts, evidence.baseline)

    def _after_escalation(self, receipt: Receipt, baseline: Baseline, kind: str) -> str:
        is_pass = receipt.result is Result.PASSED
        problem = self.shortfall(receipt, baseline) if is_pass else receipt.error or f"it ended as {receipt.result}"
        if problem is None:
            return f" passed, but a person must decide first: runs before it failed ({kind})"
        return f", a person must decide ({kind}): {problem}"

    def _other_program(self, evidence: Evidence) -> str | None:
        """The reason that the run used another program than the session knows; None if a person accepted that one."""
        program = evidence.gate.receipt.program if evidence.gate.receipt is not None else None
        other = other_program(evidence.programs, program)
        if other is None or program is None or (name := accepted_name(program)) in evidence.baseline.accepted:
            return None
        return f"{other}; a person accepts it with `detent gate accept {gate_name(self)} {name} -m WHY`"

    def _judge_pass(self, receipt: Receipt, facts: Facts, baseline: Baseline) -> tuple[Verdict, str]:
        shortfall = self.shortfall(receipt, baseline)
        if shortfall is not None:
            return Verdict.FAIL, shortfall
        unknown = self.unknown(receipt)
        if unknown is not None:
            return Verdict.PENDING, unknown
        if receipt.inputs is not None:
            if receipt.inputs in facts.damaged:
                return (
                    Verdict.ERROR,
                    f"{facts.damaged[receipt.inputs]} is damaged: its content is not what was recorded",
                )
            if receipt.inputs not in facts.changed:
                return Verdict.ERROR, "another run was recorded meanwhile; ask again"
            changed = facts.changed[receipt.inputs]
            if changed:
                return Verdict.STALE, f"{listed(changed)} changed after the run that passed"
        return Verdict.PASS, self.passed(receipt, baseline)

    @property
    def recorded_command(self) -> str | None:
        """The command that receipts of its runs name; None if that may be another one each time."""
        return self.runnable()

    def contradiction(self, receipt: Receipt) -> str | None:
        if receipt.result is not Result.PASSED or receipt.aside is not None or self.is_reported:
            return None
        if receipt.exit_code not in (0, None) or (receipt.exit_code is None and receipt.by is not RanBy.SEEN):
            return f"it counts as passed with the exit code {receipt.exit_code}"
        if self.recorded_command not in (None, receipt.command):
            return f"it is of `{receipt.command}`, and the command of the gate is `{self.recorded_command}`"
        if self.inputs is not None and receipt.inputs is None:
            return "it names no input files, and the gate has some"
        return None

    def way_out(self, phase: str, state: GateState) -> str:
        return f"detent gate run {gate_name(self)}"

    def __post_init__(self) -> None:
        self.check_settings()

    def check_settings(self) -> None:
        """Refuse entries of `env` that cannot be used."""
        if not self.env:
            return
        from detent.core.gate.environment import declared_problems  # noqa: PLC0415 - few gates declare any

        problems = declared_problems(self.env)
        if problems:
            raise ValueError(f"env: {'; '.join(problems)}")

    def exhausted(self, state: GateState, baseline: Baseline) -> str | None:
        receipt = state.receipt
        if receipt is None or state.escalated is not None:
            return None
        if receipt.result is Result.PASSED and self.shortfall(receipt, baseline) is None:
            return None
        if self.circuit_breaker is not None and state.repeats >= self.circuit_breaker:
            return "circuit_breaker"
        return self.limit_reason(receipt) if state.iterations >= self.max_iterations else None

    def tries(self) -> str:
        return f", {self.max_iterations} times at most"


class OneCommand(Checked):
    """For kinds whose check is one command, which a person can set."""

    __slots__ = ()

    @property
    def command(self) -> str | None:
        """The command of the check; None if the settings name none."""
        return None

    def runnable(self) -> str | None:
        return self.command

    def with_command(self, command: str) -> Gate:
        return cast("Gate", replace(cast("msgspec.Struct", self), command=command))

    def with_shortfall(self, receipt: Receipt) -> Receipt:
        """The receipt of a pass, with the reason if it is not enough."""
        short = self.shortfall(receipt, Baseline())
        return receipt if short is None else receipt.because(short)


def _left_out(receipt: Receipt) -> str:
    """The part of the reason that names what the check did not get."""
    if not receipt.left_out:
        return ""
    names = [entry for entry in receipt.left_out if not entry.startswith("/")]
    entries = [entry for entry in receipt.left_out if entry.startswith("/")]
    text = f"; PATH lacked {', '.join(entries)}" if entries else ""
    if names:
        line = ", ".join(f'"{name}"' for name in names[:1])
        text += f"; variables left out: {listed(names, _MAX_NAMES)} (a gate passes one on with env = [{line}])"
    return text


def _no_run(state: GateState) -> str:
    aside = state.aside
    return "no run yet" if aside is None else f"no run yet that counts; `{aside.command}` {aside.result}: {aside.aside}"


def unaccepted_findings(receipt: Receipt, baseline: Baseline) -> tuple[tuple[str, ...], int]:
    """The findings of a run that no person accepted, as far as they are named, and how many there are."""
    left = tuple(name for name in receipt.findings if name not in baseline.accepted)
    return left, receipt.finding_count - len(receipt.findings) + len(left)


def receipt_of(ran: Ran, command: str, result: Result) -> Receipt:
    """The receipt of one command, with its last line as the error if it did not pass."""
    lines = [line for line in ran.output.splitlines() if line.strip()]
    # Below the reason of a refusal Detent names the way out.
    last = next((line for line in reversed(lines) if line.startswith(OWN_ERROR)), lines[-1] if lines else "")
    error = None if result is Result.PASSED else (ran.problem or last)[:MAX_ERROR]
    return Receipt(
        result=result,
        command=command,
        exit_code=ran.exit_code,
        duration_s=round(ran.duration_s, 3),
        tail=ran.output[-TAIL_CHARS:],
        error=error,
        signature=error,
    )


def exit_result(ran: Ran) -> Result:
    """The result of a command whose exit code decides."""
    if ran.problem:
        return Result.ERROR
    return Result.PASSED if ran.exit_code == 0 else Result.FAILED


def own_command(gate: Gate, declared: str, given: str | None) -> str:
    """The declared command; another one is refused."""
    if given not in (None, declared):
        name = gate_name(gate)
        raise Refused(f"gate {name} is decided by its own command: {declared}", way_out=f"detent gate run {name}")
    return declared
