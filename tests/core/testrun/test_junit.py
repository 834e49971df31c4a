"""A JUnit report becomes named tests. It comes from a process that an agent may control."""

import pytest

from detent.core.reports.limits import MAX_DEPTH, Unreadable
from detent.core.testrun.results import read_results
from detent.core.testrun.suite import Counts, Outcome

PASSED, FAILED, SKIPPED, EXPECTED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED, Outcome.EXPECTED_FAIL


def read_junit(data):
    return read_results([data])


def report(*cases):
    return f"<testsuites><testsuite name='pytest'>{''.join(cases)}</testsuite></testsuites>".encode()


def case(name, inner="", file="tests/test_a.py", owner="tests.test_a"):
    return f"<testcase classname='{owner}' name='{name}' file='{file}' time='0.1'>{inner}</testcase>"


SKIP = "<skipped type='pytest.skip' message='later'>x</skipped>"
XFAIL = "<skipped type='pytest.xfail' message=''/>"
FAIL = "<failure message='assert 0'>x</failure>"
ERROR = "<error message='failed on setup'>x</error>"


@pytest.mark.parametrize(
    ("inner", "outcome"), [("", PASSED), (FAIL, FAILED), (ERROR, FAILED), (SKIP, SKIPPED), (XFAIL, EXPECTED)]
)
def test_a_case_has_the_outcome_of_its_element(inner, outcome):
    assert read_junit(report(case("test_x", inner))).outcomes == {"tests/test_a.py::test_x": outcome}


def test_the_name_is_file_class_and_function():
    inside = case("test_x", owner="tests.test_a.TestIt.Inner")
    unnamed = "<testcase classname='com.acme.Calc' name='adds'/>"

    assert list(read_junit(report(inside, unnamed)).outcomes) == [
        "tests/test_a.py::TestIt::Inner::test_x",
        "com.acme.Calc::adds",
    ]


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [
        (["", ""], PASSED),
        (["", FAIL], FAILED),
        ([FAIL, ""], FAILED),
        (["", SKIP], PASSED),
        ([SKIP, SKIP], SKIPPED),
        (["", XFAIL], EXPECTED),
        ([XFAIL, FAIL], FAILED),
    ],
)
def test_cases_of_a_function_are_merged_and_the_worst_counts(cases, outcome):
    suite = read_junit(report(*(case(f"test_x[{number}]", inner) for number, inner in enumerate(cases))))

    assert suite.outcomes == {"tests/test_a.py::test_x": outcome}


def test_cases_are_counted_one_by_one():
    inners = ["", "", FAIL, SKIP, XFAIL]
    counts = read_junit(report(*(case(f"test_x[{at}]", inner) for at, inner in enumerate(inners)))).counts

    assert counts == Counts(passed=2, failed=1, skipped=1, expected_fail=1)


def test_a_file_that_could_not_be_collected_is_a_failure_without_a_name():
    broken = "<testcase classname='' name='tests.test_b'><error message='collection failure'>x</error></testcase>"
    suite = read_junit(report(broken))

    assert (suite.outcomes, suite.counts.failed) == ({}, 1)


def test_a_test_that_fails_and_then_breaks_down_is_one_failure():
    assert read_junit(report(case("test_x", FAIL + SKIP))).outcomes == {"tests/test_a.py::test_x": FAILED}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"5 passed",
        b"<html/>",
        report(case("test_x"))[:-5],
        b'<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>',
        b"<testsuite>" + b"<testsuite>" * MAX_DEPTH + b"</testsuite>" * (MAX_DEPTH + 1),
    ],
    ids=["empty", "text", "other", "cut", "entities", "deep"],
)
def test_what_is_no_report_is_refused(data):
    with pytest.raises(Unreadable):
        read_junit(data)


def test_reports_that_follow_one_another_are_one_suite():
    head = b'<?xml version="1.0" encoding="utf-8"?>'
    one, two = report(case("test_x")), report(case("test_x", FAIL), case("test_y"))

    suite = read_junit(head + one + head + two)

    assert suite.outcomes == {"tests/test_a.py::test_x": FAILED, "tests/test_a.py::test_y": PASSED}
    assert suite.counts == Counts(passed=2, failed=1)
    with pytest.raises(Unreadable):
        read_junit(head + one + head)


@pytest.mark.parametrize(
    ("inner", "inside"),
    [
        (FAIL, True),
        (ERROR, False),
        (SKIP, False),
        ("<failure message='ImportError: cannot import name x'/>", False),
        ("<failure message='ModuleNotFoundError: No module named x'/>", False),
    ],
)
def test_a_failure_in_the_test_itself_is_told_from_others(inner, inside):
    assert bool(read_junit(report(case("test_x", inner))).failed_inside) is inside
