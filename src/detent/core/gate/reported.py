"""The report files that a gate declares, and the tests that the reports of a run name."""

from collections.abc import Sequence

from detent.core.gate.kind import Ran
from detent.core.reports.limits import ReportFile, Unreadable
from detent.core.testrun.suite import Suite

#: One pattern or several, relative to the project.
Patterns = str | tuple[str, ...]


def patterns_of(declared: Patterns) -> tuple[str, ...]:
    return (declared,) if isinstance(declared, str) and declared else tuple(declared)


def check_patterns(setting: str, declared: Patterns) -> None:
    """Refuse patterns that lead out of the project."""
    for pattern in patterns_of(declared):
        if not pattern or pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
            raise ValueError(f"{setting}: {pattern!r} is no path in the project")


def files_of(ran: Ran, patterns: Sequence[str]) -> tuple[ReportFile, ...]:
    """The files of these patterns that the run wrote. `Unreadable` if there is none, or one is not to be trusted."""
    for pattern in patterns:
        if pattern in ran.unread:
            raise Unreadable(ran.unread[pattern])
    return tuple(file for file in ran.files if file.pattern in patterns)


def read_suite(ran: Ran, junit: Sequence[str] = ()) -> Suite | None:
    """The tests of a run by name; None if no runner wrote a report. `Unreadable` if one cannot be trusted.

    `junit` are the patterns of declared reports. Without them those count that Detent asked the runners for.
    """
    reports = tuple(file.data for file in files_of(ran, junit)) if junit else ran.reports
    if not reports:
        return None
    from detent.core.testrun.results import read_results  # noqa: PLC0415 - few runs write a report

    return read_results(reports, ran.directory)
