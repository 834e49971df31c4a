"""Applies an event at a gate to the state of the gate."""

from datetime import datetime
from typing import assert_never

from msgspec.structs import replace

from detent.core.actor import Assurance, Proof
from detent.core.decision.statement import read_statement
from detent.core.gate.evidence import GateState, Receipt, Result, Vote
from detent.core.session.events import GateApproved, GateChecked, GateEvent, QuestionAnswered, VoteCast
from detent.errors import Invalid


def gate_after(state: GateState, event: GateEvent, *, at: datetime, by: str, proof: Proof | None = None) -> GateState:
    """`by` is the identity behind the event, and `proof` is that of its commit."""
    assurance, tree = (proof.assurance, _signed_tree(proof)) if proof is not None else (Assurance.ATTENDED, "")
    match event:
        case GateChecked():
            return _checked(state, event.receipt, at)
        case QuestionAnswered():
            return replace(state, interactions=state.interactions + 1, selection=event.choice or state.selection)
        case VoteCast():
            vote = Vote(
                approve=event.approve,
                reason=event.reason,
                stands_for=event.stands_for,
                at=at,
                assurance=assurance,
                key=proof.key if proof is not None else "",
                tree=tree,
            )
            return replace(state, votes={**state.votes, event.approver: vote})
        case GateApproved():
            return replace(
                state,
                approved_by=by,
                approval_reason=event.reason,
                approval_assurance=assurance,
                approval_tree=tree,
                escalated=None,
            )
        case _:
            assert_never(event)


def _signed_tree(proof: Proof) -> str:
    """The digest of the files that the decision was signed for; empty if nothing was signed.

    A text that no one could sign is not refused here: a journal that has it replays, and is found by verification.
    """
    try:
        return read_statement(proof.statement).tree if proof.signature else ""
    except Invalid:
        return ""


def _checked(state: GateState, receipt: Receipt, at: datetime) -> GateState:
    if receipt.aside is not None:
        return replace(state, aside=receipt)
    failed = receipt.result is Result.FAILED or receipt.lost_count > 0
    same = failed and state.receipt is not None and state.receipt.signature == receipt.signature
    return replace(
        state,
        iterations=state.iterations + 1,
        failures=state.failures + failed,
        repeats=(state.repeats + 1 if same else 1) if failed else 0,
        receipt=receipt,
        aside=None,
        checked_at=at,
    )
