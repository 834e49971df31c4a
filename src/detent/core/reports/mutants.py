"""Mutants of a run, from the JSON of the mutation testing report schema, which Stryker and others write."""

from enum import StrEnum

import msgspec

from detent.core.reports.limits import Unreadable
from detent.core.reports.reading import read_json

MAX_MUTANTS = 100_000
MAX_NAME = 200


class Fate(StrEnum):
    """The fate of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    #: It was not run, or could not be.
    UNTRIED = "untried"


_FATES = {
    "Killed": Fate.KILLED,
    "Timeout": Fate.KILLED,
    "Survived": Fate.SURVIVED,
    # No test reaches it, so none can fail.
    "NoCoverage": Fate.SURVIVED,
}


class Mutant(msgspec.Struct, frozen=True):
    path: str
    line: int
    operator: str
    #: Which of several mutants of the operator in the file it is.
    number: str
    fate: Fate
    #: The last line that it changes.
    last: int = 0

    def describe(self) -> str:
        return f"{self.path}:{self.line} {self.operator} #{self.number}"


class _Position(msgspec.Struct):
    line: int


class _Location(msgspec.Struct):
    start: _Position
    end: _Position | None = None


class _Mutant(msgspec.Struct, rename="camel"):
    id: str
    mutator_name: str
    location: _Location
    status: str


class _File(msgspec.Struct):
    mutants: list[_Mutant]


class _Report(msgspec.Struct):
    files: dict[str, _File]


def read_mutants(data: bytes) -> tuple[Mutant, ...]:
    """The mutants of a report. Raises `Unreadable`."""
    report = read_json(data, _Report)
    if sum(len(file.mutants) for file in report.files.values()) > MAX_MUTANTS:
        raise Unreadable(f"the report has more than {MAX_MUTANTS} mutants")
    return tuple(
        Mutant(
            path=path[:MAX_NAME],
            line=mutant.location.start.line,
            operator=mutant.mutator_name[:MAX_NAME],
            number=mutant.id[:MAX_NAME],
            fate=_FATES.get(mutant.status, Fate.UNTRIED),
            last=mutant.location.end.line if mutant.location.end is not None else mutant.location.start.line,
        )
        for path, file in report.files.items()
        for mutant in file.mutants
    )
