"""The receipt of one command: the line of its output that says what went wrong."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest

from detent.core.gate.checked import receipt_of
from detent.core.gate.evidence import Result
from detent.core.reports.limits import ReportFile


class _Ran(NamedTuple):
    output: str
    exit_code: int | None = 1
    duration_s: float = 0.0
    problem: str | None = None
    reports: tuple[bytes, ...] = ()
    directory: str = ""
    files: tuple[ReportFile, ...] = ()
    unread: Mapping[str, str] = MappingProxyType({})


PATHS = ", ".join(f"packages/some-package-{number}/src/index.test.ts" for number in range(20))


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("one\ntwo\n\n", "two"),
        ("", ""),
        (
            "detent: b and main both changed a.py\n  try: cd there && git merge main\n",
            "detent: b and main both changed a.py",
        ),
        (f"detent: b and main both changed {PATHS}\n  try: x\n", f"detent: b and main both changed {PATHS}"),
    ],
    ids=["last line", "nothing", "conflict", "many conflicts"],
)
def test_the_error_is_the_reason_and_not_the_way_out(output, error):
    assert receipt_of(_Ran(output), "detent merge", Result.FAILED).error == error
