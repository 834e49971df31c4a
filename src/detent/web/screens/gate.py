"""The screen of a gate: its verdict, the receipt that proves it, who voted with which proof, and its history."""

from functools import partial
from typing import Any

import msgspec

from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import GateState, Receipt
from detent.core.gate.judge import judgements
from detent.core.gate.voted import Voted
from detent.core.path_text import to_text
from detent.core.session import events
from detent.core.session.decide_gate import find_gate
from detent.core.session.decide_phase import known_phase
from detent.core.session.describe import describe
from detent.core.session.events import Commit, Event
from detent.core.session.phase_name import Named, phase_name
from detent.engine.gates.checks import GateChecks
from detent.engine.project import Project
from detent.store.port import all_commits
from detent.web.projects import KnownProject
from detent.web.screens.log import MAX_LINE, proof_record
from detent.web.screens.open_decisions import gate_assurance, session_needs

#: Input files, stale files and entries of the history that one answer names.
MAX_FILES, MAX_HISTORY = 500, 100
_AT_A_GATE = events.GateEvent | events.LossAccepted | events.GateCommandSet


def gate_screen(known: KnownProject, project: Project, name: str, phase: str, gate: str) -> dict[str, Any]:
    handle = project.session(name)
    session = handle.state
    key = known_phase(session, phase)
    declared = find_gate(session, key, gate)
    checks = handle.gates.checks
    facts = checks.facts(session, key, project.clock(), project.checkpoints.moment())
    judged = next(entry for entry in judgements(session, key, facts) if entry.gate == gate_name(declared))
    state = session.phases[key].at_gate(judged.gate)
    inputs = state.receipt.inputs if state.receipt is not None else None
    stale = facts.changed.get(inputs, ()) if inputs is not None else ()
    history = _history(project, name, key, judged.gate)
    return {
        "phase": key,
        "gate": judged.gate,
        "kind": judged.kind,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "way_out": judged.way_out,
        "settings": msgspec.to_builtins(declared),
        "state": {
            "iterations": state.iterations,
            "failures": state.failures,
            "repeats": state.repeats,
            "escalated": state.escalated,
            "approved_by": state.approved_by,
            "approval_reason": state.approval_reason,
            "selection": state.selection,
        },
        "receipt": _receipt(state.receipt, checks),
        "aside": _receipt(state.aside, checks),
        "stale": {"files": [to_text(path) for path in stale[:MAX_FILES]], "count": len(stale)} if stale else None,
        "checked_at": state.checked_at,
        "votes": _votes(state, history),
        "quorum": declared.quorum if isinstance(declared, Voted) else None,
        "voters": _voters(declared),
        "assurance": gate_assurance(session, declared),
        "history": [record for _, record in reversed(history)][:MAX_HISTORY],
        "needs": [need for need in session_needs(known, project, session) if _is_about(need, key, judged.gate)],
    }


def _is_about(need: dict[str, Any], phase: str, gate: str) -> bool:
    return (need["phase"], need["gate"]) == (phase, gate)


def _voters(gate: Gate) -> list[str] | None:
    voters = gate.voters if isinstance(gate, Voted) else None
    return sorted(voters) if voters is not None else None


def _receipt(receipt: Receipt | None, checks: GateChecks) -> dict[str, Any] | None:
    if receipt is None:
        return None
    inputs = checks.inputs(receipt)
    named = receipt.named_tests
    return {
        "result": receipt.result,
        "command": receipt.command,
        "exit_code": receipt.exit_code,
        "duration_s": receipt.duration_s,
        "tail": receipt.tail,
        "error": receipt.error,
        "coverage": receipt.coverage,
        "tests": msgspec.structs.asdict(receipt.tests) if receipt.tests is not None else None,
        "changed_coverage": receipt.changed_coverage,
        "failing": named.get("failing", ()),
        "skipped": named.get("skipped", ()),
        "new": named.get("new", ()),
        "findings": receipt.findings,
        "finding_count": receipt.finding_count,
        "review": msgspec.to_builtins(receipt.review) if receipt.review is not None else None,
        "lost": receipt.lost,
        "lost_count": receipt.lost_count,
        "violated": receipt.violated,
        "aside": receipt.aside,
        "by": receipt.by,
        "account": receipt.account,
        "host": receipt.host,
        "program": msgspec.structs.asdict(receipt.program) if receipt.program is not None else None,
        "inputs": _inputs(receipt, inputs) if inputs is not None else None,
    }


def _inputs(receipt: Receipt, files: dict[str, str]) -> dict[str, Any]:
    listed = [{"path": to_text(path), "digest": digest} for path, digest in list(files.items())[:MAX_FILES]]
    return {"digest": receipt.inputs, "count": len(files), "files": listed}


def _votes(state: GateState, history: "list[tuple[Event, dict[str, Any]]]") -> list[dict[str, Any]]:
    """The votes that count, each with the proof of its commit."""
    proofs = {event.approver: record["proof"] for event, record in history if isinstance(event, events.VoteCast)}
    return [
        {
            "identity": identity,
            "approve": vote.approve,
            "reason": vote.reason,
            "stands_for": vote.stands_for,
            "at": vote.at,
            "proof": proofs.get(identity),
        }
        for identity, vote in state.votes.items()
    ]


def _history(project: Project, session: str, phase: str, gate: str) -> "list[tuple[Event, dict[str, Any]]]":
    commits, named = all_commits(project.store, session), partial(phase_name, project.journal(session).session())
    return [
        (event, _entry(commit, event, named))
        for commit in commits
        for event in commit.events
        if _is_at(event, phase, gate)
    ]


def _is_at(event: Event, phase: str, gate: str) -> bool:
    if not isinstance(event, _AT_A_GATE) or event.gate != gate:
        return False
    return phase in (event.phases if isinstance(event, events.GateCommandSet) else (event.phase,))


def _entry(commit: Commit, event: Event, named: Named) -> dict[str, Any]:
    receipt = event.receipt if isinstance(event, events.GateChecked) else None
    return {
        "version": commit.version,
        "at": commit.at,
        "by": commit.by,
        "what": describe(event, named)[:MAX_LINE],
        "result": receipt.result if receipt else None,
        "exit_code": receipt.exit_code if receipt else None,
        "duration_s": receipt.duration_s if receipt else None,
        "command": receipt.command if receipt else "",
        "error": receipt.error if receipt else None,
        "tests": msgspec.structs.asdict(receipt.tests) if receipt and receipt.tests is not None else None,
        "proof": proof_record(commit.actor.proof),
    }
