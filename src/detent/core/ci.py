"""The findings of a check in CI, as values that every service can show."""

import hashlib
from enum import StrEnum

import msgspec


class Level(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Annotation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding."""

    level: Level
    title: str
    message: str
    #: The file that it is about, relative to the repository.
    file: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for the same finding in another run."""
        return hashlib.sha256("\0".join((self.title, self.file, self.message)).encode()).hexdigest()


class RerunRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A check of a record that ran again in CI."""

    phase: str
    gate: str
    verdict: str
    reason: str
    seconds: float = 0.0


class RecordCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One record: what was verified, what was decided, and what ran again."""

    bundle: str
    session: str
    status: str
    holds: bool
    commits: int = 0
    gates: int = 0
    #: A line for each decision of a person.
    decisions: tuple[str, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    reruns: tuple[RerunRow, ...] = ()

    @property
    def is_closed(self) -> bool:
        return any(row.verdict not in ("PASS", "PENDING") for row in self.reruns)
