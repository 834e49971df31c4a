"""What a regression gate makes of the run on the files of the start and of the present one, on values."""

import pytest

from detent.core.gate.evidence import Facts, GateState, Receipt, Result, Verdict
from detent.core.gate.kind import Evidence, Surroundings
from detent.core.gate.kinds.changes import ChangesGate
from detent.core.gate.kinds.regression import RegressionGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.session.commands import SetGateCommand
from detent.core.session.decide import decide
from detent.core.session.phase_state import PhaseState
from detent.core.testrun.baseline import Baseline
from detent.core.workflow.graph import Phase, Workflow
from detent.errors import Refused
from tests.support.check_runner import Ran, Runner, ran
from tests.support.values import NOON, after, opened

GATE = RegressionGate(command="pytest -q")
OLD, NEW, OTHER = "t.py::old", "t.py::new", "t.py::other"


def tried(now, before, *, stood=(OLD,), given=None, gate=GATE, **more):
    return gate.run(Runner(now, before=before, stood=stood, **more), given)


def judged(receipt, gate=GATE):
    state = GateState(receipt=receipt, iterations=0 if receipt is None else 1)
    return gate.judge(Evidence("folder", PhaseState(), state, Facts(now=NOON)))


def test_a_new_test_that_failed_at_the_start_and_passes_now_opens_the_gate():
    receipt = tried(ran("old", "new"), ran("old", failed=["new"], exit_code=1))

    assert judged(receipt) == (Verdict.PASS, f"{NEW} failed on the files of the start, and passes now")
    assert (receipt.shown, receipt.tests, receipt.command) == ((NEW,), None, "pytest -q")


@pytest.mark.parametrize(
    ("before", "word"),
    [
        (ran("old", "new"), "passed"),
        (ran("old", skipped=["new"]), "skipped"),
        (ran("old", expected=["new"]), "expected to fail"),
        (ran("old", broken=["new"], exit_code=1), "failed outside of the test"),
        (ran("old", unimported=["new"], exit_code=1), "failed outside of the test"),
        (ran("old"), "did not run"),
    ],
)
def test_a_test_that_did_not_fail_by_itself_at_the_start_shows_nothing(before, word):
    receipt = tried(ran("old", "new"), before)

    assert judged(receipt) == (
        Verdict.FAIL,
        f"run 1 of 10 failed: not shown on the files of the start: {NEW} ({word})",
    )


def test_a_test_file_that_could_not_be_collected_at_the_start_shows_nothing():
    report = b"<testsuite><testcase name='t.py'><error message='collection failure'/></testcase></testsuite>"

    receipt = tried(ran("old", "new"), Ran(exit_code=2, reports=(report,)))

    assert (receipt.result, receipt.error) == (
        Result.FAILED,
        f"not shown on the files of the start: {NEW} (could not be collected)",
    )


def test_every_new_test_must_show_the_bug_or_those_that_do_are_named():
    now, before = ran("old", "new", "other"), ran("old", "other", failed=["new"], exit_code=1)

    receipt = tried(now, before)
    assert receipt.error == (
        f"not shown on the files of the start: {OTHER} (passed); {NEW} shows it: name only those that do"
    )
    assert GATE.way_out("a", GateState(receipt=receipt)).startswith(f"detent gate run regression -- {NEW}; or, ")
    named = tried(now, before, given=NEW)
    assert (named.result, named.named, named.shown) == (Result.PASSED, (NEW,), (NEW,))


def test_names_hold_for_the_attempt_and_mean_a_test_a_class_or_a_file():
    now, before = ran("old", "new"), ran(failed=["old", "new"], exit_code=1)

    assert tried(now, before, named=(NEW,), given="pytest -q").shown == (NEW,)
    assert tried(now, before, given="./t.py").shown == (OLD, NEW)
    assert tried(now, before, given="t.py::new[1]").shown == (NEW,)
    assert tried(now, before, given="t.py::gone").error == "t.py::gone: no such test in `pytest -q`"


def test_an_old_test_shows_the_bug_only_if_it_is_named():
    now, before = ran("old"), ran(failed=["old"], exit_code=1)

    assert tried(now, before).error == "no test is new since the session began; a new one must show the bug"
    assert tried(now, before, given=OLD).shown == (OLD,)


@pytest.mark.parametrize(
    ("now", "word"), [(ran("old", failed=["new"]), "failed"), (ran("old", skipped=["new"]), "skipped")]
)
def test_the_test_must_pass_now(now, word):
    receipt = tried(now, ran(failed=["new"]))

    assert receipt.error == f"{NEW} ({word}): it must pass now"


@pytest.mark.parametrize("at", ["now", "before"])
def test_a_run_that_could_not_be_made_is_an_error(at):
    runs = {"now": ran("new"), "before": ran(failed=["new"]), at: Ran(problem="no bash", exit_code=None)}

    assert tried(**runs).result is Result.ERROR


def test_only_the_chosen_tests_are_asked_for_at_the_start():
    runner = Runner(ran("old", "new"), before=ran(failed=["new"]), stood=[OLD])

    GATE.run(runner, None)

    assert runner.asked == [(), (NEW,)]


def test_if_they_are_not_found_by_their_names_all_tests_are_run():
    runner = Runner(ran("old", "new"), before=ran("old"), stood=[OLD])

    assert "did not run" in (GATE.run(runner, None).error or "")
    assert runner.asked == [(), (NEW,), ()]


# Runners that name no tests


@pytest.mark.parametrize(
    ("before", "more", "opens"),
    [
        (Ran("test result: FAILED. 2 passed; 1 failed; 0 ignored", 101), {}, True),
        (Ran("test result: ok. 3 passed; 0 failed; 0 ignored"), {}, False),
        (Ran("error[E0425]: cannot find function `f`\nerror: could not compile", 101), {}, False),
        (Ran("test result: FAILED. 2 passed; 1 failed; 0 ignored", 101), {"has_new_tests": False}, False),
    ],
)
def test_where_tests_have_no_names_their_numbers_count(before, more, opens):
    receipt = tried(Ran("test result: ok. 3 passed; 0 failed; 0 ignored"), before, **more)

    assert (receipt.result is Result.PASSED) == opens


def test_a_name_cannot_be_found_in_a_run_without_names():
    receipt = tried(Ran("test result: ok. 3 passed; 0 failed; 0 ignored"), Ran(), given="new")

    assert receipt.result is Result.UNCLEAR


# Without a command


def test_without_a_test_command_the_gate_waits_and_says_what_a_person_can_do():
    gate = RegressionGate()

    assert judged(None, gate) == (Verdict.PENDING, "no test command is known, so no test has shown the bug yet")
    assert "detent approve 06-implementation --gate regression -m WHY" in gate.way_out("06-implementation", GateState())
    with pytest.raises(Refused, match="no test command is known"):
        gate.run(Runner(Ran(), command=None), None)


def test_setting_the_command_of_the_tests_sets_that_of_the_regression_gate():
    gates = (TestsGate(command="pytest -q"), RegressionGate(command="pytest -q"), RegressionGate(name="x", command="y"))
    session = opened(Workflow(name="w", phases=(Phase(key="a", gates=gates),)))
    command = SetGateCommand(gate="tests", command="pytest", reason="shorter", phase=None)

    session = after(session, decide(session, command))

    assert [gate.runnable() for gate in session.workflow.by_key["a"].gates] == ["pytest", "pytest", "y"]


# Changes


@pytest.mark.parametrize(
    ("tree", "differs", "verdict"),
    [
        ("d", {"d": True}, Verdict.PASS),
        ("d", {"d": False}, Verdict.FAIL),
        ("d", {}, Verdict.PENDING),
        (None, {}, Verdict.PENDING),
    ],
)
def test_a_phase_that_must_change_something_is_judged_by_its_files(tree, differs, verdict):
    evidence = Evidence("folder", PhaseState(tree=tree), GateState(), Facts(now=NOON, differs=differs))

    assert ChangesGate().judge(evidence)[0] is verdict


@pytest.mark.parametrize("gate", [ChangesGate(), GATE])
def test_both_are_left_out_where_checkpoints_do_not_take_the_files(gate):
    project = Surroundings(exists=bool, is_observed=True, delegates=True, captures_all=False)

    assert "checkpoints do not take" in gate.skipped_because(project)
    assert gate.skipped_because(project._replace(captures_all=True)) is None


def test_a_receipt_without_names_says_so():
    assert "does not name them" in GATE.passed(Receipt(result=Result.PASSED), Baseline())
