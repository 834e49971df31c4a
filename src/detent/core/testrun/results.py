"""The tests of one run from the reports that its runners wrote, whatever format they are in."""

from collections.abc import Iterable

from detent.core.reports.limits import Unreadable
from detent.core.testrun.junit import MAX_CASES, junit_cases
from detent.core.testrun.runner_json import go_cases, is_go, jest_cases
from detent.core.testrun.suite import Suite, TestCase, suite_of


def read_results(reports: Iterable[bytes], directory: str = "") -> Suite:
    """The tests of all reports. `directory` is where the runner ran. Raises `Unreadable`."""
    cases: list[TestCase] = []
    for report in reports:
        cases += _cases(report.lstrip(b"\xef\xbb\xbf \t\r\n"), directory)
        if len(cases) > MAX_CASES:
            raise Unreadable(f"the reports have more than {MAX_CASES} tests")
    return suite_of(cases)


def _cases(report: bytes, directory: str) -> list[TestCase]:
    if is_go(report):
        return go_cases(report)
    return jest_cases(report, directory) if report.startswith(b"{") else junit_cases(report)
