"""Makes the attestations of a record: verifies it first, and says in the summary whether it holds."""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from detent import __version__
from detent.core.actor import Assurance
from detent.core.attestation import statements
from detent.core.attestation.statements import DecisionFact, FinishedGate, Statement, Subject, Verified
from detent.core.decision.subject import subject
from detent.core.session.events import Commit
from detent.core.session.evolve import evolve
from detent.core.session.session import Session
from detent.doctor.record import Record
from detent.doctor.verification import Demands, verify_record
from detent.doctor.verified import Outcome, Verification
from detent.engine.bundles.bundle_file import GitTree
from detent.engine.policy import decided
from detent.store.line import encode_line
from detent.store.port import START


class Attested(NamedTuple):
    verification: Verification
    statements: tuple[Statement, ...]


def attest(record: Record, demands: Demands, *, git: GitTree | None, at: datetime) -> Attested:
    """The statements about a record. If it does not hold, the only one is a summary that says so.

    `git` names the files that the record is about; without it, statements are about the journal alone.
    """
    result = verify_record(record, demands)
    if result.status == "unknown":
        return Attested(result, ())
    commits = [commit for commit, _ in record.lines()]
    subjects = _subjects(record.session, commits, git)
    session = _session(commits)
    made = [_summary(result, session, subjects, at)]
    if result.is_sound:
        gates = statements.finished_gates(commits)
        made += [statements.statement(subjects, statements.TEST_RESULT, _result(record, gate)) for gate in gates]
        made += [
            statements.statement(subjects, statements.DECISION, statements.decision_predicate(fact))
            for fact in _decisions(commits, result)
        ]
    return Attested(result, tuple(made))


def _subjects(session: str, commits: list[Commit], git: GitTree | None) -> list[Subject]:
    total, before = hashlib.sha256(), START.sum
    for commit in commits:
        line, before = encode_line(commit, before)
        total.update(line)
    journal = Subject(f"{session}/journal.jsonl", {"sha256": total.hexdigest()})
    return [journal] if git is None else [journal, Subject("files", {"gitTree": git.tree})]


def _session(commits: list[Commit]) -> Session:
    session: Session | None = None
    for commit in commits:
        session = evolve(session, commit)
    assert session is not None, "a verified record has commits"
    return session


def _summary(result: Verification, session: Session, subjects: list[Subject], at: datetime) -> Statement:
    strengths = [made.assurance for made in result.decisions if made.assurance is not None]
    order = list(Assurance)
    verified = Verified(
        session=result.session,
        workflow=session.workflow.name,
        workflow_digest=session.workflow.digest,
        status=result.status,
        commits=result.commits,
        gates=result.gates,
        is_sound=result.is_sound,
        assurance=min(strengths, key=order.index) if strengths else "",
        findings=[f"{check.outcome}: {check.subject}: {check.message}" for check in result.findings],
    )
    predicate = statements.summary_predicate(verified, at, __version__)
    return statements.statement(subjects, statements.SUMMARY, predicate)


def _result(record: Record, gate: FinishedGate) -> dict[str, object]:
    assert gate.receipt is not None
    inputs = record.evidence(gate.receipt.inputs) if gate.receipt.inputs is not None else None
    names = record.evidence(gate.receipt.names) if gate.receipt.names is not None else None
    passed = msgspec.json.decode(names, type=list[str]) if names is not None else []
    return statements.result_predicate(gate, passed, None if inputs is None else hashlib.sha256(inputs).hexdigest())


def _decisions(commits: list[Commit], result: Verification) -> Iterator[DecisionFact]:
    known = {made.commit: made for made in result.decisions}
    session: Session | None = None
    for commit in commits:
        made = known.get(commit.version)
        if made is not None and session is not None:
            about = subject([event for _, event in decided(session, commit.events)])
            yield DecisionFact(
                session=result.session,
                commit=commit.version,
                at=commit.at,
                decision=made.decision,
                phase=about.phase,
                gate=about.gate,
                choice=about.choice,
                reason=about.reason,
                by=made.by,
                proof=commit.actor.proof,
                is_verified=made.is_verified,
            )
        session = evolve(session, commit)


def problems(result: Verification) -> list[str]:
    """The findings that keep a record from holding."""
    return [f"{check.subject}: {check.message}" for check in result.findings if check.outcome is not Outcome.NOTE]
