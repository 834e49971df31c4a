"""The open decisions of a session: pure, from its value."""

import pytest
from msgspec.structs import replace

from detent.core.gate import gate_name
from detent.core.gate.evidence import Delegated, Judgement, Verdict
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.mutation import MutationGate
from detent.core.gate.kinds.regression import RegressionGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.session.open_decision import DecisionKind, View, open_decisions
from detent.core.session.phases import Phases
from detent.core.session.session import Escalation, SessionStatus
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from tests.support.values import NOON, session_at


def session(*gates, status=Status.IN_PROGRESS):
    return session_at({"a": status}, graph=Workflow(name="w", phases=(Phase(key="a", gates=gates),)))


def judged(kind, verdict=Verdict.PENDING):
    return Judgement(gate=kind, kind=kind, verdict=verdict, reason="because", way_out="x")


def kinds(session, *judgements, **view):
    return [entry.kind for entry in open_decisions(session, {"a": judgements}, View(**view))]


def test_a_vote_waits_until_everything_else_is_open():
    both = session(ApprovalGate(), CommandGate(command="make"))

    assert kinds(both, judged("approval"), judged("command")) == []
    assert kinds(both, judged("approval"), judged("command", Verdict.PASS)) == [DecisionKind.VOTE]


def test_tests_that_nobody_can_run_need_a_command():
    assert kinds(session(TestsGate()), judged("tests")) == []
    assert kinds(session(TestsGate()), judged("tests"), sees_tests=False) == [DecisionKind.COMMAND]


@pytest.mark.parametrize("gate", [TestsGate(), RegressionGate(), MutationGate(report="m.json")], ids=gate_name)
def test_what_is_missing_is_said_without_the_command_that_follows_it(gate):
    [entry] = open_decisions(session(gate), {"a": [judged(gate_name(gate))]}, View(sees_tests=False))

    assert entry.command == f"detent gate set {gate_name(gate)} --command COMMAND -m WHY"
    assert "detent" not in entry.what


def test_work_that_is_not_done_is_no_decision():
    assert kinds(session(ArtifactsGate(paths=("x",))), judged("artifacts", Verdict.FAIL)) == []


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.STALE, Verdict.ERROR])
def test_a_run_repeats_checks_itself_now_and_when_it_goes_on(verdict):
    gated = session(CommandGate(command="make"))
    begun = Delegated(agent="x", agent_id="run-1/a/1", launched_at=NOON)
    resumed = replace(gated, phases=Phases({"a": replace(gated.phases["a"], delegations=(begun,))}))

    assert kinds(gated, judged("command", verdict))
    assert kinds(gated, judged("command", verdict), running=True) == []
    assert kinds(resumed, judged("command", verdict)) == []


def test_the_gate_of_an_escalation_is_not_listed_twice():
    gated = session(CommandGate(command="make"))
    raised = replace(gated, escalations=(Escalation(kind="k", phase="a", gate="command", detail="d", at=NOON),))

    assert kinds(raised, judged("command", Verdict.FAIL)) == [DecisionKind.ESCALATION]


def test_an_ended_session_needs_nobody():
    ended = replace(session(ApprovalGate()), status=SessionStatus.COMPLETED)

    assert kinds(ended, judged("approval")) == []
