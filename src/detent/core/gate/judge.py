"""The one judge of gates. Pure: the state of the world comes in as `Facts`.

A gate that cannot be judged is ERROR, and one without evidence is PENDING; neither opens.
"""

import shlex

from msgspec.structs import replace

from detent.core.actor import Assurance
from detent.core.gate.evidence import NOTHING_KNOWN, Facts, GateState, Judgement, Verdict
from detent.core.gate.kind import GIVEN_COMMAND, Evidence, Gate, gate_name
from detent.core.gate.voted import is_for_other_files
from detent.core.session.session import Session, resolve_commands
from detent.core.session.status import Status


def judgements(session: Session, phase: str, facts: Facts) -> tuple[Judgement, ...]:
    """The verdict on each gate of the phase, in the order in which they are declared."""
    gates = session.workflow.by_key[phase].gates
    if not gates or not session.gates_apply:
        return ()
    return tuple(judge(session, phase, gate, facts) for gate in gates)


def judge(session: Session, phase: str, gate: Gate, facts: Facts) -> Judgement:
    evidence = evidence_of(session, phase, gate, facts)
    state = evidence.gate
    needed = gate.assurance or session.options.assurance
    is_opened = state.approved_by is not None and state.approval_assurance.reaches(needed)
    if is_opened and is_for_other_files(state.approval_tree, facts):
        verdict, reason = Verdict.STALE, f"opened by {state.approved_by} for other files; they have changed since"
    elif is_opened:
        verdict, reason = Verdict.PASS, f"opened by {state.approved_by}{_how(state)}: {state.approval_reason}"
    else:
        verdict, reason = gate.judge(evidence)
    if verdict is Verdict.PASS:
        way_out = ""
    elif state.escalated is not None:
        ways = (*resolve_commands(phase), f"approve {phase} --gate {shlex.quote(gate_name(gate))} -m WHY")
        way_out = " or ".join(f"detent {way}" for way in ways)
    else:
        way_out = gate.way_out(phase, state)
        way_out = way_out.replace(GIVEN_COMMAND, "") if facts.knows_tests else way_out
    return Judgement(gate=gate_name(gate), kind=gate.kind, verdict=verdict, reason=reason, way_out=way_out)


def _how(state: GateState) -> str:
    """The assurance of an approval that was signed."""
    assurance = state.approval_assurance
    return "" if assurance is Assurance.ATTENDED else f" ({assurance})"


def judge_recorded(session: Session, phase: str, gate: Gate, *, exists: frozenset[str] | None = None) -> Judgement:
    """The verdict that the journal supports, for documents and reports.

    Inputs count as unchanged. `exists` are the required paths that exist, if that is known.
    The gates of a completed phase are open: it was finished with every gate open.
    """
    receipt = session.phases[phase].at_gate(gate_name(gate)).receipt
    unchanged = {receipt.inputs: ()} if receipt is not None and receipt.inputs is not None else {}
    judgement = judge(session, phase, gate, replace(NOTHING_KNOWN, changed=unchanged, exists=exists))
    if judgement.verdict is Verdict.PASS or session.phases[phase].status is not Status.COMPLETED:
        return judgement
    reason = "open when the phase was finished"
    return replace(judgement, verdict=Verdict.PASS, reason=reason, way_out="")


def evidence_of(session: Session, phase: str, gate: Gate, facts: Facts) -> Evidence:
    state = session.phases[phase]
    gate_state = state.at_gate(gate_name(gate))
    return Evidence(
        session.folder, state, gate_state, facts, session.baseline, session.programs, session.options.assurance
    )
