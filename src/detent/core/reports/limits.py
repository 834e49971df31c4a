"""Limits of report files, and why one is refused. A report comes from a process that may be hostile."""

from typing import NamedTuple

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 32
#: Maximum number of files that one pattern may match, and their size together.
MAX_FILES = 2_000


class ReportFile(NamedTuple):
    """A report file that a run wrote."""

    #: The pattern that it matches, and its path in the directory of the run.
    pattern: str
    path: str
    data: bytes


class Unreadable(ValueError):
    """The report is not what it should be, or beyond a limit."""


def check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise Unreadable(f"the report has {size} bytes; the limit is {MAX_BYTES}")
