"""What a coverage gate makes of a report, on values; and that the threshold of a tests gate has the same judge."""

import json

import pytest

from detent.core.gate.evidence import Facts, GateState, Receipt, Result, Verdict
from detent.core.gate.kind import Evidence, Surroundings
from detent.core.gate.kinds.coverage import CoverageGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.reports.limits import ReportFile
from detent.core.session.phase_state import PhaseState
from tests.support.check_runner import Ran, Runner
from tests.support.values import NOON

GATE = CoverageGate(command="cov", report="cov.json", total=80, changed=90)
FILES = ("calc.py", "new.py", "tests/test_calc.py", "README.md")
#: The gate is not there to be opened by a project whose checkpoints take nothing.
BLIND = Surroundings(lambda _: True, is_observed=True, delegates=True, captures_all=False)


def wrote(**files):
    """A run that wrote the lines that ran and that were missed, by file."""
    report = {
        "files": {
            f"{name}.py": {"executed_lines": ran, "missing_lines": missed} for name, (ran, missed) in files.items()
        }
    }
    return Ran(files=(ReportFile("cov.json", "cov.json", json.dumps(report).encode()),))


def judged(gate, run, changed=None, **more):
    lines = {path: dict.fromkeys(numbers, b"x = 1") for path, numbers in (changed or {}).items()}
    receipt = gate.run(Runner(run, present=FILES, changed=lines, **more), None)
    state = GateState(receipt=receipt, iterations=1)
    return gate.judge(Evidence("", PhaseState(), state, Facts(now=NOON)))


def test_a_pass_says_how_much_is_covered():
    run = wrote(calc=([1, 2, 3, 4, 5], [6]))

    assert judged(GATE, run, {"calc.py": [1, 2]}) == (
        Verdict.PASS,
        "passed: cov: 83.33 % in all, 100 % of the changed lines",
    )


@pytest.mark.parametrize(
    ("run", "changed", "reason"),
    [
        (wrote(calc=([1], [2])), {}, "coverage is 50 %, and 80 % are needed"),
        (wrote(calc=([*range(9)], [9])), {"calc.py": [8, 9]}, "lines is 50 %, and 90 % are needed: calc.py:9"),
        (wrote(calc=([1, 2], [])), {"new.py": [1, 2]}, "needed: new.py (not in the report)"),
    ],
    ids=["in all", "changed lines", "a file that no test loads"],
)
def test_too_little_is_a_failure_that_names_the_lines(run, changed, reason):
    verdict, text = judged(GATE, run, changed)

    assert (verdict, reason in text) == (Verdict.FAIL, True), text


def test_tests_and_other_languages_are_not_measured():
    run = wrote(calc=([1], []))

    assert judged(GATE, run, {"tests/test_calc.py": [1], "README.md": [1]})[0] is Verdict.PASS


def test_a_changed_line_that_leaves_itself_out_is_uncovered():
    changed = {"calc.py": {1: b"x", 2: b"def f():  # pragma: no cover", 3: b"x"}}
    receipt = GATE.run(Runner(wrote(calc=([1, 3], [])), present=FILES, changed=changed), None)

    assert (receipt.changed_coverage, receipt.findings) == (66.66, ("calc.py:2",))


@pytest.mark.parametrize(
    "run",
    [
        Ran(unread={"cov.json": "cov.json is older than the run"}),
        Ran(files=(ReportFile("cov.json", "cov.json", b"{"),)),
    ],
    ids=["older", "unreadable"],
)
def test_without_a_report_of_this_run_nothing_passes(run):
    verdict, reason = judged(GATE, run)

    assert verdict is Verdict.PENDING
    assert "coverage cannot be read: " in reason


def test_a_failed_command_and_changed_settings_are_failures():
    assert judged(GATE, wrote(calc=([1], []))._replace(exit_code=1, output="1 failed"))[0] is Verdict.FAIL

    verdict, reason = judged(GATE, wrote(calc=([1], [])), settings=(".coveragerc",))

    assert verdict is Verdict.FAIL
    assert "detent gate accept coverage file:.coveragerc -m WHY" in reason


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"report": "cov.json"}, "needs total, changed, or both"),
        ({"report": "", "total": 80}, "report: name the file"),
        ({"report": "/etc/passwd", "total": 80}, "is no path in the project"),
        ({"report": "../cov.json", "total": 80}, "is no path in the project"),
    ],
)
def test_settings_that_decide_nothing_are_refused(settings, problem):
    with pytest.raises(ValueError, match=problem):
        CoverageGate(**settings)


def test_a_branch_is_pinned_as_the_commit_that_it_is_at_the_start():
    project = Surroundings(lambda _: True, is_observed=True, delegates=True, tests="pytest", commit_of=lambda _: "abc")
    gate, _ = CoverageGate(report="c", changed=80, against="main").fitted(project)

    assert (gate.against, gate.command) == ("abc", "pytest")


def test_where_the_start_is_not_captured_changed_lines_are_left_out():
    gate, line = GATE.fitted(BLIND)

    assert (gate.changed, gate.total) == (None, 80)
    assert "no coverage threshold of changed lines" in str(line)
    assert CoverageGate(report="c", changed=80).skipped_because(BLIND) is not None
    assert CoverageGate(report="c", changed=80, against="main").skipped_because(BLIND) is None


@pytest.mark.parametrize("coverage", [79.99, 80.0, None])
def test_the_threshold_of_a_tests_gate_has_the_same_judge(coverage):
    receipt = Receipt(result=Result.PASSED, command="pytest", coverage=coverage)
    state = GateState(receipt=receipt, iterations=1)
    evidence = Evidence("", PhaseState(), state, Facts(now=NOON))
    short = TestsGate(command="pytest", coverage=80)
    long = CoverageGate(command="pytest", report="c", total=80)

    assert short.shortfall(receipt, evidence.baseline) == long.shortfall(receipt, evidence.baseline)
    assert short.unknown(receipt) == long.unknown(receipt)
    assert short.judge(evidence)[0] is long.judge(evidence)[0]
