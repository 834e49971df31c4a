"""Evidence of gates: verdicts, receipts, votes, the state of a gate, and the facts that judging needs."""

from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from detent.core.checkpoint.checkpoint import Tree


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


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


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
    #: Digest of the manifest of the input files at the run.
    inputs: str | None = None
    #: The result of the protected tests, as they were when the phase began.
    protected: Result | None = None
    #: Observed in the agent's shell, not run by Detent.
    observed: bool = False
    #: Articles of a constitution that the work does not comply with.
    violated: tuple[str, ...] = ()


class Vote(_Value, frozen=True, kw_only=True):
    approve: bool
    reason: str = ""
    #: The approver or role in whose place it was cast; empty for the voter's own.
    stands_for: str = ""
    at: datetime


class GateState(_Value, frozen=True, kw_only=True):
    """The state of a gate in the current attempt."""

    iterations: int = 0
    failures: int = 0
    #: Number of times that the same failure occurred in a row.
    repeats: int = 0
    receipt: Receipt | None = None
    checked_at: datetime | None = None
    #: Why a person has to decide: circuit_breaker, max_iterations, coverage_below_threshold.
    escalated: str | None = None
    #: A person opened the gate by hand.
    approved_by: str | None = None
    approval_reason: str = ""
    interactions: int = 0
    selection: str | None = None
    #: By identity: whoever votes again changes their vote.
    votes: dict[str, Vote] = {}


class Delegated(_Value, frozen=True, kw_only=True):
    """An agent that was launched for a phase."""

    agent: str
    agent_id: str
    launched_at: datetime
    ended_at: datetime | None = None
    succeeded: bool | None = None


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
    #: The files of the project, if checkpoints are taken.
    tree: Tree | None = None
    #: Tasks whose claim is void: the process of the holder ended, or the lease expired.
    abandoned: frozenset[str] = frozenset()
    now: datetime


#: For commands that need no facts.
NOTHING_KNOWN = Facts(now=datetime.min.replace(tzinfo=UTC))
