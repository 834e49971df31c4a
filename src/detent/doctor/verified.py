"""The result of verifying a record: findings, and the decisions of people in it."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from detent.core.actor import Assurance
from detent.core.counted import listed
from detent.engine.bundles.bundle_file import GitTree


class Outcome(StrEnum):
    #: It does not hold.
    WRONG = "wrong"
    #: It could not be checked, and could be with more than was given.
    UNCHECKED = "unchecked"
    #: It rests on the word of the machine that made the record, or is good to know.
    NOTE = "note"


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding."""

    outcome: Outcome
    message: str
    #: The commit that it is about; 0 for the record as a whole.
    commit: int = 0
    way_out: str = ""

    @property
    def subject(self) -> str:
        return f"commit {self.commit}" if self.commit else "the record"


class Decided(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision of a person in the record."""

    commit: int
    decision: str
    phase: str = ""
    gate: str = ""
    #: The approver who signed it, or the account that the record names.
    by: str = ""
    assurance: Assurance | None = None
    #: The weakest assurance that counts for it.
    needed: Assurance
    #: The key that signed it; empty if nothing was signed.
    key: str = ""
    #: Whether its signature was verified here. What is attended cannot be.
    is_verified: bool = False

    def describe(self, *, with_key: bool = False) -> str:
        where = "".join(f" {part}" for part in (self.phase, self.gate) if part)
        verified = ", verified" if self.is_verified else ""
        key = f", key {self.key}" if with_key and self.key else ""
        proof = f"{self.assurance or 'no proof'}{verified}{key}"
        return f"commit {self.commit}: {self.decision}{where} by {self.by} ({proof})"


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    status: str = "unknown"
    commits: int = 0
    #: The sum of the last commit.
    sum: str = ""
    #: Phases that were finished, and gates that were judged again for that.
    finishes: int = 0
    gates: int = 0
    git: GitTree | None = None
    decisions: tuple[Decided, ...] = ()
    findings: tuple[Check, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether everything holds, and everything that can be checked was checked."""
        return all(check.outcome is Outcome.NOTE for check in self.findings)


def wrong(message: str, commit: int = 0, way_out: str = "") -> Check:
    return Check(outcome=Outcome.WRONG, message=message, commit=commit, way_out=way_out)


def unchecked(message: str, commit: int = 0, way_out: str = "") -> Check:
    return Check(outcome=Outcome.UNCHECKED, message=message, commit=commit, way_out=way_out)


def note(message: str, commit: int = 0) -> Check:
    return Check(outcome=Outcome.NOTE, message=message, commit=commit)


def listed_commits(numbers: Sequence[int]) -> str:
    return f"commit{'s' if len(numbers) > 1 else ''} {listed(list(map(str, numbers)), 10)}"
