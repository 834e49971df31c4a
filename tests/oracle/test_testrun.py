"""Judging a test run against the recorded decisions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detent.core.testrun.verdict import Result, coverage, judge, repeats, signature

DIFFERENCES: dict[str, str] = {
    "PARSE-044": "the file and the function of a stack frame tell failures apart; only the position varies",
    "PARSE-049": "an error is text; a number cannot reach this function",
    "PARSE-067": "the table of istanbul is how jest and vitest tell their coverage, so it is read",
}

# Our placeholders say what stood there in our own words.
PLACEHOLDERS = {"<time>": "TIMESTAMP", "<address>": "0xADDR"}
BREAKER = 3

CASES = [json.loads(line) for line in Path(__file__).with_name("cases_testrun.jsonl").read_text("utf-8").splitlines()]
AGREED = [case for case in CASES if case["id"] not in DIFFERENCES]
DIFFERENT = [case for case in CASES if case["id"] in DIFFERENCES]


@pytest.mark.parametrize("case", AGREED, ids=lambda case: case["id"])
def test_decides_as_recorded(case: dict[str, Any]) -> None:
    compare(case)


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case["id"])
def test_differs_where_it_says_so(case: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, TypeError)):
        compare(case)


def test_every_difference_names_a_case() -> None:
    assert len(CASES) == 19
    assert {case["id"] for case in DIFFERENT} == DIFFERENCES.keys()


def compare(case: dict[str, Any]) -> None:
    arguments = [None if each == {"$undefined": True} else each for each in case["input"]["args"]]
    COMPARE[case["input"]["fn"]](arguments, case["expect"]["output"])


def compare_result(arguments: list[Any], expected: dict[str, Any]) -> None:
    run = judge(*arguments)

    assert run.result is {True: Result.PASSED, False: Result.FAILED, None: Result.UNCLEAR}[expected["passed"]]
    if "failures" in expected:
        assert run.failures == expected["failures"]
    if run.result is Result.UNCLEAR:
        assert run.error
    elif "error" in expected:
        assert run.error == expected["error"]


def compare_signature(arguments: list[Any], expected: str) -> None:
    normalised = signature(*arguments)
    for ours, theirs in PLACEHOLDERS.items():
        normalised = normalised.replace(ours, theirs)

    assert normalised == expected


def compare_repeats(arguments: list[Any], expected: bool) -> None:
    error, earlier = arguments

    assert (repeats(error, [each["error"] for each in earlier or []]) >= BREAKER) is expected


def compare_coverage(arguments: list[Any], expected: dict[str, Any]) -> None:
    assert coverage(*arguments) == expected["percentage"]


COMPARE: dict[str, Callable[[list[Any], Any], None]] = {
    "parseTestResult": compare_result,
    "normalizeErrorForComparison": compare_signature,
    "isIdenticalFailure": compare_repeats,
    "parseCoverage": compare_coverage,
}
