"""Votes: one a person, counted by identity, in the place of a role where one is named."""

from datetime import UTC, datetime

import pytest

from detent.core.gate.evidence import NOTHING_KNOWN, GateState, Verdict, Vote
from detent.core.gate.kind import Evidence
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.consensus import ConsensusGate
from detent.core.gate.state import gate_after
from detent.core.session.commands import Approve
from detent.core.session.decide import decide
from detent.core.session.events import VoteCast
from detent.core.session.phase_state import PhaseState
from detent.core.workflow.graph import Phase, Workflow
from detent.errors import Refused
from tests.support.values import opened

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROLES = {"lead": ("ada",), "sec": ("ada", "bob"), "ops": ("cyd",)}
CONSENSUS = ConsensusGate(approvers=("lead", "sec", "ops"), quorum=2, roles=ROLES)
LOWERED = ConsensusGate(approvers=("lead", "sec", "ops"), quorum=1, lowered_from=2)


def judged(gate, *votes):
    """The verdict after votes of `(identity, stands for, approves)`."""
    state = GateState()
    for who, stands_for, approve in votes:
        vote = VoteCast(phase="a", gate="g", approver=who, stands_for=stands_for, approve=approve, reason="why")
        state = gate_after(state, vote, at=NOON, by=who)
    return gate.judge(Evidence("", PhaseState(agent=""), state, NOTHING_KNOWN))


@pytest.mark.parametrize(
    ("votes", "verdict", "reason"),
    [
        ((), Verdict.PENDING, "0 of 2 approvals; ada, bob, cyd may still vote"),
        ((("ada", "", True),), Verdict.PENDING, "1 of 2 approvals; bob, cyd may still vote"),
        # One identity in two roles, twice by itself, and once in its own name and once in that of a role.
        ((("ada", "lead", True), ("ada", "sec", True)), Verdict.PENDING, "1 of 2 approvals; bob, cyd may still vote"),
        ((("ada", "", True), ("bob", "", True)), Verdict.PASS, "approved by ada, bob"),
        ((("ada", "", True), ("eve", "ops", True)), Verdict.PASS, "approved by ada; eve, as ops"),
        ((("ada", "", False), ("bob", "", False)), Verdict.FAIL, "ada, bob rejected it: why"),
        ((("ada", "", False), ("ada", "", True), ("cyd", "", True)), Verdict.PASS, "approved by ada, cyd"),
    ],
)
def test_a_quorum_counts_identities(votes, verdict, reason):
    assert judged(CONSENSUS, *votes) == (verdict, reason)


def test_a_lower_quorum_is_open_to_anybody_and_says_so():
    lowered = " (quorum lowered at the start; 2 of lead, sec, ops were declared)"

    assert judged(LOWERED) == (Verdict.PENDING, f"0 of 1 approvals{lowered}")
    assert judged(LOWERED, ("eve", "", True)) == (Verdict.PASS, f"approved by eve{lowered}")
    assert judged(LOWERED, ("eve", "", False))[0] is Verdict.FAIL


@pytest.mark.parametrize(
    ("gate", "identity", "stands_for"),
    [
        (CONSENSUS, "ada", ""),
        (CONSENSUS, "bob", "sec"),
        (ConsensusGate(approvers=("ada", "bob"), quorum=2), "bob", ""),
        # In the place of a person who is named: shown as such, and still a vote of one's own.
        (ConsensusGate(approvers=("ada", "bob"), quorum=2), "eve", "bob"),
        (ApprovalGate(), "anyone", ""),
        (LOWERED, "anyone", ""),
        (LOWERED, "anyone", "lead"),
    ],
)
def test_who_may_vote(gate, identity, stands_for):
    gate.check_voter("a", identity, stands_for)


@pytest.mark.parametrize(
    ("gate", "identity", "stands_for", "said"),
    [
        (CONSENSUS, "eve", "", "eve is not an approver of consensus; lead (ada), sec (ada or bob), ops (cyd) are"),
        (CONSENSUS, "eve", "lead", "lead is filled by ada, and you are eve"),
        (CONSENSUS, "ada", "boss", "boss is not an approver of consensus"),
        # A role is no identity: an account of that name fills it no more than others do.
        (CONSENSUS, "lead", "", "lead is not an approver of consensus"),
        (ApprovalGate(approvers=("ada",)), "eve", "", "eve is not an approver of approval; ada are"),
    ],
)
def test_who_may_not_vote(gate, identity, stands_for, said):
    with pytest.raises(Refused) as refused:
        gate.check_voter("a", identity, stands_for)

    assert said in refused.value.message
    assert refused.value.way_out
    assert "--as" not in refused.value.way_out


@pytest.mark.parametrize("gate", [CONSENSUS, ConsensusGate(approvers=("ada", "bob"), quorum=2), LOWERED])
def test_no_way_out_suggests_to_vote_for_somebody_else(gate):
    votes = {"ada": Vote(approve=True, at=NOON)}

    assert gate.way_out("a", GateState(votes=votes)) == "detent approve a --gate consensus -m WHY"


@pytest.mark.parametrize(
    ("gate", "known", "is_reached"),
    [
        (CONSENSUS, {"ada", "bob"}, True),
        (CONSENSUS, {"ada", "eve"}, False),
        (ConsensusGate(approvers=("lead", "sec"), quorum=1), {"ada"}, False),
        (ConsensusGate(approvers=("ada", "sec"), quorum=1), {"ada"}, True),
        (ConsensusGate(approvers=("ada",), quorum=5), {"ada"}, False),
        (LOWERED, {"ada"}, True),
        (ApprovalGate(), {"ada"}, True),
        (ApprovalGate(approvers=("boss",)), {"ada"}, False),
    ],
)
def test_whether_a_quorum_can_be_reached(gate, known, is_reached):
    assert (gate.unreachable(known) is None) is is_reached


def test_only_votes_are_cast_in_the_place_of_another():
    session = opened(Workflow(name="w", phases=(Phase(key="a", gates=(CommandGate(command="make"),)),)))
    command = Approve(phase="a", gate="command", identity="ada", stands_for="bob", reason="why")

    with pytest.raises(Refused, match="an approval cannot stand for bob"):
        decide(session, command, NOTHING_KNOWN)
