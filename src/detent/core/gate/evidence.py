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
    #: The most telling line, and the same without what differs from run to run.
    error: str | None = None
    signature: str | None = None
    coverage: float | None = None
    #: Digest of the manifest of the input files as they were at the run.
    inputs: str | None = None
    #: Whether the tests as they were at the phase's begin passed too.
    protected: Result | None = None
    #: Seen in the agent's shell, not run by Detent.
    observed: bool = False
    #: Articles of a constitution that the run was about and that did not comply.
    violated: tuple[str, ...] = ()


class Vote(_Value, frozen=True, kw_only=True):
    approve: bool
    reason: str = ""
    at: datetime


class GateState(_Value, frozen=True, kw_only=True):
    """The state of a gate in the current attempt."""

    iterations: int = 0
    failures: int = 0
    #: How often the same failure came in a row.
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
    #: The files of the project, where a checkpoint is to be taken of what is decided.
    tree: Tree | None = None
    #: Tasks whose holder is known to be gone: its process ended, or its lease ran out.
    abandoned: frozenset[str] = frozenset()
    now: datetime


#: For commands that no gate can hold.
NOTHING_KNOWN = Facts(now=datetime.min.replace(tzinfo=UTC))
