"""The verdict on a test run, by its exit code and its output: passed, failed or unclear.

A run passes only with evidence: one that was stopped, or in which no test ran, is unclear.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

import msgspec

from detent.core.testrun.coverage import coverage
from detent.core.testrun.detect import runner
from detent.core.testrun.symptom import shortened, signature, symptom
from detent.core.testrun.tally import Tally, tally

__all__ = ["Result", "TestRun", "coverage", "judge", "repeats", "runner", "signature"]


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNCLEAR = "unclear"


class TestRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    # pytest would take the name for a class of tests.
    __test__: ClassVar[bool] = False

    result: Result
    failures: int | None = None
    passed: int | None = None
    #: The most telling line of a failed run; of an unclear one, why it is unclear.
    error: str | None = None
    #: Equal for two runs that failed alike, whenever and wherever they ran.
    signature: str | None = None
    coverage: float | None = None


#: How a run ends that was stopped from outside: by `timeout`, hang-up, Ctrl-C, kill and the out-of-memory killer.
_STOPPED = {124: "by its time limit"} | {
    code: f"by signal {signal}" for signal in (1, 2, 9, 14, 15) for code in (-signal, 128 + signal)
}
_NOT_STARTED = {126: "the test command cannot be executed", 127: "the test command was not found"}
_PYTEST_DID_NOT_TEST = {
    2: "pytest was interrupted",
    3: "pytest broke down",
    4: "pytest was called wrongly",
    5: "pytest found no tests",
}


def judge(output: str, exit_code: int | None, *, trusted_exit: bool = False, by: str | None = None) -> TestRun:
    """`trusted_exit` tells that Detent ran the command itself; in what it only observed, a pipe may hide the exit code.

    `by` is the name of the runner where it is known. An exit code of None is unknown.
    """
    text = _plain(output)
    counted = tally(text)
    result, reason = _verdict(
        counted, exit_code, trusted_exit=trusted_exit, is_pytest=counted.is_pytest or by == "pytest"
    )
    error = None
    match result:
        case Result.FAILED:
            error = symptom(text, counted.line) or f"exit code {exit_code}"
        case Result.UNCLEAR:
            error = shortened(f"{reason}: {counted.line}" if counted.is_empty and counted.line else reason)
    return TestRun(
        result=result,
        failures=counted.failed,
        passed=counted.passed,
        error=error,
        signature=None if error is None else _signature(error, counted.failed),
        coverage=coverage(text),
    )


def repeats(current: str | None, earlier: Sequence[str | None]) -> int:
    """How many runs in a row, the present one included, failed with the same signature; `earlier` is oldest first."""
    if current is None:
        return 0
    count = 1
    for previous in reversed(earlier):
        if previous != current:
            break
        count += 1
    return count


def _verdict(counted: Tally, exit_code: int | None, *, trusted_exit: bool, is_pytest: bool) -> tuple[Result, str]:
    if counted.failed:
        return Result.FAILED, ""
    if exit_code is not None and (stopped := _STOPPED.get(exit_code)):
        return Result.UNCLEAR, f"the run was stopped {stopped}"
    if exit_code in _NOT_STARTED:
        return Result.UNCLEAR, _NOT_STARTED[exit_code]
    if is_pytest and exit_code in _PYTEST_DID_NOT_TEST:
        return Result.UNCLEAR, _PYTEST_DID_NOT_TEST[exit_code]
    if counted.is_failure:
        return Result.FAILED, ""
    if counted.is_empty:
        return Result.UNCLEAR, "no test ran"
    if exit_code:
        return Result.FAILED, ""
    if counted.is_success or (exit_code == 0 and trusted_exit):
        return Result.PASSED, ""
    return Result.UNCLEAR, "the output does not tell whether the tests passed"


def _signature(error: str, failed: int | None) -> str:
    # With the number of failures: a run that fails on the same test but on fewer others is progress.
    return f"{signature(error)} ({failed} failed)" if failed else signature(error)


_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
#: No runner's own line is longer; what a test dumps in one line must not slow the search down.
_LONG_LINE = re.compile(r"^(.{2000}).+$", re.MULTILINE)
_GO_EVENT = re.compile(r'^\{(?=.*"Action":).*\}$', re.MULTILINE)


class _GoEvent(msgspec.Struct):
    output: str = msgspec.field(default="", name="Output")


_go_events = msgspec.json.Decoder(_GoEvent)


def _plain(output: str) -> str:
    text = _ESCAPE.sub("", output).replace("\r\n", "\n").replace("\r", "\n")
    # What `go test -json` wraps is the text of `go test -v`.
    text = _GO_EVENT.sub(_go_output, text) if '"Action":' in text else text
    return _LONG_LINE.sub(r"\1", text)


def _go_output(event: re.Match[str]) -> str:
    try:
        return _go_events.decode(event[0]).output.removesuffix("\n")
    except msgspec.MsgspecError:
        return event[0]
