"""A pytest plugin: prints which tests show which requirement, and fails the run unless every one is shown."""

from collections.abc import Iterator

import pytest

from tests.conformance.requirements import REQUIREMENTS

WIDTH = 100
_WORST_FIRST = ("failed", "skipped", "passed")

#: Requirement to test to outcome.
Shown = dict[str, dict[str, str]]


class Table:
    """Collects from reports only, so that it also works with the workers of xdist."""

    def __init__(self) -> None:
        self.shown: Shown = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            ids = [name for mark in item.iter_markers("req") for name in mark.args]
            item.user_properties.append(("req", ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0].rpartition("/")[2]
        for name, ids in report.user_properties:
            for requirement in ids if name == "req" and isinstance(ids, list) else ():
                outcomes = self.shown.setdefault(requirement, {})
                outcomes[test] = min(outcomes.get(test, "passed"), report.outcome, key=_WORST_FIRST.index)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and not_shown(REQUIREMENTS, self.shown):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("conformance")
        for line in (*rows(REQUIREMENTS, self.shown), total(REQUIREMENTS, self.shown)):
            terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Table(), "conformance-table")


def rows(listed: dict[str, str], shown: Shown) -> Iterator[str]:
    """Requirement, result, test; one line a test, none wider than `WIDTH`."""
    for requirement, outcomes in _table(listed, shown).items():
        for number, (test, outcome) in enumerate(sorted(outcomes.items())):
            yield f"{'' if number else requirement:<10} {outcome:<8} {test}"[:WIDTH]


def not_shown(listed: dict[str, str], shown: Shown) -> list[str]:
    """The ids that keep the run from passing."""
    return [name for name, outcomes in _table(listed, shown).items() if set(outcomes.values()) != {"passed"}]


def total(listed: dict[str, str], shown: Shown) -> str:
    met = len(listed.keys() - set(not_shown(listed, shown)))
    tests = {test for outcomes in shown.values() for test in outcomes}
    return f"{met} of {len(listed)} requirements shown by {len(tests)} tests"


def _table(listed: dict[str, str], shown: Shown) -> Shown:
    """All that is listed, and after it what tests name without its being listed."""
    known = {name: shown.get(name, {"-": "no test"}) for name in listed}
    return known | {name: dict.fromkeys(tests, "unknown") for name, tests in shown.items() if name not in listed}
