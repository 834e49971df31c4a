"""Whether a gate is open. Pure: what the world looks like comes in as `Facts`.

A gate that could not be judged is ERROR, and one that nothing is known about is PENDING; neither opens.
"""

from typing import assert_never

from detent.core.agents import SUB_AGENTS
from detent.core.evidence import Facts, GateState, Judgement, Receipt, Result, Verdict
from detent.core.gate import (
    Approval,
    Artifacts,
    Command,
    Consensus,
    Constitution,
    Delegation,
    Elicitation,
    Gate,
    Runnable,
    Tests,
    gate_kind,
    gate_name,
)
from detent.core.phase_state import PhaseState
from detent.core.session import Session

_SHOWN = 3


def judgements(session: Session, phase: str, facts: Facts) -> tuple[Judgement, ...]:
    """The verdict on each gate of the phase, in the order in which they are declared."""
    if not session.gates_apply:
        return ()
    return tuple(judge(session, phase, gate, facts) for gate in session.workflow.by_key[phase].gates)


def judge(session: Session, phase: str, gate: Gate, facts: Facts) -> Judgement:
    state = session.phases[phase]
    at_gate = state.gates.get(gate_name(gate), GateState())
    if at_gate.approved_by is not None:
        verdict, reason = Verdict.PASS, f"opened by {at_gate.approved_by}: {at_gate.approval_reason}"
    else:
        verdict, reason = _judge(session, state, gate, at_gate, facts)
    way_out = "" if verdict is Verdict.PASS else _way_out(phase, gate, at_gate)
    return Judgement(gate=gate_name(gate), kind=gate_kind(gate), verdict=verdict, reason=reason, way_out=way_out)


def artifact_paths(gate: Artifacts, folder: str) -> tuple[str, ...]:
    return tuple(path.replace("{artifact_folder}", folder) for path in gate.paths)


def falls_short(gate: Tests, receipt: Receipt) -> bool:
    """Whether the run told its coverage, and it is too low."""
    return gate.coverage is not None and receipt.coverage is not None and receipt.coverage < gate.coverage


def breaks_protected(gate: Tests, receipt: Receipt) -> bool:
    """Whether the tests as they were when the phase began did not pass, or were not run."""
    return bool(gate.protected) and receipt.protected is not Result.PASSED


def _judge(session: Session, state: PhaseState, gate: Gate, at_gate: GateState, facts: Facts) -> tuple[Verdict, str]:
    match gate:
        case Tests() | Command() | Constitution():
            return _judge_run(gate, at_gate, facts)
        case Elicitation():
            return _judge_elicitation(gate, at_gate)
        case Artifacts():
            missing = [path for path in artifact_paths(gate, session.folder) if path not in facts.exists]
            return (Verdict.FAIL, f"{_listed(missing)} not there") if missing else (Verdict.PASS, "all are there")
        case Delegation():
            return _judge_delegation(state)
        case Consensus():
            return _judge_votes(at_gate, gate.approvers, gate.quorum)
        case Approval():
            return _judge_votes(at_gate, gate.approvers, 1)
        case _:
            assert_never(gate)


def _judge_run(gate: Runnable, at_gate: GateState, facts: Facts) -> tuple[Verdict, str]:
    receipt = at_gate.receipt
    if receipt is None:
        return Verdict.PENDING, "no run yet"
    tries = f"run {at_gate.iterations} of {gate.max_iterations}"
    if at_gate.escalated is not None:
        return Verdict.FAIL, f"{tries}, a person must decide ({at_gate.escalated}): {receipt.error or receipt.result}"
    match receipt.result:
        case Result.FAILED:
            violated = f"articles {', '.join(receipt.violated)}: " if receipt.violated else ""
            return Verdict.FAIL, f"{tries} failed: {violated}{receipt.error or f'exit code {receipt.exit_code}'}"
        case Result.UNCLEAR:
            return Verdict.PENDING, f"{tries} was unclear: {receipt.error or 'no result could be read from it'}"
        case Result.ERROR:
            return Verdict.ERROR, f"the check could not run: {receipt.error or receipt.command}"
        case Result.PASSED:
            return _judge_pass(gate, receipt, facts)


def _judge_pass(gate: Runnable, receipt: Receipt, facts: Facts) -> tuple[Verdict, str]:
    if isinstance(gate, Tests):
        if falls_short(gate, receipt):
            return Verdict.FAIL, f"coverage is {receipt.coverage:g} %, and {gate.coverage} % are needed"
        if breaks_protected(gate, receipt):
            return Verdict.FAIL, f"the tests as they were when the phase began: {receipt.protected or 'not run'}"
    if receipt.inputs is not None:
        if receipt.inputs not in facts.changed:
            return Verdict.ERROR, "another run was recorded meanwhile; ask again"
        changed = facts.changed[receipt.inputs]
        if changed:
            return Verdict.STALE, f"{_listed(changed)} changed after the run that passed"
    return Verdict.PASS, f"passed: {receipt.command or 'reported'}"


def _judge_elicitation(gate: Elicitation, at_gate: GateState) -> tuple[Verdict, str]:
    if at_gate.interactions < 1 or at_gate.interactions < gate.interactions:
        return Verdict.PENDING, f"{at_gate.interactions} of {gate.interactions} questions were answered"
    if at_gate.selection not in gate.final:
        return Verdict.PENDING, f"nobody chose {' or '.join(gate.final)} yet"
    return Verdict.PASS, f"{at_gate.interactions} answers, then {at_gate.selection}"


def _judge_delegation(state: PhaseState) -> tuple[Verdict, str]:
    ended = [one for one in state.delegations if one.succeeded and one.agent not in SUB_AGENTS]
    if ended:
        return Verdict.PASS, f"{ended[-1].agent} ran"
    running = [one.agent for one in state.delegations if one.ended_at is None]
    if running:
        return Verdict.PENDING, f"{', '.join(running)} is still running"
    if state.delegations and state.delegations[-1].succeeded:
        return Verdict.PENDING, f"{state.delegations[-1].agent} ran, but {state.agent or 'the agent'} has not"
    if state.delegations:
        return Verdict.FAIL, f"{state.delegations[-1].agent} failed"
    return Verdict.PENDING, f"{state.agent or 'the agent'} has not run"


def _judge_votes(at_gate: GateState, approvers: tuple[str, ...], quorum: int) -> tuple[Verdict, str]:
    for_it = [who for who, vote in at_gate.votes.items() if vote.approve]
    against = [who for who, vote in at_gate.votes.items() if not vote.approve]
    if len(for_it) >= quorum:
        return Verdict.PASS, f"approved by {', '.join(for_it)}"
    open_votes = [who for who in approvers if who not in at_gate.votes]
    if against and (not approvers or len(for_it) + len(open_votes) < quorum):
        return Verdict.FAIL, f"{', '.join(against)} said no: {at_gate.votes[against[-1]].reason}"
    waiting = f"; {', '.join(open_votes)} may still vote" if open_votes else ""
    return Verdict.PENDING, f"{len(for_it)} of {quorum} approvals{waiting}"


def _way_out(phase: str, gate: Gate, at_gate: GateState) -> str:
    name = gate_name(gate)
    if at_gate.escalated is not None:
        return f"detent resolve retry|skip|cancel, or detent approve {phase} --gate {name} -m WHY"
    match gate:
        case Tests() | Command():
            return f"detent gate run {name}" if gate.command else f"detent gate run {name} -- YOUR TEST COMMAND"
        case Constitution():
            return f"detent gate run {name}" if gate.checks else f"detent gate report {name} --compliant"
        case Elicitation():
            return f"detent gate answer {name} --choice {gate.final[0]}"
        case Artifacts():
            return "write them, then finish again"
        case Delegation():
            return f"let the agent of {phase} run, or detent approve {phase} --gate {name} -m WHY"
        case Consensus() | Approval():
            left = [who for who in gate.approvers if who not in at_gate.votes]
            named = f" --as {left[0]}" if left else ""
            return f"detent approve {phase} --gate {name}{named} -m WHY"
        case _:
            assert_never(gate)


def _listed(paths: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
