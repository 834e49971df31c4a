"""Reports that real tools wrote (`python -m tests.support.record_reports` records them again) are read as they mean."""

from pathlib import Path

import pytest

from detent.core.reports.coverage import Lines, in_project, merged, read_coverage, total
from detent.core.reports.sarif import Level, new_findings, read_sarif
from detent.core.testrun.results import read_results
from detent.core.testrun.suite import Counts, Outcome

RECORDED = Path(__file__).parent / "recorded"
PASSED, FAILED, SKIPPED, EXPECTED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED, Outcome.EXPECTED_FAIL


def recorded(name):
    return (RECORDED / name).read_bytes()


def titled(start, join, expected, some_day):
    """The tests that the scripts of every JavaScript runner have."""
    outcomes = {"adds": PASSED, "fails": FAILED, "later": SKIPPED, "expected": expected, "some day": some_day}
    outcomes |= {"parses [1]": PASSED, "parses [2]": PASSED}
    return {f"{start}calc{join}{name}": outcome for name, outcome in outcomes.items()}


PYTEST = {
    f"tests/test_calc.py::{name}": outcome
    for name, outcome in {
        "test_adds": PASSED,
        "test_fails": FAILED,
        "test_later": SKIPPED,
        "test_expected": EXPECTED,
        "test_many": PASSED,
        "TestInside::test_method": PASSED,
    }.items()
}
JEST_JUNIT = {
    f"{name}::{name}": outcome for name, outcome in titled("", " ", PASSED, PASSED).items()
}  # it reports a todo as passed
NODE = {"test::adds": PASSED, "test::fails": FAILED, "test::later": SKIPPED, "test::some day": FAILED}
GO = {"Adds": PASSED, "Fails": FAILED, "Later": SKIPPED, "Many": PASSED, "Inner": FAILED}


@pytest.mark.parametrize(
    ("name", "counts", "outcomes"),
    [
        ("pytest.xml", Counts(passed=4, failed=1, skipped=1, expected_fail=1), PYTEST),
        ("jest-junit.xml", Counts(passed=5, failed=1, skipped=1), JEST_JUNIT),
        ("jest.json", Counts(passed=4, failed=1, skipped=2), titled("a.test.js::", "::", PASSED, SKIPPED)),
        ("vitest.xml", Counts(passed=4, failed=1, skipped=2), titled("test/a.test.js::", " > ", PASSED, SKIPPED)),
        (
            "playwright.xml",
            Counts(passed=3, failed=1, skipped=2, expected_fail=1),
            titled("a.spec.js::", " \u203a ", EXPECTED, SKIPPED),
        ),
        ("node.xml", Counts(passed=1, failed=2, skipped=1), NODE),
        (
            "go.json",
            Counts(passed=4, failed=3, skipped=1),
            {f"calc::Test{name}": outcome for name, outcome in GO.items()},
        ),
    ],
)
def test_the_tests_of_a_runner_by_name(name, counts, outcomes):
    suite = read_results([recorded(name)], "/project")

    assert suite.counts == counts
    assert suite.outcomes == outcomes


def test_the_reports_of_several_runners_are_one_suite():
    suite = read_results([recorded("pytest.xml"), recorded("go.json")])

    assert suite.counts == Counts(passed=8, failed=4, skipped=2, expected_fail=1)


@pytest.mark.parametrize("name", ["cobertura.xml", "coverage.json", "lcov.info"])
def test_the_coverage_of_a_tool_by_line(name):
    report = read_coverage(recorded(name))

    assert report["calc.py"] == Lines(frozenset({1, 2, 5, 6, 8}), frozenset({7}))
    assert total({"calc.py": report["calc.py"]}) == 83.33


def test_a_line_is_covered_if_one_of_several_reports_covers_it():
    one, two = {"a.py": Lines(frozenset({1}), frozenset({2, 3}))}, {"a.py": Lines(frozenset({2}), frozenset({1}))}

    assert merged([one, two]) == {"a.py": Lines(frozenset({1, 2}), frozenset({3}))}


@pytest.mark.parametrize(
    ("named", "file"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/a.py", "src/a.py"),
        ("/project/src/a.py", "src/a.py"),
        ("a.py", "src/a.py"),
        ("/elsewhere/src/a.py", "src/a.py"),
        ("b.py", None),
        ("c.py", None),
    ],
)
def test_a_path_of_a_report_is_the_only_file_that_it_can_mean(named, file):
    lines = Lines(frozenset({1}))

    found = in_project({named: lines}, "/project", {"src/a.py", "x/c.py", "y/c.py"})

    assert found == ({file: lines} if file else {})


def test_the_findings_of_a_tool():
    findings = read_sarif(recorded("ruff.sarif"), "/project")

    assert [(each.rule, each.level, each.path, each.line) for each in findings[:2]] == [
        ("F401", Level.ERROR, "calc.py", 1),
        ("F841", Level.ERROR, "calc.py", 5),
    ]
    assert new_findings(findings, findings) == ()
    assert new_findings(findings, findings[1:]) == findings[:1]
    assert new_findings(findings + findings[:1], findings) == findings[:1]
