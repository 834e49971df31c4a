"""The gates of a phase in the state document, each with the verdict of the judge.

The verdict is the one that the journal supports. Where it depends on paths alone, the paths stand in its place, and
the reader looks for them.
"""

from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import GateState, Judgement, Verdict
from detent.core.gate.judge import judge_recorded
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.documents.state.shape import Document


def gate_records(session: Session, phase: str) -> Document:
    """`gates`, `iteration_requirements` and the records of kinds that have one; empty without gates."""
    gates, state = session.workflow.by_key[phase].gates, session.phases[phase]
    if not gates:
        return {}
    records: Document = {"gates": [], "iteration_requirements": {}}
    for gate in gates:
        judgement = judge_recorded(session, phase, gate)
        records["gates"].append(_listed(session, phase, gate, judgement))
        is_open = judgement.verdict is Verdict.PASS
        record = gate.state_record(state.gates.get(gate_name(gate), GateState()), is_open=is_open)
        if record is not None:
            _add(records, *record)
    return records | _delegations(state)


def _listed(session: Session, phase: str, gate: Gate, judgement: Judgement) -> Document:
    entry: Document = {"name": judgement.gate, "kind": judgement.kind}
    if gate.paths:
        entry["paths"] = list(gate.paths)
        if judgement.verdict is not Verdict.PASS:
            judgement = judge_recorded(session, phase, gate, paths_exist=True)
            if judgement.verdict is Verdict.PASS:
                return entry
    return {**entry, "verdict": str(judgement.verdict), "reason": judgement.reason}


def _add(records: Document, keys: tuple[str, ...], record: Document) -> None:
    """Put the record under its keys. Of several gates of a kind, the first closed one is shown."""
    *parents, name = keys
    for key in parents:
        records = records.setdefault(key, {})
    if name not in records or (records[name]["completed"] and not record["completed"]):
        records[name] = record


def _delegations(state: PhaseState) -> Document:
    if not state.delegations:
        return {}
    return {"delegations": [{"agent": entry.agent, "agent_id": entry.agent_id} for entry in state.delegations]}
