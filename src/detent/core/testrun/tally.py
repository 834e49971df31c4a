"""The summary of a test runner: how many tests passed and failed, or at least the overall result.

Only lines that a runner prints as its summary are read, from the start of the line; a test that logs "1 failed" in the
middle of one is not counted. A project may run several runners in one command, so their numbers are added up.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import msgspec

#: A summary is short. Counting stops here, so that a line of a megabyte costs nothing.
MAX_SUMMARY = 500


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    passed: int | None = None
    failed: int | None = None
    skipped: int = 0
    #: Tests that failed as they were expected to. They are no evidence of anything.
    expected_fail: int = 0
    is_success: bool = False
    #: A failure without a number, such as a broken build or a missed threshold.
    is_failure: bool = False
    #: No test was found, or all were skipped.
    is_empty: bool = False
    is_pytest: bool = False
    #: `pytest.exit` ended the run, with any exit code.
    was_ended: bool = False
    #: The first summary of a failure, or of a run without tests.
    line: str | None = None


def tally(text: str) -> Tally:
    """Count the tests in plain text: without terminal escapes, with `\\n` at the end of its lines."""
    read = (
        *(_counted(form, text) for form in _FORMS.values()),
        _tap(text),
        _go(text),
        _gradle(text),
        _playwright(text),
    )
    counts = [count for count in read if count]
    passed = sum(count.passed or 0 for count in counts)
    failed = sum(count.failed for count in counts)
    has_run = passed + failed > 0 or any(count.passed is None for count in counts)
    empty = _EMPTY.search(text)
    # A build can succeed without tests.
    is_empty = not has_run and bool(counts or empty)
    return Tally(
        passed=passed if any(count.passed is not None for count in counts) else None,
        failed=failed if counts else None,
        skipped=sum(count.skipped for count in counts),
        expected_fail=sum(count.expected_fail for count in counts),
        is_success=not failed and not is_empty and (has_run or bool(_SUCCESS.search(text))),
        is_failure=bool(_FAILURE.search(text)),
        is_empty=is_empty,
        is_pytest=bool(_PYTEST.search(text)),
        was_ended=bool(_ENDED.search(text)),
        line=next((count.line for count in counts if count.failed), empty and empty[0].strip()),
    )


class _Kind(Enum):
    PASSED = "passed"
    FAILED = "failed"
    TOTAL = "total"
    SKIPPED = "skipped"
    EXPECTED_FAIL = "expected_fail"


_WORDS = {
    _Kind.PASSED: "passed passing pass succeeded xpassed",
    _Kind.EXPECTED_FAIL: "xfailed 'expected failures'",
    _Kind.FAILED: "failed failing fail failure failures error errors cancelled 'unexpected successes'",
    _Kind.TOTAL: "total tests test examples example runs run completed 'tests run'",
    _Kind.SKIPPED: "skipped deselected skip skips pending ignored todo disabled incomplete risky",
}
_KIND = {word.strip("'"): kind for kind, words in _WORDS.items() for word in re.findall(r"'[^']+'|\S+", words)}

_NUMBER_FIRST = re.compile(r"(?P<count>\d+) (?P<unit>(?:sub)?tests? )?(?P<word>[a-z]+)")
_WORD_FIRST = re.compile(r"(?P<unit>)(?P<word>[A-Za-z]+(?: [a-z]+)?)[:=] *(?P<count>\d+)")
_WORD_THEN_NUMBER = re.compile(r"(?P<unit>)(?P<word>[a-z]+) (?P<count>\d+)$")


class _Form(NamedTuple):
    """The summary of one runner: the pattern of its lines, and of a number with its word."""

    line: re.Pattern[str]
    pair: re.Pattern[str] = _NUMBER_FIRST
    #: Lines that count files instead of tests, for a file that fails before its first test.
    files: re.Pattern[str] | None = None


def _form(line: str, pair: re.Pattern[str] = _NUMBER_FIRST, files: str | None = None) -> _Form:
    return _Form(re.compile(line, re.MULTILINE), pair, re.compile(files, re.MULTILINE) if files else None)


_PYTEST_PART = r"\d+ (?:subtests )?(?:failed|passed|skipped|deselected|xfailed|xpassed|errors?|warnings?|rerun)"

_FORMS: dict[str, _Form] = {
    "pytest": _form(rf"^(?:=+ )?{_PYTEST_PART}(?:, {_PYTEST_PART})* in \d[\d.]*s\b"),
    "unittest": _form(r"^Ran \d+ tests? in \d|^(?:OK|FAILED) \([a-z ]+=\d.*\)$"),
    "cargo": _form(r"^test result: (?:ok|FAILED)\. .*$"),
    "nextest": _form(r"^[ \t]*Summary \[.*$"),
    "jest": _form(r"^Tests:[ \t]+(?:\d+ \w+, ){0,9}\d+ total", files=r"^Test Suites:[ \t]+(?:\d+ \w+, ){0,9}\d+ total"),
    "vitest": _form(
        r"^[ \t]*(?:Tests[ \t]{2,}\d+ \w+.*\(\d+\)$|Errors[ \t]{2,}\d+ errors?$)",
        files=r"^[ \t]*Test Files[ \t]{2,}\d+ \w+.*$",
    ),
    "mocha, bun": _form(r"^[ \t]+\d+ (?:passing|failing|pending|pass|fail|skip)\b"),
    "node": _form(r"^[#\u2139] (?:tests|pass|fail|cancelled|skipped|todo) \d+$", _WORD_THEN_NUMBER),
    "maven": _form(r"^(?:\[\w+\] )?Tests run: \d+, Failures: \d+, Errors: \d+(?:, Skipped: \d+)?$", _WORD_FIRST),
    "gradle": _form(r"^\d+ tests? completed(?:, \d+ \w+)*"),
    "dotnet": _form(r"^(?:Passed|Failed)! +- Failed: .*$|^Test summary: total: .*$", _WORD_FIRST),
    "rspec, minitest, exunit": _form(r"^(?:\d+ \w+, )*\d+ (?:examples?|runs|tests?), .*\b\d+ failures?\b.*$"),
    "phpunit": _form(r"^Tests: \d+, Assertions: .*$", _WORD_FIRST),
    "phpunit, all well": _form(r"^OK \(\d+ tests?, \d+ assertions?\)$"),
    "junit 4": _form(r"^Tests run: \d+,  Failures: \d+$", _WORD_FIRST),
    "junit 4, all well": _form(r"^OK \(\d+ tests?\)$"),
    "deno": _form(r"^(?:ok|FAILED) \| \d+ .*$"),
}

_ENDED = re.compile(r"^!{3,} (?:_pytest\.outcomes\.)?Exit: ", re.MULTILINE)
_PYTEST = re.compile(
    rf"^=+ test session starts =|^(?:=+ )?{_PYTEST_PART}(?:, {_PYTEST_PART})* in \d|^(?:ERROR: )?usage: .*pytest\b",
    re.MULTILINE,
)
_SUCCESS = re.compile(
    r"^(?:\[INFO\] )?BUILD SUCCESS(?:FUL)?\b|^Result: PASS$|^100% tests passed|^ +congratulations :\)", re.MULTILINE
)
_FAILURE = re.compile(
    r"^(?:\[\w+\] )?BUILD FAIL(?:URE|ED)\b|^Result: FAIL$|^\d+% tests passed, [1-9]\d* tests? failed"
    r"|^FAILED \(|^error: (?:could not compile|test failed)"
    r"|^(?:FAIL |ERROR: )?Required test coverage of .* not reached|coverage threshold for .{1,200} not met"
    r"|^Coverage failure: |^make(?:\[\d+\])?: \*\*\* ",
    re.MULTILINE,
)
_EMPTY = re.compile(
    r"^(?:=+ )?no tests ran\b.*$|^collected 0 items$|^NO TESTS RAN\b|^No tests? (?:files? )?found\b.*$"
    r"|^.*\[no test(?:s to run| files)\]$|^(?:\[INFO\] )?(?:No tests to run\.|Tests are skipped\.)$"
    r"|^No tests executed!$|^No tests were found!*$|^[ \t]*Tests[ \t]{2,}no tests$"
    r"|^> Task \S*:test NO-SOURCE$|^1\.\.0\b",
    re.MULTILINE,
)


class _Count(NamedTuple):
    #: None if the runner reports success only per file or package.
    passed: int | None
    failed: int
    line: str | None = None
    skipped: int = 0
    expected_fail: int = 0


def _counted(form: _Form, text: str) -> _Count | None:
    sums = dict.fromkeys(_Kind, 0)
    bad: str | None = None
    is_counted = False
    lines = [match[0][:MAX_SUMMARY] for match in form.line.finditer(text)]
    for line in lines:
        for kind, number in _pairs(form, line):
            is_counted = True
            sums[kind] += number
            if kind is _Kind.FAILED and number and bad is None:
                bad = line.strip(" \t=")
    broken = [match[0] for match in form.files.finditer(text)] if form.files else []
    if not sums[_Kind.FAILED]:
        for line in broken:
            sums[_Kind.FAILED] += sum(number for kind, number in _pairs(form, line) if kind is _Kind.FAILED)
            bad = bad or line.strip()
    if not is_counted and not sums[_Kind.FAILED]:
        return None
    expected, skipped = sums[_Kind.EXPECTED_FAIL], sums[_Kind.SKIPPED]
    rest = sums[_Kind.TOTAL] - sums[_Kind.FAILED] - skipped - expected
    return _Count(sums[_Kind.PASSED] or max(0, rest), sums[_Kind.FAILED], bad, skipped, expected)


def _pairs(form: _Form, line: str) -> Iterator[tuple[_Kind, int]]:
    pair = _WORD_FIRST if "=" in line and line.startswith(("OK (", "FAILED (")) else form.pair
    for match in pair.finditer(line):
        word, unit = match["word"].lower(), (match["unit"] or "").strip()
        kind = _KIND.get(word) or _KIND.get(unit)
        # A subtest is also counted with its test, unless it failed.
        if kind and (not unit.startswith("sub") or kind is _Kind.FAILED):
            yield kind, int(match["count"])


_TAP_PLAN = re.compile(r"^1\.\.[1-9]\d*", re.MULTILINE)
_TAP_LINE = re.compile(r"^(?P<bad>not )?ok \d+\b(?P<rest>.*)$", re.MULTILINE)


def _tap(text: str) -> _Count | None:
    """Counts plain TAP, if the runner adds no summary."""
    if not _TAP_PLAN.search(text) or _FORMS["node"].line.search(text):
        return None
    ran = [match for match in _TAP_LINE.finditer(text) if not re.search(r"(?i)# (?:todo|skip)", match["rest"])]
    bad = [match[0] for match in ran if match["bad"]]
    return _Count(len(ran) - len(bad), len(bad), bad[0][:MAX_SUMMARY] if bad else None)


_GO_TEST = re.compile(r"^--- (?P<verdict>PASS|FAIL): .*$", re.MULTILINE)
_GO_OK = re.compile(r"^ok[ \t]+\S+[ \t]+(?:\d+\.\d+s|\(cached\))(?!.*\[no tests to run\])", re.MULTILINE)
_GO_FAIL = re.compile(r"^FAIL[ \t]+\S+[ \t]+(?:\d+\.\d+s|(?P<unbuilt>\[(?:build|setup) failed\]))", re.MULTILINE)


def _go(text: str) -> _Count | None:
    tests = list(_GO_TEST.finditer(text))
    packages = list(_GO_FAIL.finditer(text))
    bad = [match[0] for match in tests if match["verdict"] == "FAIL"]
    unbuilt = [match[0] for match in packages if match["unbuilt"]]
    # A package that fails without a named test failed as a whole.
    failed = len(bad) + len(unbuilt) or len(packages)
    if not tests and not packages and not _GO_OK.search(text):
        return None
    passed = len(tests) - len(bad)
    line = next(iter([*bad, *unbuilt, *(match[0] for match in packages)]), None)
    return _Count(passed if passed or failed else None, failed, line)


_GRADLE_RAN = re.compile(r"^> Task \S*:\w*[tT]est(?: UP-TO-DATE| FROM-CACHE)?$", re.MULTILINE)


def _gradle(text: str) -> _Count | None:
    """Gradle counts tests only if some fail; otherwise it prints only the task that ran them."""
    return _Count(None, 0) if _GRADLE_RAN.search(text) else None


_PLAYWRIGHT_BEGINS = re.compile(r"^Running \d+ tests? using \d+ workers?", re.MULTILINE)
_PLAYWRIGHT_LINE = re.compile(
    r"^[ \t]+(?P<count>\d+) (?P<word>passed|flaky|failed|interrupted)(?: \([\d.]+\w+\))?$", re.MULTILINE
)


def _playwright(text: str) -> _Count | None:
    """Counts Playwright's summary. A flaky test failed and then passed; the run counts it as passed."""
    begins = _PLAYWRIGHT_BEGINS.search(text)
    if begins is None:
        return None
    lines = list(_PLAYWRIGHT_LINE.finditer(text, begins.end()))
    bad = [match for match in lines if match["word"] in ("failed", "interrupted")]
    passed = sum(int(match["count"]) for match in lines if match not in bad)
    return _Count(passed, sum(int(match["count"]) for match in bad), bad[0][0].strip() if bad else None)
