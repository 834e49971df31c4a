"""Evidence of gates: verdicts, receipts, votes, the state of a gate, and the facts that judging needs."""

from datetime import UTC, datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from detent.core.actor import Assurance
from detent.core.checkpoint.checkpoint import Tree
from detent.core.testrun.suite import Counts, Outcome


class Verdict(StrEnum):
    """Only PASS opens."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    PENDING = "PENDING"
    STALE = "STALE"
    ERROR = "ERROR"


class Result(StrEnum):
    """The result of a run. UNCLEAR is neither a pass nor a failure."""

    PASSED = "passed"
    FAILED = "failed"
    UNCLEAR = "unclear"
    ERROR = "error"


class RanBy(StrEnum):
    """The author of a check's run."""

    #: Detent, for `gate run`, `finish` or a report.
    DETENT = "detent"
    #: Detent, for a run, after a turn of this attempt.
    RUNNER = "runner"
    #: An agent, in its shell; Detent saw the command and its output.
    SEEN = "seen"


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class Program(_Value, frozen=True, kw_only=True):
    """The program that a command starts: its first word, the file that it meant, and the digest of that file."""

    name: str
    #: Relative to the project for a file of it.
    path: str
    digest: str


class Toolchain(_Value, frozen=True, kw_only=True):
    """The programs of a session's start, and the variables that lead to them."""

    path: tuple[str, ...] = ()
    homes: dict[str, str] = {}
    #: The first word of a gate's command to the program that it meant.
    programs: dict[str, Program] = {}


class ProtectedRun(_Value, frozen=True, kw_only=True):
    """A run of the command on the test files as they were when the session began."""

    result: Result
    error: str | None = None
    #: The tests that failed in it.
    failing: tuple[str, ...] = ()
    tests: Counts | None = None
    #: Digest of the list of the tests that it tried.
    names: str | None = None


class Reviewer(_Value, frozen=True, kw_only=True):
    """An agent that did work or looked at it."""

    #: The client, or the adapter of a configured agent; and the role that it had, empty if none is known.
    client: str
    role: str = ""

    def describe(self) -> str:
        return f"{self.client} as {self.role}" if self.role else self.client


class Review(_Value, frozen=True, kw_only=True):
    """The report of an agent about the work of others."""

    reviewer: Reviewer
    authors: tuple[Reviewer, ...]
    text: str = ""


#: Maximum number of lost or failing tests that a receipt names.
MAX_LOST = 50


class Receipt(_Value, frozen=True, kw_only=True):
    """One run that was made for a gate."""

    result: Result
    command: str = ""
    exit_code: int | None = None
    duration_s: float = 0.0
    tail: str = ""
    #: The most telling line, and the same line without parts that differ from run to run.
    error: str | None = None
    signature: str | None = None
    coverage: float | None = None
    #: Coverage of the lines that were changed, in percent.
    changed_coverage: float | None = None
    #: What a check found in the code: uncovered lines, findings of a tool, mutants that survived. The first of them,
    #: and how many there are.
    findings: tuple[str, ...] = ()
    finding_count: int = 0
    review: Review | None = None
    #: Digest of the manifest of the input files at the run.
    inputs: str | None = None
    #: How many tests there were; None if the output does not tell.
    tests: Counts | None = None
    #: Digest of the list of the test functions that passed; None if the run named none.
    names: str | None = None
    #: Tests of the baseline that did not pass, the first of them by name, and how many there are.
    lost: dict[str, Outcome] = {}
    lost_count: int = 0
    #: They were lost since the last pass, and not since the baseline.
    is_fewer: bool = False
    #: The first tests of the run that failed, that the baseline does not have, that were skipped or expected to fail.
    failing: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    #: The run on the protected files; None if no protected file had changed.
    protected: ProtectedRun | None = None
    by: RanBy = RanBy.DETENT
    #: The account that ran it, and the machine; empty if a reviewer reported it.
    account: str = ""
    host: str = ""
    #: Why the run decides nothing: it was seen where a command is known, or it ran a part of the tests.
    aside: str | None = None
    #: Articles of a constitution that the work does not comply with.
    violated: tuple[str, ...] = ()
    program: Program | None = None
    #: Whether it ran in the sandbox of a run.
    sandboxed: bool = False
    #: Variables and entries of PATH that the check did not get; only if it could not run.
    left_out: tuple[str, ...] = ()
    #: The tests that were named to show a bug, and those that did: they failed on the files of the start, and pass now.
    named: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def because(self, error: str, result: Result | None = None) -> "Receipt":
        """The same run with this error, which is the same from run to run; with another result if one is given."""
        return replace(self, result=result or self.result, error=error, signature=error)

    @property
    def is_pass(self) -> bool:
        """Whether it passed and lost no test of the baseline."""
        return self.result is Result.PASSED and not self.lost_count

    @property
    def named_tests(self) -> dict[str, tuple[str, ...]]:
        """The tests that a reader wants to know of, by what became of them; and what the check found in the code."""
        protected = self.protected.failing if self.protected is not None else ()
        failed = (name for name, outcome in self.lost.items() if outcome is Outcome.FAILED)
        kinds = {
            "failing": tuple(dict.fromkeys((*protected, *self.failing, *failed))),
            "vanished": tuple(name for name, outcome in self.lost.items() if outcome is Outcome.MISSING),
            "skipped": self.skipped,
            "new": self.new,
            "found": self.findings,
        }
        return {kind: names for kind, names in kinds.items() if names}


class Vote(_Value, frozen=True, kw_only=True):
    approve: bool
    reason: str = ""
    #: The approver or role in whose place it was cast; empty for the voter's own.
    stands_for: str = ""
    at: datetime
    assurance: Assurance = Assurance.ATTENDED
    #: The key that signed it, and the digest of the files that it was signed for; empty if nothing was signed.
    key: str = ""
    tree: str = ""


class GateState(_Value, frozen=True, kw_only=True):
    """The state of a gate in the current attempt."""

    iterations: int = 0
    failures: int = 0
    #: Number of times that the same failure occurred in a row.
    repeats: int = 0
    #: The last run that counts, and the last one that decides nothing.
    receipt: Receipt | None = None
    aside: Receipt | None = None
    checked_at: datetime | None = None
    #: Why a person has to decide: circuit_breaker, max_iterations, coverage_below_threshold.
    escalated: str | None = None
    #: A person opened the gate by hand.
    approved_by: str | None = None
    approval_reason: str = ""
    approval_assurance: Assurance = Assurance.ATTENDED
    #: The digest of the files that it was signed for.
    approval_tree: str = ""
    interactions: int = 0
    selection: str | None = None
    #: By identity: a second vote replaces the first.
    votes: dict[str, Vote] = {}


class Delegated(_Value, frozen=True, kw_only=True):
    """An agent that was launched for a phase."""

    agent: str
    agent_id: str
    launched_at: datetime
    ended_at: datetime | None = None
    succeeded: bool | None = None
    sandboxed: bool = False


class Judgement(_Value, frozen=True, kw_only=True):
    gate: str
    kind: str
    verdict: Verdict
    reason: str
    way_out: str = ""


class Facts(_Value, frozen=True, kw_only=True):
    """The state of the world that judging needs, gathered before deciding."""

    #: The required paths that exist; None if nothing was looked up.
    exists: frozenset[str] | None = None
    #: Manifest digest of a receipt to the files that have changed since.
    changed: dict[str, tuple[str, ...]] = {}
    #: Manifest digest of a receipt to the location of the stored manifest, if that is damaged.
    damaged: dict[str, str] = {}
    #: Digest of the manifest of files at a begin to whether the present files differ from them.
    differs: dict[str, bool] = {}
    #: Digest of the present files, if a decision at a gate was signed for files.
    files: str = ""
    #: Digest of the protected files as they are now, if the phase may rewrite tests and did.
    protected: str | None = None
    #: The files of the project, if checkpoints are taken.
    tree: Tree | None = None
    #: The settings name a test command, which runs for a test gate without one.
    knows_tests: bool = False
    #: An agent of a run asks: only what the runner itself ran counts.
    in_run: bool = False
    #: Tasks whose claim is void: the process of the holder ended, or the lease expired.
    abandoned: frozenset[str] = frozenset()
    now: datetime


#: For commands that need no facts.
NOTHING_KNOWN = Facts(now=datetime.min.replace(tzinfo=UTC))
