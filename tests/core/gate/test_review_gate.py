"""Who may review whose work, on values."""

import pytest

from detent.core.gate.evidence import Facts, GateState, Receipt, Result, Review, Reviewer, Verdict
from detent.core.gate.kind import Evidence
from detent.core.gate.kinds.review import ReviewGate, not_independent
from detent.core.session.phase_state import PhaseState
from detent.errors import Refused
from tests.support.check_runner import Ran, Runner
from tests.support.values import NOON

GATE = ReviewGate()


def agent(client, role=""):
    return Reviewer(client=client, role=role)


@pytest.mark.parametrize(
    ("reviewer", "author", "by_role", "by_client"),
    [
        (agent("codex"), agent("claude-code"), True, True),
        (agent("codex"), agent("codex"), False, False),
        (agent("codex", "reviewer"), agent("codex", "developer"), True, False),
        (agent("codex", "developer"), agent("codex", "developer"), False, False),
        (agent("codex", "reviewer"), agent("codex"), False, False),
        (agent("codex"), agent("codex", "developer"), False, False),
        (agent("codex", "developer"), agent("claude-code", "developer"), True, True),
    ],
)
def test_a_reviewer_is_of_another_role_or_client(reviewer, author, by_role, by_client):
    others = agent("gemini")

    assert (not_independent(reviewer, (others, author), "role") is None) is by_role
    assert (not_independent(reviewer, (others, author), "client") is None) is by_client


def judged(receipt, changed=()):
    facts = Facts(now=NOON, changed={"in": changed})
    return GATE.judge(Evidence("", PhaseState(), GateState(receipt=receipt, iterations=1), facts))


def review(result=Result.PASSED, reviewer="codex", authors=("claude-code",)):
    report = Review(reviewer=agent(reviewer), authors=tuple(map(agent, authors)), text="read it all")
    return Receipt(result=result, review=report, inputs="in", error=None if result is Result.PASSED else "codex: no")


def test_a_review_passes_for_the_files_that_were_looked_at():
    assert judged(None) == (Verdict.PENDING, "no other agent has reviewed the work")
    assert judged(review()) == (Verdict.PASS, "codex reviewed the work of claude-code: read it all")
    assert judged(review(), changed=("calc.py",))[0] is Verdict.STALE
    assert judged(review(Result.FAILED))[0] is Verdict.FAIL


@pytest.mark.parametrize(
    "receipt",
    [Receipt(result=Result.PASSED, inputs="in"), review(authors=()), review(authors=("codex",))],
    ids=["no report", "no author", "its own work"],
)
def test_a_receipt_that_no_other_agent_left_opens_nothing(receipt):
    assert judged(receipt)[0] is Verdict.FAIL
    assert GATE.contradiction(receipt) is not None


def test_a_run_does_not_open_it():
    with pytest.raises(Refused, match="report of another agent"):
        GATE.run(Runner(Ran()), None)
