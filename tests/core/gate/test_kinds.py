"""The kinds that come with Detent: what opens each of them, and their form in the journal."""

import msgspec
import pytest

from detent.core.gate import Opener
from detent.core.gate.evidence import GateState, Receipt, Result, Verdict
from detent.core.gate.kind import Gate, GateSettings, Surroundings
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.gate.kinds.changes import ChangesGate
from detent.core.gate.kinds.command import CommandGate, merge_gate
from detent.core.gate.kinds.consensus import ConsensusGate
from detent.core.gate.kinds.constitution import ConstitutionGate
from detent.core.gate.kinds.coverage import CoverageGate
from detent.core.gate.kinds.delegation import DelegationGate
from detent.core.gate.kinds.elicitation import ElicitationGate
from detent.core.gate.kinds.findings import FindingsGate
from detent.core.gate.kinds.mutation import MutationGate
from detent.core.gate.kinds.regression import RegressionGate
from detent.core.gate.kinds.review import ReviewGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.gate.registry import KINDS, register
from detent.core.testrun.baseline import Baseline
from detent.core.testrun.suite import Outcome
from detent.core.workflow.graph import Phase, Workflow

#: Gate, the act that opens it, and its form in the journal.
EVERY_KIND = (
    (TestsGate(command="pytest", coverage=80), Opener.RUN, '{"kind":"tests","command":"pytest","coverage":80}'),
    (RegressionGate(command="pytest"), Opener.RUN, '{"kind":"regression","command":"pytest"}'),
    (ChangesGate(), Opener.WORK, '{"kind":"changes"}'),
    (ConstitutionGate(articles=("I",)), Opener.RUN, '{"kind":"constitution","articles":["I"]}'),
    (ElicitationGate(name="ask"), Opener.ANSWER, '{"kind":"elicitation","name":"ask"}'),
    (ArtifactsGate(paths=("a",)), Opener.WORK, '{"kind":"artifacts","paths":["a"]}'),
    (DelegationGate(), Opener.DELEGATION, '{"kind":"delegation"}'),
    (CommandGate(command="make"), Opener.RUN, '{"kind":"command","command":"make"}'),
    (
        CoverageGate(report="coverage.xml", changed=90),
        Opener.RUN,
        '{"kind":"coverage","report":"coverage.xml","changed":90}',
    ),
    (
        FindingsGate(command="lint", report="out.sarif"),
        Opener.RUN,
        '{"kind":"findings","command":"lint","report":"out.sarif"}',
    ),
    (MutationGate(command="pytest"), Opener.RUN, '{"kind":"mutation","command":"pytest"}'),
    (ReviewGate(of="06-implementation"), Opener.RUN, '{"kind":"review","of":"06-implementation"}'),
    (ConsensusGate(approvers=("a",), quorum=1), Opener.VOTE, '{"kind":"consensus","approvers":["a"],"quorum":1}'),
    (ApprovalGate(), Opener.VOTE, '{"kind":"approval"}'),
)
NO_CLIENT = "no agent is installed"


@pytest.mark.parametrize(("gate", "opener", "text"), EVERY_KIND, ids=lambda it: getattr(it, "kind", ""))
def test_the_act_that_opens_it_and_its_form_in_the_journal(gate, opener, text):
    workflow = Workflow(name="w", phases=(Phase(key="a", gates=(gate,)),))

    assert gate.opened_by is opener
    assert msgspec.json.encode(gate).decode() == text
    # The digest decodes the workflow again.
    assert len(workflow.digest) == 64


def test_every_kind_is_in_the_table():
    assert {gate.kind for gate, _, _ in EVERY_KIND} == set(KINDS)


@pytest.mark.parametrize(
    ("opener", "person", "agent", "others"),
    [
        (Opener.RUN, False, True, False),
        (Opener.WORK, False, True, False),
        (Opener.DELEGATION, False, False, True),
        (Opener.VOTE, True, False, True),
        (Opener.ANSWER, True, False, False),
    ],
)
def test_who_opens(opener, person, agent, others):
    assert (opener.is_person, opener.is_agent, opener.is_for_others) == (person, agent, others)


@pytest.mark.parametrize(
    ("gate", "command"),
    [
        (TestsGate(), None),
        (TestsGate(command="make test"), "make test"),
        (CommandGate(command="make"), "make"),
        (ConstitutionGate(articles=("I",)), None),
        (ConstitutionGate(articles=("I",), checks={"I": "true"}), "its articles"),
        (ApprovalGate(), None),
    ],
)
def test_what_a_run_executes_for_it(gate, command):
    assert gate.runnable() == command


def test_only_a_merge_runs_last():
    assert merge_gate("merge", "a").runs_last
    assert not CommandGate(command="make").runs_last
    assert not TestsGate(command="detent merge").runs_last


@pytest.mark.parametrize(
    ("gate", "delegates", "is_observed", "reason"),
    [
        (ConstitutionGate(articles=("I",)), False, True, "no docs/constitution.md; see detent help gates"),
        (ConstitutionGate(articles=("I",), file="there"), False, True, None),
        (DelegationGate(), False, False, NO_CLIENT),
        (DelegationGate(), True, False, None),
        (DelegationGate(), False, True, None),
        (ElicitationGate(), True, False, NO_CLIENT),
        (ElicitationGate(), False, True, None),
        (TestsGate(), False, False, None),
    ],
)
def test_where_it_applies(gate, delegates, is_observed, reason):
    project = Surroundings(lambda path: path == "there", is_observed=is_observed, delegates=delegates)

    skipped = gate.skipped_because(project)

    assert (skipped is None) if reason is None else reason in skipped


PASSED, FAILED = Receipt(result=Result.PASSED, coverage=50.0), Receipt(result=Result.FAILED)
LOST = Receipt(result=Result.PASSED, lost={"a.py::test_a": Outcome.MISSING}, lost_count=1)


@pytest.mark.parametrize(
    ("gate", "state", "reason"),
    [
        (TestsGate(), GateState(receipt=FAILED, iterations=1, repeats=1), None),
        (TestsGate(), GateState(receipt=FAILED, iterations=3, repeats=3), "circuit_breaker"),
        (TestsGate(), GateState(receipt=FAILED, iterations=10, repeats=1), "max_iterations"),
        (TestsGate(coverage=80), GateState(receipt=PASSED, iterations=10), "coverage_below_threshold"),
        (TestsGate(coverage=80), GateState(receipt=PASSED, iterations=9), None),
        (TestsGate(coverage=40), GateState(receipt=PASSED, iterations=10), None),
        (TestsGate(), GateState(receipt=LOST, iterations=10), "max_iterations"),
        (TestsGate(), GateState(receipt=FAILED, iterations=10, escalated="max_iterations"), None),
        (ConstitutionGate(articles=("I",)), GateState(receipt=FAILED, iterations=4, repeats=4), None),
        (ConstitutionGate(articles=("I",)), GateState(receipt=FAILED, iterations=5, repeats=5), "max_iterations"),
        (ApprovalGate(), GateState(), None),
    ],
)
def test_when_another_run_would_not_help(gate, state, reason):
    assert gate.exhausted(state, Baseline()) == reason


@pytest.mark.parametrize("verdict", Verdict)
def test_tests_need_a_person_only_if_nothing_can_run_them(verdict):
    assert TestsGate().needs_person(verdict, sees_tests=False) is (verdict is Verdict.PENDING)
    assert not TestsGate().needs_person(verdict, sees_tests=True)
    assert not TestsGate(command="pytest").needs_person(verdict, sees_tests=False)


def test_a_kind_without_a_judge_is_refused_when_it_registers():
    class Empty(GateSettings, Gate, frozen=True, kw_only=True, tag="empty"):
        pass

    with pytest.raises(TypeError, match="gate kind empty has no judge, way_out, requirement"):
        register(Empty)
