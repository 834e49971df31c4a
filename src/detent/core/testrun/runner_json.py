"""Named tests from the JSON of runners that write no JUnit XML: `go test -json`, and `jest --json`."""

from collections.abc import Iterator

import msgspec

from detent.core.reports.limits import Unreadable
from detent.core.reports.reading import read_json
from detent.core.testrun.junit import MAX_CASES, MAX_NAME
from detent.core.testrun.suite import Outcome, TestCase

# go


class _GoEvent(msgspec.Struct, rename="pascal"):
    action: str = ""
    package: str = ""
    test: str = ""
    output: str = ""


_ENDS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}
_decode_event = msgspec.json.Decoder(_GoEvent).decode


def is_go(data: bytes) -> bool:
    return data.startswith(b"{") and b'"Action":' in data.partition(b"\n")[0]


def go_cases(data: bytes) -> list[TestCase]:
    """The tests of `go test -json`. A test with subtests stands for itself only if it failed. Raises `Unreadable`."""
    ends: dict[tuple[str, str], Outcome] = {}
    begun: set[tuple[str, str]] = set()
    packages: dict[str, Outcome] = {}
    for event in _go_events(data):
        key = event.package, event.test
        outcome = _ENDS.get(event.action)
        if event.test and event.action == "run":
            begun.add(key)
        if outcome is None:
            continue
        if event.test:
            begun.discard(key)
            ends[key] = outcome
        else:
            packages[event.package] = outcome
        if len(ends) > MAX_CASES:
            raise Unreadable(f"the report has more than {MAX_CASES} tests")
    if not ends and not packages:
        raise Unreadable("the report has no result of a test or a package: it is no `go test -json`, or it is cut off")
    parents = {(package, test.rpartition("/")[0]) for package, test in ends if "/" in test}
    cases = [
        TestCase(f"{package}::{test.partition('/')[0]}"[:MAX_NAME], outcome, outcome is Outcome.FAILED)
        for (package, test), outcome in ends.items()
        if (package, test) not in parents or outcome is Outcome.FAILED
    ]
    # A test that began and never ended broke down with its process.
    cases += [TestCase(f"{package}::{test.partition('/')[0]}"[:MAX_NAME], Outcome.FAILED) for package, test in begun]
    named = {package for (package, _), outcome in ends.items() if outcome is Outcome.FAILED} | {key[0] for key in begun}
    # A package that failed without a test that failed could not be built, or broke down.
    broken = [package for package, outcome in packages.items() if outcome is Outcome.FAILED and package not in named]
    return [*cases, *(TestCase("", Outcome.FAILED) for _ in broken)]


def _go_events(data: bytes) -> Iterator[_GoEvent]:
    for line in data.splitlines():
        if line.startswith(b"{"):
            try:
                yield _decode_event(line)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise Unreadable(f"a line of the report is no event of `go test -json`: {error}") from error


# jest


class _Assertion(msgspec.Struct, rename="camel"):
    status: str = ""
    title: str = ""
    ancestor_titles: list[str] = []
    failure_messages: list[str] | None = None


class _File(msgspec.Struct, rename="camel"):
    name: str
    status: str = ""
    assertion_results: list[_Assertion] = []


class _JestReport(msgspec.Struct, rename="camel"):
    test_results: list[_File]


_STATUSES = {
    "passed": Outcome.PASSED,
    "failed": Outcome.FAILED,
    "pending": Outcome.SKIPPED,
    "skipped": Outcome.SKIPPED,
    "todo": Outcome.SKIPPED,
    "disabled": Outcome.SKIPPED,
}


def jest_cases(data: bytes, directory: str) -> list[TestCase]:
    """The tests of `jest --json`, whose paths are those of `directory`. Raises `Unreadable`."""
    report = read_json(data, _JestReport)
    if sum(len(file.assertion_results) for file in report.test_results) > MAX_CASES:
        raise Unreadable(f"the report has more than {MAX_CASES} tests")
    cases: list[TestCase] = []
    for file in report.test_results:
        path = file.name.removeprefix(f"{directory.rstrip('/')}/")
        if file.status == "failed" and not file.assertion_results:
            # It failed before its first test.
            cases.append(TestCase("", Outcome.FAILED))
        for each in file.assertion_results:
            outcome = _STATUSES.get(each.status, Outcome.FAILED)
            name = "::".join((path, *each.ancestor_titles, each.title))[:MAX_NAME]
            cases.append(TestCase(name, outcome, outcome is Outcome.FAILED))
    return cases
