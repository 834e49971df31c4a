"""Coverage of a run, from the reports that it wrote: in all, and of the changed lines."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from detent.core.gate.kind import CheckRunner, Ran
from detent.core.gate.reported import files_of
from detent.core.reports.changed_lines import ranges
from detent.core.reports.coverage import Coverage, in_project, merged, percent, read_coverage, total
from detent.core.reports.limits import Unreadable
from detent.core.testrun.runner_files import roles, test_directory

#: Comments by which code leaves itself out of the measurement.
_LEFT_OUT = re.compile(
    rb"pragma: *no *(?:cover|branch)|istanbul ignore|(?:c8|v8) ignore|LCOV_EXCL|coverage: *ignore|cov: *off"
)


def measured(runner: CheckRunner, ran: Ran, patterns: tuple[str, ...]) -> Coverage:
    """The coverage of the project's files. Raises `Unreadable`."""
    reports = (read_coverage(file.data) for file in files_of(ran, patterns))
    return in_project(merged(reports), ran.directory, runner.present())


def measured_total(runner: CheckRunner, ran: Ran, patterns: tuple[str, ...]) -> float | None:
    """The coverage in all; None if no report tells it."""
    try:
        return total(measured(runner, ran, patterns))
    except Unreadable:
        return None


class ChangedCoverage(NamedTuple):
    #: None if no line that can run was changed.
    percent: float | None
    #: Path and lines that no test runs.
    uncovered: tuple[str, ...]


def of_changed(report: Coverage, changed: Mapping[str, Mapping[int, bytes]]) -> ChangedCoverage:
    """The coverage of the changed lines.

    A changed file that the report does not have counts as uncovered, if the report has files of its language: no test
    loads it, or the tool was told to leave it out. So does a changed line that leaves itself out. Tests are not
    measured.
    """
    languages = {path.rpartition(".")[2] for path in report if "." in path}
    tests = roles(changed)
    covered = count = 0
    uncovered: list[str] = []
    for path, lines in sorted(changed.items()):
        if path in tests or test_directory(path) is not None:
            continue
        left_out = {line for line, text in lines.items() if _LEFT_OUT.search(text)}
        if path in report:
            ran, missed = report[path].covered & lines.keys(), report[path].missed & lines.keys()
            missed |= left_out
            covered, count = covered + len(ran - left_out), count + len(ran | missed)
            if missed:
                uncovered.append(f"{path}:{ranges(missed)}")
        elif path.rpartition(".")[2] in languages:
            count += len(lines)
            uncovered.append(f"{path} (not in the report)")
    return ChangedCoverage(percent(covered, count) if count else None, tuple(uncovered))
