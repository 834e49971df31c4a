"""What a mutation gate makes of the mutants of a tool, on values."""

import json

import pytest

from detent.core.gate.evidence import Facts, GateState, Verdict
from detent.core.gate.kind import Evidence
from detent.core.gate.kinds.mutation import MutationGate
from detent.core.reports.limits import ReportFile
from detent.core.session.phase_state import PhaseState
from detent.core.testrun.baseline import Baseline
from tests.support.check_runner import Ran, Runner
from tests.support.values import NOON

GATE = MutationGate(command="pytest")
CHANGED = {"calc.py": {2: b"x", 3: b"y"}, "tests/test_calc.py": {1: b"x"}}


def mutant(line, status, number="1"):
    location = {"start": {"line": line, "column": 1}, "end": {"line": line, "column": 9}}
    return {"id": number, "mutatorName": "Arithmetic", "location": location, "status": status}


def tried(*mutants, path="calc.py"):
    data = json.dumps({"schemaVersion": "1", "files": {path: {"mutants": mutants}}}).encode()
    return Ran(files=(ReportFile("mutants.json", "mutants.json", data),))


def judged(run, changed=CHANGED, accepted=()):
    receipt = GATE.run(Runner(run, changed=changed), None)
    state = GateState(receipt=receipt, iterations=1)
    return GATE.judge(Evidence("", PhaseState(), state, Facts(now=NOON), Baseline(accepted=accepted)))


def test_a_mutant_that_survives_is_named():
    assert judged(tried(mutant(2, "Killed"), mutant(3, "Survived"))) == (
        Verdict.FAIL,
        "1 mutant of the changed lines survives, so no test notices them: calc.py:3 Arithmetic #1",
    )
    assert judged(tried(mutant(3, "NoCoverage")))[0] is Verdict.FAIL


def test_a_person_accepts_a_mutant_that_changes_nothing():
    assert judged(tried(mutant(3, "Survived")), accepted=("calc.py:3 Arithmetic #1",))[0] is Verdict.PASS


def test_mutants_of_other_lines_and_files_do_not_count():
    assert judged(tried(mutant(9, "Survived"), mutant(2, "Killed"))) == (
        Verdict.PASS,
        "passed: 1 mutants of the changed lines were tried, 1 were noticed",
    )
    assert judged(tried(mutant(2, "Survived"), path="other.py"))[0] is Verdict.PASS


@pytest.mark.parametrize(
    ("mutants", "verdict"),
    [
        ([mutant(2, "Pending")], Verdict.PENDING),
        ([mutant(2, "Pending"), mutant(3, "Killed")], Verdict.PASS),
        ([mutant(2, "Timeout")], Verdict.PASS),
    ],
)
def test_when_the_time_is_over_some_must_have_been_tried(mutants, verdict):
    assert judged(tried(*mutants))[0] is verdict


def test_without_a_changed_line_there_is_nothing_to_notice():
    assert judged(Ran(problem="must not run"), changed={"tests/test_a.py": {1: b"x"}})[0] is Verdict.PASS


def test_a_tool_that_fails_is_an_error():
    assert judged(Ran(problem="the tests do not pass without a mutant"))[0] is Verdict.ERROR
