"""What a findings gate makes of SARIF, on values: by level, new since the phase began, accepted by a person."""

import json

import pytest

from detent.core.gate.evidence import Facts, GateState, Verdict
from detent.core.gate.kind import Evidence
from detent.core.gate.kinds.findings import FindingsGate
from detent.core.reports.limits import ReportFile
from detent.core.session.commands import AcceptLoss, CheckGate
from detent.core.session.decide import decide
from detent.core.session.phase_state import PhaseState
from detent.core.testrun.baseline import Baseline
from detent.core.workflow.graph import Phase, Workflow
from detent.errors import NotFound
from tests.support.check_runner import Ran, Runner
from tests.support.values import NOON, after, opened

GATE = FindingsGate(command="lint", report="out.sarif")
FACTS = Facts(now=NOON)


def finding(rule, level=None, line=1, suppressed=False):
    found = {"ruleId": rule, "message": {"text": f"bad {rule}"}}
    place = {"artifactLocation": {"uri": "file:///p/a.py"}, "region": {"startLine": line}}
    found["locations"] = [{"physicalLocation": place}]
    found |= {"level": level} if level else {}
    return found | ({"suppressions": [{"kind": "inSource"}]} if suppressed else {})


def linted(*found, exit_code=1):
    run = {"tool": {"driver": {"name": "lint", "rules": [{"id": "N", "defaultConfiguration": {"level": "note"}}]}}}
    log = {"version": "2.1.0", "runs": [run | {"results": list(found)}]}
    data = json.dumps(log).encode()
    return Ran(exit_code=exit_code, directory="/p", files=(ReportFile("out.sarif", "out.sarif", data),))


def judged(now, before=None, gate=GATE, baseline=None, **more):
    receipt = gate.run(Runner(now, begun=before, **more), None)
    state = GateState(receipt=receipt, iterations=1)
    return gate.judge(Evidence("", PhaseState(), state, FACTS, baseline or Baseline()))


def test_only_findings_that_were_not_there_when_the_phase_began_count():
    old, new = finding("A", line=3), finding("B", line=9)

    assert judged(linted(finding("A", line=30)), linted(old)) == (
        Verdict.PASS,
        "passed: lint: no new finding of level warning or worse",
    )
    verdict, reason = judged(linted(old, new), linted(old))
    assert verdict is Verdict.FAIL
    assert reason == "1 new finding of level warning or worse: a.py:9 B (warning): bad B"


@pytest.mark.parametrize("before", [None, Ran(problem="no"), Ran(unread={"out.sarif": "no file"})])
def test_where_the_begin_is_not_known_every_finding_counts(before):
    assert judged(linted(finding("A")), before)[0] is Verdict.FAIL


@pytest.mark.parametrize(
    ("found", "level", "is_open"),
    [
        (finding("A", "error"), "error", False),
        (finding("A", "warning"), "error", True),
        (finding("A"), "warning", False),
        (finding("N"), "warning", True),
        (finding("N"), "note", False),
        (finding("A", "none"), "note", True),
        (finding("A", suppressed=True), "warning", False),
    ],
)
def test_a_finding_counts_from_its_level_on(found, level, is_open):
    gate = FindingsGate(command="lint", report="out.sarif", level=level)

    assert (judged(linted(found), gate=gate)[0] is Verdict.PASS) is is_open


def test_looser_settings_count_less_and_stricter_ones_more():
    ignoring = FindingsGate(command="lint", report="out.sarif", suppressed="ignore")
    ever = FindingsGate(command="lint", report="out.sarif", since="ever")

    assert judged(linted(finding("A", suppressed=True)), gate=ignoring)[0] is Verdict.PASS
    assert judged(linted(finding("A")), linted(finding("A")), gate=ever)[0] is Verdict.FAIL


def test_a_report_that_is_not_of_this_run_is_unclear_and_changed_settings_are_a_failure():
    assert judged(Ran(unread={"out.sarif": "out.sarif is older than the run"})) == (
        Verdict.PENDING,
        "run 1 of 10 was unclear: the findings cannot be read: out.sarif is older than the run",
    )
    verdict, reason = judged(linted(), settings=("ruff.toml",))
    assert verdict is Verdict.FAIL
    assert "detent gate accept findings file:ruff.toml -m WHY" in reason


def test_a_person_accepts_a_finding_by_its_name():
    workflow = Workflow(name="w", phases=(Phase(key="a", gates=(GATE,)),))
    session = opened(workflow)
    receipt = GATE.run(Runner(linted(finding("A"))), None)
    session = after(session, decide(session, CheckGate(phase="a", gate="findings", receipt=receipt), FACTS))
    [name] = receipt.findings

    with pytest.raises(NotFound):
        decide(session, AcceptLoss(phase="a", gate="findings", names=("other",), reason="old"), FACTS)
    accepted = decide(session, AcceptLoss(phase="a", gate="findings", names=(name,), reason="old"), FACTS)

    session = after(session, accepted)
    state = session.phases["a"].gates["findings"]
    verdict, reason = GATE.judge(Evidence("", session.phases["a"], state, FACTS, session.baseline))
    assert (verdict, "; 1 accepted" in reason) == (Verdict.PASS, True)
