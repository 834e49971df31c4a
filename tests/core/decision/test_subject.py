"""What a commit decides, in the words of a statement, and how strong it has to be."""

from typing import get_args

import pytest
from msgspec.structs import replace

from detent.core.actor import Assurance
from detent.core.decision.matching import expected, mismatches
from detent.core.decision.statement import Statement
from detent.core.decision.subject import DecisionEvent, needed_assurance, subject
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.session import events
from detent.core.session.events import Options
from detent.core.session.open_decision import open_decisions
from detent.core.session.status import Status
from detent.core.testrun.baseline import KnownTests
from detent.engine.policy import RULES
from detent.errors import Refused
from tests.support.values import NOON, row, session_at

VOTE = events.VoteCast(phase="a", gate="approval", approver="ada", approve=True, reason="fine")
SKIP = events.PhaseSkipped(phase="a", reason="no")


def at(gates=(), assurance=Assurance.ATTENDED):
    """A session in a phase with these gates."""
    graph = row("a", "b")
    graph = replace(graph, phases=(replace(graph.phases[0], gates=tuple(gates)), *graph.phases[1:]))
    session = session_at({"a": Status.IN_PROGRESS}, graph=graph)
    return replace(session, options=Options(assurance=assurance))


def test_every_decision_of_the_policy_has_a_subject():
    decided = {event for rule in RULES for event in rule.events}

    assert decided <= set(get_args(DecisionEvent))


@pytest.mark.parametrize(
    ("decided", "said"),
    [
        ((VOTE,), ("a", "approval", "", "fine")),
        ((events.GateApproved(phase="a", gate="tests", reason="flaky"),), ("a", "tests", "by hand", "flaky")),
        ((SKIP,), ("a", "", "a", "no")),
        ((SKIP, events.PhaseSkipped(phase="b", reason="no")), ("", "", "a, b", "no")),
        ((events.EscalationsResolved(action="retry", reason="up"),), ("", "", "retry", "up")),
        ((events.EscalationsResolved(action="skip", phase="a"), SKIP), ("a", "", "skip a", "")),
        ((events.QuestionReplied(id="Q1", phase="a", answer="left"),), ("a", "", "Q1: left", "")),
        ((events.QuestionAnswered(phase="a", gate="ask", choice="go"),), ("a", "ask", "go", "")),
        ((events.PhaseReviewed(phase="a", decision="redo", note="smaller"),), ("a", "", "redo", "smaller")),
        (
            (events.GateCommandSet(gate="tests", phases=("a", "b"), command="make test", reason="gone"),),
            ("", "tests", "a, b: make test", "gone"),
        ),
        (
            (events.LossAccepted(phase="a", gate="tests", names=("t1", "t2"), reason="gone"),),
            ("a", "tests", "t1, t2", "gone"),
        ),
        (
            (events.BaselineReplaced(command="pytest", tests=KnownTests(count=3, names="d1"), reason="new"),),
            ("", "", "pytest: 3 tests d1", "new"),
        ),
        ((events.SessionCancelled(reason="no"),), ("", "", "", "no")),
        (
            (events.RolledBack(id="r", to="c1", name="PRE_a_v1", safety="s", paths=("x", "y")),),
            ("", "", "PRE_a_v1 c1: x, y", ""),
        ),
    ],
)
def test_a_statement_says_what_is_chosen(decided, said):
    about = subject(decided)

    assert (about.phase, about.gate, about.choice, about.reason) == said


def test_a_vote_against_is_another_decision():
    assert subject([replace(VOTE, approve=False)]).decision("approve") == "reject"
    assert subject([VOTE]).decision("approve") == "approve"


@pytest.mark.parametrize("second", [VOTE, events.SessionCancelled(reason="x"), events.SessionCompleted(forced=True)])
def test_a_signature_covers_one_decision(second):
    """A further decision in the same commit would be signed by nobody."""
    with pytest.raises(Refused, match="holds one decision"):
        subject([SKIP, second])


@pytest.mark.parametrize(
    ("decided", "needed"),
    [
        (VOTE, Assurance.HARDWARE),
        (events.GateApproved(phase="a", gate="approval", reason="x"), Assurance.HARDWARE),
        (SKIP, Assurance.HARDWARE),
        (events.SessionCompleted(forced=True), Assurance.HARDWARE),
        (events.PhaseSkipped(phase="b", reason="x"), Assurance.SIGNED),
        (events.EscalationsResolved(action="retry"), Assurance.SIGNED),
        (events.SessionCancelled(reason="x"), Assurance.SIGNED),
    ],
)
def test_a_gate_asks_for_more_than_the_session(decided, needed):
    session = at([ApprovalGate(assurance=Assurance.HARDWARE)], Assurance.SIGNED)

    assert needed_assurance(session, [decided]) is needed


def test_the_setting_of_a_gate_counts_alone_for_its_votes():
    session = at([ApprovalGate(assurance=Assurance.ATTENDED)], Assurance.HARDWARE)

    assert needed_assurance(session, [VOTE]) is Assurance.ATTENDED
    assert needed_assurance(session, [SKIP]) is Assurance.HARDWARE


def test_a_statement_must_say_everything_that_is_decided():
    session = at([ApprovalGate()])
    about = subject([VOTE])
    must = expected(session, "approve", about, project="p", tree="t")
    right = Statement(
        project="p",
        session=session.id,
        phase="a",
        gate="approval",
        attempt=must.attempt,
        decision="approve",
        reason="fine",
        version=must.since,
        tree="t",
        at=NOON,
        nonce="0",
    )

    assert mismatches(right, must) == []
    for field, value in {
        "project": "q",
        "session": "x",
        "phase": "b",
        "gate": "x",
        "attempt": 9,
        "decision": "reject",
        "choice": "x",
        "reason": "x",
        "stands_for": "x",
        "tree": "u",
    }.items():
        [wrong] = mismatches(replace(right, **{field: value}), must)
        assert field in wrong or (field == "tree" and "the files" in wrong)


@pytest.mark.parametrize("assurance", Assurance)
def test_the_command_of_a_decision_is_signed_where_it_must_be(assurance):
    """A command that is shown is not refused."""
    for session in (at([ApprovalGate(assurance=assurance)]), at([ApprovalGate()], assurance)):
        [entry] = open_decisions(session)
        is_signed = assurance is not Assurance.ATTENDED
        assert entry.command.endswith(" --sign") == is_signed
        assert all(other.endswith(" --sign") == is_signed for other in entry.others)


def test_the_options_of_a_session_default_to_attended():
    assert Options().assurance is Assurance.ATTENDED
