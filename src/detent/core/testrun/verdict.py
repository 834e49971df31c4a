"""The verdict on a test run, from its exit code and its output: passed, failed or unclear.

A run passes only with evidence: a run that was stopped, or in which no test ran, is unclear. Of a failed run the
verdict has the most telling line, and its signature, which is equal when the same failure happens again. Of any run it
has the coverage that was printed.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import ClassVar

import msgspec

from detent.core.guard.shell.walk import simple_commands
from detent.core.testrun.detect import runner
from detent.core.testrun.suite import Counts, Suite
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
    #: None if no runner said how many tests there were.
    counts: Counts | None = None
    #: The most telling line of a failed run, or the reason why a run is unclear.
    error: str | None = None
    #: Equal for two runs with the same failure.
    signature: str | None = None
    coverage: float | None = None


#: Exit codes of a run that `timeout`, a hang-up, Ctrl-C, a kill or the out-of-memory killer stopped.
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


def judge(output: str, exit_code: int | None, *, suite: Suite | None = None, by: str | None = None) -> TestRun:
    """The verdict on one run.

    `suite` is the report of the runner: its numbers count instead of those in the output, which a test can print.
    `by` is the name of the runner, if it is known. An exit code of None is unknown.
    """
    text = _plain(output)
    counted = tally(text) if suite is None else _with_report(tally(text), suite)
    result, reason = _verdict(counted, exit_code, is_pytest=counted.is_pytest or by == "pytest")
    error = None
    match result:
        case Result.FAILED:
            error = symptom(text, counted.line) or f"exit code {exit_code}"
        case Result.UNCLEAR:
            error = shortened(f"{reason}: {counted.line}" if counted.is_empty and counted.line else reason)
        case Result.PASSED:
            pass
    return TestRun(
        result=result,
        failures=counted.failed,
        passed=counted.passed,
        counts=_counts(counted),
        error=error,
        signature=None if error is None else _signature(error, counted.failed),
        coverage=coverage(text),
    )


def writes_report(command: str) -> bool:
    """Whether the command starts pytest itself, which then writes the report that Detent asks for."""
    return any(runner(words) == "pytest" for words in simple_commands(command))


def _with_report(counted: Tally, suite: Suite) -> Tally:
    """The summary with the numbers of the report. A failure that only the output has still counts."""
    counts = suite.counts
    failed = max(counted.failed or 0, counts.failed)
    return msgspec.structs.replace(
        counted,
        passed=counts.passed,
        failed=failed,
        skipped=counts.skipped,
        expected_fail=counts.expected_fail,
        is_success=counts.passed > 0 and not failed,
        is_empty=not counts.passed and not failed,
    )


def _counts(counted: Tally) -> Counts | None:
    if counted.passed is None:
        return None
    return Counts(
        passed=counted.passed,
        failed=counted.failed or 0,
        skipped=counted.skipped,
        expected_fail=counted.expected_fail,
    )


def repeats(current: str | None, earlier: Sequence[str | None]) -> int:
    """The number of runs in a row, the current one included, with the same signature; `earlier` is oldest first."""
    if current is None:
        return 0
    count = 1
    for previous in reversed(earlier):
        if previous != current:
            break
        count += 1
    return count


def _verdict(counted: Tally, exit_code: int | None, *, is_pytest: bool) -> tuple[Result, str]:
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
    if counted.was_ended:
        return Result.UNCLEAR, "pytest was ended before its last test"
    if counted.is_empty:
        return Result.UNCLEAR, "no test ran"
    if exit_code:
        return Result.FAILED, ""
    if counted.is_success:
        return Result.PASSED, ""
    return Result.UNCLEAR, "the output does not tell whether tests passed"


def _signature(error: str, failed: int | None) -> str:
    # With the number of failures: a run that fails on the same test but on fewer others is progress.
    return f"{signature(error)} ({failed} failed)" if failed else signature(error)


_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
#: Longer than any line of a runner; a long line of a test must not slow down the search.
_LONG_LINE = re.compile(r"^(.{2000}).+$", re.MULTILINE)
_GO_EVENT = re.compile(r'^\{(?=.*"Action":).*\}$', re.MULTILINE)


class _GoEvent(msgspec.Struct):
    output: str = msgspec.field(default="", name="Output")


_go_events = msgspec.json.Decoder(_GoEvent)


def _plain(output: str) -> str:
    text = _ESCAPE.sub("", output).replace("\r\n", "\n").replace("\r", "\n")
    # `go test -json` wraps the text of `go test -v`.
    text = _GO_EVENT.sub(_go_output, text) if '"Action":' in text else text
    return _LONG_LINE.sub(r"\1", text)


def _go_output(event: re.Match[str]) -> str:
    try:
        return _go_events.decode(event[0]).output.removesuffix("\n")
    except msgspec.MsgspecError:
        return event[0]


# The symptom of a failure

MAX_LINE = 200

_TELLING = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # The test and its reason in one line.
        r"^FAILED [^\s:]+::.+? - .+$",
        r"^\[ERROR\] +[\w.$]+[.:]\w+:\d+ .+$",
        # The reason.
        r"^E {3,}\S.*$",
        r"^[ \t]*[A-Za-z_][\w.]*(?:Error|Exception|Failure|Failed|Interrupt)(?: \[\w+\])?: .+$",
        r"^[ \t]+error: .+$",
        r"^thread '.+ panicked at .+$",
        r"^error(?:\[E\d+\])?: (?!could not compile|test failed|aborting).+$",
        r"^panic: .+$",
        r"^[ \t]*\S+\.go:\d+(?::\d+)?: .+$",
        # The test.
        r"^[ \t]*--- FAIL: .+$",
        r"^[ \t]*\u25cf .+ \u203a .+$",
        r"^[ \t]*FAIL[ \t]+\S+ > .+$",
        r"^not ok \d+ .+$",
        r"^[ \t]*\u2716 (?!failing tests).+$",
        r"^(?:FAIL|ERROR): \w+ \(.+\)$",
        r"^test .+ \.\.\. FAILED$",
        r"^(?:FAILED|ERROR) \S+.*$",
        r"^.*Required test coverage of .+ not reached.*$",
        r"^.*coverage threshold for .{1,200} not met.*$",
    )
)
_VAGUE = re.compile(
    r"^(?:\[ERROR\] |\S+: )?(?:ERROR|Error|error|FAIL|fatal|make(?:\[\d+\])?: \*\*\*)\b.*$", re.MULTILINE
)

_VARYING: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), placeholder)
    for pattern, placeholder in (
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"(?<![\d:.])\d\d:\d\d:\d\d(?:[.,]\d+)?(?![\d:])", "<time>"),
        (r"\b0x[0-9a-fA-F]+", "<address>"),
        (r"(?<![\w.-])(?:/private)?(?:/tmp|/var/folders|/var/tmp|/dev/shm)/[^\s'\"),:;\]]+", "<temp>"),
        (r"(?<=')\s\(\d+\)(?= panicked)", ""),
        (r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ns|\u00b5s|us|ms|s|sec|secs|seconds?|minutes?|m)\b", "<duration>"),
        # A position without a file name before it: `<anonymous>:1:2`, `at :1:2`.
        (r"(?<![\w)\]:]):\d+:\d+(?![\w.]|:\d)", ""),
        (r"(?<=[\w)\]]):\d+(?::\d+)?(?![\w.]|:\d)", ""),
        (r"(?i)\b(?P<word>line|col(?:umn)?) \d+", r"\g<word>"),
        (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uuid>"),
        (r"\s+", " "),
    )
)


def symptom(text: str, summary: str | None) -> str | None:
    """The most telling line; `summary` is the runner's line about the failure, used if no better line matches."""
    for pattern in _TELLING:
        if match := pattern.search(text):
            return shortened(match[0])
    if summary:
        return shortened(summary)
    if match := _VAGUE.search(text):
        return shortened(match[0])
    last = text.rstrip().rpartition("\n")[2]
    return shortened(last) or None


def shortened(line: str) -> str:
    line = line[: 10 * MAX_LINE].strip()
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "\u2026"


def signature(error: str) -> str:
    """The error without the parts that vary: times, durations, addresses, positions, temporary paths."""
    for pattern, placeholder in _VARYING:
        error = pattern.sub(placeholder, error)
    return error.strip()


# Coverage

_TOTAL = re.compile(r"^TOTAL[ \t].*$", re.MULTILINE)
_PERCENT = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d+)?)%")
_DIRECT = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[#\u2139 \t]*[Aa]ll files[ \t]*\|[ \t]*(\d{1,3}(?:\.\d+)?)[ \t]*\|",
        r"^[ \t]*(?:Statements|Lines)[ \t]*:[ \t]*(\d{1,3}(?:\.\d+)?)%",
        r"\bcoverage: (\d{1,3}(?:\.\d+)?)% of statements",
        r"^(\d{1,3}(?:\.\d+)?)% coverage, \d+/\d+ lines covered",
        r"^\| Total[ \t]+\| (\d{1,3}(?:\.\d+)?)%",
        r"^(?:Line Coverage|Total coverage|[ \t]*lines\.+): (\d{1,3}(?:\.\d+)?)%",
    )
)


def coverage(text: str) -> float | None:
    """The printed coverage in percent; the lowest of several, because a threshold must hold for each package."""
    percents = [percent for percent in _percents(text) if percent <= 100]
    return min(percents, default=None)


def _percents(text: str) -> Iterator[float]:
    for line in _TOTAL.finditer(text):
        percents = [float(percent) for percent in _PERCENT.findall(line[0][:500])]
        # Python tools print one number; LLVM prints regions, functions and then lines.
        if percents:
            yield percents[2] if len(percents) > 2 else percents[-1]
    for pattern in _DIRECT:
        yield from (float(match[1]) for match in pattern.finditer(text))
