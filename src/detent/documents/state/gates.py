"""Where the gates of a phase stand, in the fields that readers of the state document look for.

Each gate is listed with its verdict, as far as the journal can tell it: whether artifacts are there, and whether a
file has changed since a run, is for the reader to see.
"""

import msgspec

from detent.core.evidence import NOTHING_KNOWN, GateState, Receipt, Result, Verdict
from detent.core.gate import Artifacts, Constitution, Elicitation, Gate, Tests, gate_kind, gate_name
from detent.core.judge import judge
from detent.core.phase_state import PhaseState
from detent.core.session import Session
from detent.documents.state.shape import Document

_WORDS = {
    Result.PASSED: "passed",
    Result.FAILED: "failed",
    Result.UNCLEAR: "inconclusive",
    Result.ERROR: "inconclusive",
}


def gate_records(session: Session, phase: str) -> Document:
    """`iteration_requirements`, `constitutional_validation` and the list of gates; empty without gates."""
    gates, state = session.workflow.by_key[phase].gates, session.phases[phase]
    if not gates:
        return {}
    requirements: Document = {}
    records: Document = {"gates": [], "iteration_requirements": requirements}
    for gate in gates:
        at_gate = state.gates.get(gate_name(gate), GateState())
        verdict, reason = _verdict(session, phase, gate, at_gate)
        is_open = verdict is Verdict.PASS
        records["gates"].append(_declared(gate, verdict, reason))
        match gate:
            case Tests():
                _add(requirements, "test_iteration", _tests(gate, at_gate, is_open=is_open))
            case Elicitation():
                _add(requirements, "interactive_elicitation", _elicitation(at_gate, is_open=is_open))
            case Constitution():
                _add(records, "constitutional_validation", _constitution(gate, at_gate, is_open=is_open))
    return records | _delegations(state)


def _verdict(session: Session, phase: str, gate: Gate, state: GateState) -> tuple[Verdict, str]:
    receipt = state.receipt
    unchanged = {receipt.inputs: ()} if receipt is not None and receipt.inputs is not None else {}
    facts = msgspec.structs.replace(NOTHING_KNOWN, changed=unchanged)
    judged = judge(session, phase, gate, facts)
    return judged.verdict, judged.reason


def _declared(gate: Gate, verdict: Verdict, reason: str) -> Document:
    declared: Document = {"name": gate_name(gate), "kind": gate_kind(gate)}
    if isinstance(gate, Artifacts):
        declared["paths"] = list(gate.paths)
        if verdict is not Verdict.PASS:
            return declared
    return {**declared, "verdict": str(verdict), "reason": reason}


def _add(records: Document, name: str, record: Document) -> None:
    """Of several gates of a kind, the first that is not open is shown: the work is about that one."""
    if name not in records or (records[name]["completed"] and not record["completed"]):
        records[name] = record


def _tests(gate: Tests, state: GateState, *, is_open: bool) -> Document:
    receipt = state.receipt or Receipt(result=Result.UNCLEAR)
    return {
        "required": True,
        "completed": is_open and state.iterations > 0,
        "current_iteration": state.iterations,
        "max_iterations": gate.max_iterations,
        "last_test_result": _WORDS[receipt.result] if state.receipt else None,
        "last_test_command": receipt.command or None,
        "last_error": receipt.error,
        "failures_count": state.failures,
        "identical_failure_count": state.repeats,
        "coverage": receipt.coverage,
        "escalated": state.escalated is not None,
        "escalation_reason": state.escalated,
        "escalation_approved": state.approved_by is not None,
    }


def _elicitation(state: GateState, *, is_open: bool) -> Document:
    return {
        "required": True,
        "completed": is_open and state.interactions > 0,
        "menu_interactions": state.interactions,
        "final_selection": state.selection,
    }


def _constitution(gate: Constitution, state: GateState, *, is_open: bool) -> Document:
    compliant = state.receipt is not None and state.receipt.result is Result.PASSED
    status = (
        "escalated"
        if state.escalated
        else "compliant"
        if compliant
        else "in_progress"
        if state.iterations
        else "pending"
    )
    return {
        "required": True,
        "completed": is_open and state.iterations > 0,
        "status": status,
        "iterations_used": state.iterations,
        "max_iterations": gate.max_iterations,
        "articles_required": list(gate.articles),
        "escalation_approved": state.approved_by is not None,
    }


def _delegations(state: PhaseState) -> Document:
    if not state.delegations:
        return {}
    return {"delegations": [{"agent": one.agent, "agent_id": one.agent_id} for one in state.delegations]}
