"""In-toto statements about a record: the result of each gate, the record as a whole, and the decisions of people.

Test results and the summary of a verification are predicates that others defined. No predicate for a person's decision
is, so there is one of our own; docs/attestations.md describes its fields.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from detent.core.actor import Proof
from detent.core.gate import gate_name
from detent.core.gate.evidence import Receipt, Verdict
from detent.core.gate.judge import judge_recorded
from detent.core.session.events import Commit, PhaseFinished
from detent.core.session.evolve import apply
from detent.core.session.session import Session

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
SUMMARY = "https://slsa.dev/verification_summary/v1"
DECISION = "urn:detent:attestation:decision:v0.1"
#: The verifier of a summary.
VERIFIER = "urn:detent:verify"
#: Names of tests that one statement lists.
MAX_TESTS = 10_000

Statement = dict[str, Any]


class Subject(NamedTuple):
    """The subject of a statement, by its digests: `sha256`, or `gitTree`."""

    name: str
    digest: Mapping[str, str]


def statement(subjects: Sequence[Subject], predicate_type: str, predicate: dict[str, Any]) -> Statement:
    return {
        "_type": STATEMENT,
        "subject": [{"name": subject.name, "digest": dict(subject.digest)} for subject in subjects],
        "predicateType": predicate_type,
        "predicate": predicate,
    }


class FinishedGate(NamedTuple):
    """A gate at the last finish of its phase."""

    phase: str
    attempt: int
    gate: str
    kind: str
    commit: int
    at: datetime
    is_open: bool
    #: The person who opened it by hand; empty if evidence opened it.
    opened_by: str
    receipt: Receipt | None


def finished_gates(commits: Iterable[Commit]) -> list[FinishedGate]:
    """The gates that a run decides, as they were at the last finish of each phase, in the order of the finishes."""
    session: Session | None = None
    last: dict[str, list[FinishedGate]] = {}
    for commit in commits:
        for event in commit.events:
            if isinstance(event, PhaseFinished) and session is not None and session.gates_apply:
                last.pop(event.phase, None)
                last[event.phase] = _at_finish(session, event, commit)
            session = apply(session, event, at=commit.at, version=commit.version, actor=commit.actor)
    return [gate for gates in last.values() for gate in gates]


def _at_finish(session: Session, event: PhaseFinished, commit: Commit) -> list[FinishedGate]:
    gates: list[FinishedGate] = []
    for gate in session.workflow.by_key[event.phase].gates:
        state = session.phases[event.phase].at_gate(gate_name(gate))
        if state.receipt is None:
            continue
        judged = judge_recorded(session, event.phase, gate)
        gates.append(
            FinishedGate(
                phase=event.phase,
                attempt=event.attempt,
                gate=gate_name(gate),
                kind=gate.kind,
                commit=commit.version,
                at=commit.at,
                is_open=judged.verdict is Verdict.PASS,
                opened_by=state.approved_by or "",
                receipt=state.receipt,
            )
        )
    return gates


def result_predicate(gate: FinishedGate, passed: Sequence[str], inputs: str | None) -> dict[str, Any]:
    """The predicate of a test result. `passed` are names of tests; `inputs` is the SHA-256 of the list of inputs."""
    receipt = gate.receipt
    assert receipt is not None, "only gates that ran have a result"
    protected = receipt.protected.failing if receipt.protected is not None else ()
    failed = [*receipt.lost, *protected]
    configuration: list[dict[str, Any]] = [
        {
            "name": f"{gate.phase}/{gate.gate}",
            "annotations": {
                "command": receipt.command,
                "kind": gate.kind,
                "attempt": gate.attempt,
                "commit": gate.commit,
                "ranBy": str(receipt.by),
                **({"openedBy": gate.opened_by} if gate.opened_by else {}),
                **({"exitCode": receipt.exit_code} if receipt.exit_code is not None else {}),
                **({"coverage": receipt.coverage} if receipt.coverage is not None else {}),
            },
        }
    ]
    if inputs is not None:
        configuration.append({"name": "input files", "digest": {"sha256": inputs}})
    if receipt.program is not None:
        configuration.append({"name": receipt.program.name, "digest": {"sha256": receipt.program.digest}})
    # A gate that a person opened is open, and its check is not known to pass.
    result = "WARNED" if gate.opened_by else "PASSED" if gate.is_open else "FAILED"
    predicate: dict[str, Any] = {"result": result, "configuration": configuration}
    for name, tests in (("passedTests", passed), ("failedTests", failed)):
        if tests:
            predicate[name] = list(tests[:MAX_TESTS])
    return predicate


class Verified(NamedTuple):
    """The result of verifying a record, as far as a summary says it."""

    session: str
    workflow: str
    workflow_digest: str
    status: str
    commits: int
    gates: int
    is_sound: bool
    #: The weakest assurance of the decisions; empty if there are none.
    assurance: str
    findings: Sequence[str]


def summary_predicate(verified: Verified, at: datetime, version: str) -> dict[str, Any]:
    levels = [f"DETENT_{verified.status.upper()}"]
    if verified.assurance:
        levels.append(f"DETENT_DECISIONS_{verified.assurance.upper()}")
    return {
        "verifier": {"id": VERIFIER, "version": {"detent": version}},
        "timeVerified": stamp(at),
        "resourceUri": f"urn:detent:session:{verified.session}",
        "policy": {
            "uri": f"urn:detent:workflow:{verified.workflow}",
            "digest": {"sha256": verified.workflow_digest},
        },
        "verificationResult": "PASSED" if verified.is_sound else "FAILED",
        "verifiedLevels": levels if verified.is_sound else [],
        "slsaVersion": "1.0",
        "detent": {
            "commits": verified.commits,
            "gatesJudgedAgain": verified.gates,
            "findings": list(verified.findings),
        },
    }


class DecisionFact(NamedTuple):
    """A decision of a person in the record."""

    session: str
    commit: int
    at: datetime
    decision: str
    phase: str
    gate: str
    choice: str
    reason: str
    by: str
    proof: Proof | None
    #: Whether its signature was verified; what is attended cannot be.
    is_verified: bool


def decision_predicate(fact: DecisionFact) -> dict[str, Any]:
    proof = fact.proof
    texts = {"phase": fact.phase, "gate": fact.gate, "choice": fact.choice, "reason": fact.reason}
    return {
        "session": fact.session,
        "commit": fact.commit,
        "decidedAt": stamp(fact.at),
        "decision": fact.decision,
        **{name: text for name, text in texts.items() if text},
        "by": fact.by,
        "proof": None
        if proof is None
        else {
            "assurance": str(proof.assurance),
            "method": proof.method,
            "identity": proof.identity,
            "statement": proof.statement,
            "signature": proof.signature,
            "key": proof.key,
            "verified": fact.is_verified,
        },
    }


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
