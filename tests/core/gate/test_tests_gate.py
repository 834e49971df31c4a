"""What a tests gate makes of a run, on values: which runs count, what is lost, what a pass says."""

import msgspec
import pytest

from detent.core.gate.evidence import Facts, GateState, ProtectedRun, RanBy, Receipt, Result, Verdict
from detent.core.gate.kind import Evidence, KnownNames
from detent.core.gate.kinds.tests import TestsGate
from detent.core.reports.limits import ReportFile
from detent.core.session.commands import AcceptLoss, CheckGate, RecordBaseline, SetGateCommand
from detent.core.session.decide import decide
from detent.core.session.phase_state import PhaseState
from detent.core.testrun.baseline import Baseline, KnownTests
from detent.core.testrun.suite import Counts, Outcome
from detent.core.workflow.graph import Phase, Workflow
from detent.errors import Invalid, NotFound, Refused
from tests.support.check_runner import Ran, Runner, ran
from tests.support.values import NOON, after, opened

PYTEST = TestsGate(command="pytest -q")
ANY = TestsGate()
NO_BASELINE = Baseline()
FACTS = Facts(now=NOON, changed={"in": ()})


def names(*tests):
    return KnownNames(len(tests), frozenset(f"t.py::{name}" for name in tests))


def judged(receipt, gate=PYTEST, baseline=NO_BASELINE, *, in_run=False, aside=None):
    state = GateState(receipt=receipt, aside=aside, iterations=1)
    facts = Facts(now=NOON, changed={"in": ()}, in_run=in_run)
    return gate.judge(Evidence("", PhaseState(), state, facts, baseline))


# What passes


def test_a_pass_says_how_many_ran_and_how_many_there_were_at_the_start():
    receipt = PYTEST.run(Runner(ran("a", "b", skipped=["c"])), None)
    known = Baseline(tests={"pytest -q": KnownTests(count=1, names="d")})

    assert judged(receipt, baseline=known) == (Verdict.PASS, "passed: pytest -q: 2 tests (start: 1), 1 skipped")


@pytest.mark.parametrize(
    "run",
    [
        Ran(),
        Ran(output="all good"),
        ran(skipped=["a", "b"]),
        ran(expected=["a"]),
        ran(),
        ran(output="3 passed in 0.1s"),
        Ran(output="2 skipped in 0.1s"),
        Ran(output="2 xfailed in 0.1s"),
    ],
    ids=["silent", "unread", "skipped", "expected to fail", "no tests", "printed", "text skipped", "text xfailed"],
)
def test_without_a_test_that_passed_nothing_passes(run):
    verdict, _ = judged(PYTEST.run(Runner(run), None))

    assert verdict is Verdict.PENDING


def test_the_report_counts_and_not_what_a_test_printed():
    receipt = PYTEST.run(Runner(ran("a", output="50 passed in 0.1s")), None)

    assert receipt.tests == Counts(passed=1)


# What is lost


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (ran("a"), Outcome.MISSING),
        (ran("a", skipped=["b"]), Outcome.SKIPPED),
        (ran("a", "c", "d", skipped=["b"]), Outcome.SKIPPED),
        (ran("a", "c", expected=["b"]), Outcome.EXPECTED_FAIL),
        (ran("a", "c", "d"), Outcome.MISSING),
    ],
)
def test_a_test_of_the_baseline_that_does_not_pass_keeps_the_gate_closed(run, outcome):
    receipt = PYTEST.run(Runner(run, known=names("a", "b")), None)

    assert receipt.lost == {"t.py::b": outcome}
    assert judged(receipt) == (Verdict.FAIL, f"1 test of the baseline did not pass: t.py::b ({outcome})")
    assert not receipt.is_pass
    state = GateState(receipt=receipt)
    assert "detent gate accept tests" in PYTEST.way_out("a", state)


def test_a_person_who_accepts_the_loss_opens_the_gate():
    receipt = PYTEST.run(Runner(ran("a"), known=names("a", "b")), None)

    verdict, reason = judged(receipt, baseline=Baseline(accepted=("t.py::b",)))

    assert (verdict, reason) == (Verdict.PASS, "passed: pytest -q: 1 test; the loss of 1 test was accepted")


def test_renamed_tests_are_no_loss_if_the_old_ones_pass_and_there_are_no_fewer():
    renamed = ran("a", "b_better")
    known = names("a", "b")

    assert PYTEST.run(Runner(renamed, protected=ran("a", "b"), known=known), None).lost == {}
    assert PYTEST.run(Runner(renamed, keeps=True, known=known), None).lost == {}
    fewer = PYTEST.run(Runner(ran("b_better"), protected=ran("a", "b"), known=known), None)
    assert sorted(fewer.lost) == ["t.py::a", "t.py::b"]
    # Skipping a test is no new name for it.
    skipped = ran("a", "b_better", "c", skipped=["b"])
    assert sorted(PYTEST.run(Runner(skipped, protected=ran("a", "b"), known=known), None).lost) == ["t.py::b"]


def test_before_a_baseline_is_recorded_the_protected_run_names_the_tests_of_the_start():
    receipt = PYTEST.run(Runner(ran("a"), protected=ran("a", "b", "c")), None)

    assert sorted(receipt.lost) == ["t.py::b", "t.py::c"]


def test_a_baseline_that_was_recorded_too_late_does_not_hide_the_tests_of_the_start():
    receipt = PYTEST.run(Runner(ran("a"), protected=ran("a", "b"), known=names("a")), None)

    assert sorted(receipt.lost) == ["t.py::b"]


def test_where_tests_have_no_names_their_number_counts():
    known = KnownNames(5, None)

    fewer = TestsGate(command="jest").run(Runner(Ran(output="Tests:       4 passed, 4 total\n"), known=known), None)
    same = TestsGate(command="jest").run(Runner(Ran(output="Tests:       5 passed, 5 total\n"), known=known), None)

    assert judged(fewer, TestsGate(command="jest"))[1] == "1 test fewer passed than in the baseline"
    assert (fewer.lost_count, same.lost_count) == (1, 0)


def test_a_run_that_names_no_test_does_not_stand_in_for_one_that_did():
    gate = TestsGate(command="make test")
    receipt = gate.run(Runner(Ran(output="40 passed in 0.1s"), known=names("a", "b")), None)

    assert judged(receipt)[0] is Verdict.PENDING
    assert "the run named no test, and the baseline names 2" in judged(receipt)[1]


def test_of_many_lost_tests_the_receipt_names_some_and_counts_all():
    tests = [f"test_{number:03}" for number in range(80)]
    receipt = PYTEST.run(Runner(ran("other"), known=names(*tests)), None)

    assert (len(receipt.lost), receipt.lost_count) == (50, 80)
    assert "80 tests of the baseline did not pass" in judged(receipt)[1]
    assert "and 70 more" in judged(receipt)[1]
    # Accepting those that are named does not accept the others.
    verdict, reason = judged(receipt, baseline=Baseline(accepted=tuple(receipt.lost)))
    assert verdict is Verdict.FAIL
    assert reason.startswith("30 tests of the baseline")


# The protected run


def test_a_protected_run_that_fails_is_what_the_receipt_shows():
    again = ran("a", failed=["b"], exit_code=1, output="FAILED t.py::b - assert 0\n1 failed, 1 passed in 0.1s\n")
    receipt = PYTEST.run(Runner(ran("a", "b"), protected=again), None)

    assert (receipt.result, receipt.exit_code) == (Result.FAILED, 1)
    assert receipt.protected is not None
    assert (receipt.protected.result, receipt.protected.failing) == (Result.FAILED, ("t.py::b",))
    verdict, reason = judged(receipt)
    assert verdict is Verdict.FAIL
    assert "the tests as they were when the session began did not pass: FAILED t.py::b - assert 0 (t.py::b)" in reason


def test_a_person_accepts_that_an_old_test_fails_but_not_that_a_file_cannot_be_read():
    again = ran("a", failed=["b"], exit_code=1)
    broken = "<testcase classname='' name='t'><error message='collection failure'/></testcase>"
    unread = again._replace(reports=(again.reports[0].replace(b"</testsuite>", f"{broken}</testsuite>".encode()),))

    accepted = PYTEST.run(Runner(ran("a"), protected=again, accepted=["t.py::b"]), None)
    unreadable = PYTEST.run(Runner(ran("a"), protected=unread, accepted=["t.py::b"]), None)

    assert judged(accepted)[0] is Verdict.PASS
    assert judged(unreadable)[0] is Verdict.FAIL


def test_a_protected_run_that_cannot_run_opens_nothing():
    receipt = PYTEST.run(Runner(ran("a"), protected=Ran(problem="ended after 9 s")), None)

    assert receipt.protected == ProtectedRun(result=Result.ERROR, error="ended after 9 s")
    assert judged(receipt)[0] is Verdict.FAIL


def test_a_phase_that_rewrites_tests_need_not_pass_the_old_ones_but_keeps_their_names():
    again = ran("a", failed=["b"], exit_code=1)

    rewritten = PYTEST.run(Runner(ran("a", "b"), protected=again, rewrites=True), None)
    fewer = PYTEST.run(Runner(ran("a", "c", "d"), protected=again, rewrites=True), None)

    assert judged(rewritten)[0] is Verdict.PASS
    assert fewer.lost == {"t.py::b": Outcome.MISSING}


def test_after_tests_were_rewritten_those_of_the_start_need_not_pass_but_none_is_missing():
    original = ran("a", failed=["b"], exit_code=1)

    runner = Runner(ran("a", "b"), original=original)
    same = PYTEST.run(runner, None)
    fewer = PYTEST.run(Runner(ran("a", "c", "d"), original=original), None)
    renamed = PYTEST.run(Runner(ran("a", "c"), original=ran("a", "b"), keeps=True), None)
    broken = PYTEST.run(Runner(ran("a", "b"), original=Ran(problem="no copy", exit_code=None)), None)

    assert (same.is_pass, runner.kept[-1]) == (True, ["t.py::a", "t.py::b"])
    assert same.protected is not None
    assert same.protected.names == "kept-2"
    assert fewer.lost == {"t.py::b": Outcome.MISSING}
    assert renamed.is_pass
    assert (broken.result, broken.error) == (
        Result.FAILED,
        "the tests as they were when the session began could not run: no copy",
    )


@pytest.mark.parametrize(("passed", "lost"), [(3, 0), (2, 1)])
def test_where_tests_have_no_names_the_number_of_those_of_the_start_counts(passed, lost):
    original = Ran("test result: FAILED. 2 passed; 1 failed; 0 ignored", 101)
    now = Ran(f"test result: ok. {passed} passed; 0 failed; 0 ignored")

    assert TestsGate(command="cargo test").run(Runner(now, original=original), None).lost_count == lost


def test_pytest_that_ended_before_its_report_did_not_pass():
    verdict, reason = judged(PYTEST.run(Runner(Ran(output="3 passed in 0.1s")), None))

    assert verdict is Verdict.PENDING
    assert "pytest wrote no report" in reason


# Which runs count


def test_what_was_seen_opens_nothing_where_a_command_is_known():
    receipt = PYTEST.observe(Runner(Ran()), "pytest -q", "3 passed in 0.1s", 0)

    assert receipt is not None
    assert (receipt.by, receipt.tests) == (RanBy.SEEN, Counts(passed=3))
    assert receipt.aside == "seen in the agent's shell; a run of `pytest -q` by Detent decides"
    assert judged(None, aside=receipt) == (
        Verdict.PENDING,
        f"no run yet that counts; `pytest -q` passed: {receipt.aside}; baseline: files only",
    )


def test_what_was_seen_opens_a_gate_without_a_command_if_it_is_whole():
    whole = ANY.observe(Runner(Ran()), "pytest -q", "3 passed in 0.1s", 0)
    part = ANY.observe(Runner(Ran(), part="-k"), "pytest -k a", "1 passed in 0.1s", 0)
    fewer = ANY.observe(Runner(Ran(), known=KnownNames(4, None)), "pytest -q", "3 passed in 0.1s", 0)

    assert whole is not None
    assert judged(whole, ANY) == (
        Verdict.PASS,
        "passed: pytest -q: 3 tests; seen in the agent's shell, no command is known",
    )
    assert part is not None
    assert part.aside == "it runs a part of the tests (-k); run all of them"
    assert fewer is not None
    assert judged(fewer, ANY)[0] is Verdict.FAIL


def test_a_part_that_was_given_opens_nothing_either():
    receipt = ANY.run(Runner(ran("a"), part="-k"), "pytest -k a")

    assert receipt.aside == "it runs a part of the tests (-k); run all of them"


@pytest.mark.parametrize(
    ("now", "before", "lost"),
    [
        (ran("a", skipped=["b"]), ran("b"), {"t.py::b": Outcome.SKIPPED}),
        (ran("a", expected=["b"]), ran(failed=["b"]), {"t.py::b": Outcome.EXPECTED_FAIL}),
        (ran("a", skipped=["b"]), ran(skipped=["b"]), {}),
        (ran("a", skipped=["b"]), Ran(problem="no checkpoint has them"), {}),
    ],
)
def test_without_a_baseline_a_test_that_the_code_leaves_out_is_tried_with_the_code_of_the_start(now, before, lost):
    runner = Runner(now, before=before)

    receipt = PYTEST.run(runner, None)

    assert (receipt.lost, receipt.lost_count, runner.asked) == (lost, len(lost), [("t.py::b",)])


def test_a_run_that_leaves_nothing_out_is_not_tried_again():
    runner = Runner(ran("a"), before=ran("a"))

    assert (PYTEST.run(runner, None).lost_count, runner.asked) == (0, [])


@pytest.mark.parametrize("by", RanBy)
def test_an_agent_of_a_run_finishes_only_on_what_the_runner_ran(by):
    verdict, _ = judged(Receipt(result=Result.PASSED, command="pytest -q", by=by), in_run=True)

    assert verdict is (Verdict.PASS if by is RanBy.RUNNER else Verdict.PENDING)


def test_where_no_command_is_known_the_runner_has_nothing_to_run():
    seen = Receipt(result=Result.PASSED, command="pytest -q", by=RanBy.SEEN)

    assert judged(seen, ANY, in_run=True)[0] is Verdict.PASS


# Coverage


def test_a_threshold_without_a_measurement_is_pending_and_names_the_command_that_measures():
    gate = TestsGate(command="pytest -q", coverage=80)
    receipt = gate.run(Runner(ran("a")), None)

    assert judged(receipt, gate) == (
        Verdict.PENDING,
        "coverage was not measured, and 80 % are needed; `pytest --cov` would measure it",
    )
    assert "detent gate set tests --command" in gate.way_out("a", GateState(receipt=receipt))
    measured = gate.run(Runner(ran("a", output="TOTAL    10   1   90%\n")), None)
    assert judged(measured, gate)[0] is Verdict.PASS


# What the session keeps


def session(*gates):
    return opened(Workflow(name="w", phases=tuple(Phase(key=key, gates=gates) for key in ("a", "b"))))


def checked(at, receipt):
    return after(at, decide(at, CheckGate(phase="a", gate="tests", receipt=receipt), FACTS))


def test_the_first_whole_run_that_passes_sets_the_baseline_and_no_later_one_does():
    failed, passed = (
        Receipt(result=result, tests=Counts(passed=3), names="n") for result in (Result.FAILED, Result.PASSED)
    )
    aside = Receipt(result=Result.PASSED, tests=Counts(passed=1), aside="a part")
    smaller = Receipt(result=Result.PASSED, tests=Counts(passed=2), names="m")

    at = checked(checked(session(PYTEST), failed), aside)
    assert at.baseline == Baseline()
    at = checked(checked(at, passed), smaller)

    assert at.baseline.tests == {"pytest -q": KnownTests(count=3, names="n")}


def test_the_baseline_is_that_of_the_protected_files_if_they_were_run():
    stood = ProtectedRun(result=Result.PASSED, tests=Counts(passed=9), names="old")
    receipt = Receipt(result=Result.PASSED, tests=Counts(passed=3), names="new", protected=stood)

    assert checked(session(PYTEST), receipt).baseline.tests["pytest -q"] == KnownTests(count=9, names="old")


def test_a_run_that_decides_nothing_replaces_no_receipt_and_is_no_try():
    whole = Receipt(result=Result.PASSED, command="pytest -q", tests=Counts(passed=3))
    part = Receipt(result=Result.FAILED, command="pytest -k a", aside="a part")

    at = checked(checked(session(PYTEST), whole), part)

    state = at.phases["a"].gates["tests"]
    assert (state.receipt, state.aside, state.iterations) == (whole, part, 1)
    assert checked(at, whole).phases["a"].gates["tests"].aside is None


def test_replacing_a_baseline_needs_a_reason():
    at = session(PYTEST)
    known = RecordBaseline(command="pytest -q", tests=KnownTests(count=3))
    at = after(at, decide(at, known))

    with pytest.raises(Invalid, match="a reason to replace the baseline"):
        decide(at, known)
    at = after(at, decide(at, RecordBaseline(command="pytest -q", tests=KnownTests(count=2), reason="moved")))

    assert at.baseline.tests == {"pytest -q": KnownTests(count=2)}


def test_only_lost_tests_can_be_accepted_and_the_session_keeps_that():
    lost = Receipt(result=Result.PASSED, lost={"t.py::b": Outcome.MISSING}, lost_count=1)
    at = checked(session(PYTEST), lost)

    for names_given, error in ((("t.py::c",), NotFound), ((), Invalid)):
        with pytest.raises(error):
            decide(at, AcceptLoss(phase="a", gate="tests", names=names_given, reason="why"))
    with pytest.raises(Invalid, match="a reason"):
        decide(at, AcceptLoss(phase="a", gate="tests", names=("t.py::b",), reason=" "))
    at = after(at, decide(at, AcceptLoss(phase="a", gate="tests", names=("t.py::b",), reason="gone for good")))

    assert at.baseline.accepted == ("t.py::b",)


def test_setting_the_command_changes_the_pinned_gates_and_drops_what_ran_before():
    at = checked(session(PYTEST), Receipt(result=Result.PASSED, command="pytest -q"))

    at = after(at, decide(at, SetGateCommand(gate="tests", command="make test", reason="it needs a build")))

    assert [gate.runnable() for key in "ab" for gate in at.workflow.by_key[key].gates] == ["make test"] * 2
    assert at.phases["a"].gates["tests"].receipt is None
    with pytest.raises(NotFound):
        decide(at, SetGateCommand(gate="lint", command="x", reason="y"))


def test_a_gate_without_commands_has_none_to_set():
    from detent.core.gate.kinds.approval import ApprovalGate

    with pytest.raises(Refused, match="a gate of kind approval has no command to set"):
        decide(session(ApprovalGate()), SetGateCommand(gate="approval", command="x", reason="y"))


# After an escalation


@pytest.mark.parametrize(
    ("receipt", "reason"),
    [
        (
            Receipt(result=Result.PASSED, inputs="in", coverage=90.0),
            "run 4 of 10 passed, but a person must decide first: runs before it failed (circuit_breaker)",
        ),
        (
            Receipt(result=Result.PASSED, inputs="in", coverage=50.0),
            "run 4 of 10, a person must decide (circuit_breaker): coverage is 50 %, and 80 % are needed",
        ),
        (
            Receipt(result=Result.PASSED, inputs="in", coverage=90.0, lost_count=2),
            "run 4 of 10, a person must decide (circuit_breaker): 2 tests fewer passed than in the baseline",
        ),
        (
            Receipt(result=Result.FAILED, error="assert 1 == 2"),
            "run 4 of 10, a person must decide (circuit_breaker): assert 1 == 2",
        ),
        (Receipt(result=Result.ERROR), "run 4 of 10, a person must decide (circuit_breaker): it ended as error"),
    ],
)
def test_a_run_after_an_escalation_says_what_it_showed_and_what_waits(receipt, reason):
    state = GateState(receipt=receipt, iterations=4, escalated="circuit_breaker")
    gate = TestsGate(command="pytest -q", coverage=80)

    assert gate.judge(Evidence("folder", PhaseState(), state, FACTS)) == (Verdict.FAIL, reason)


# Declared reports and rules


XML = (
    "<testsuite><testcase classname='t' name='a' file='t.py'/>"
    "<testcase classname='t' name='b' file='t.py'>{}</testcase></testsuite>"
)
JUNIT = TestsGate(command="make test", junit="out/*.xml")


def wrote(inner="", **more):
    return Ran(
        output="5 passed in 1s", files=(ReportFile("out/*.xml", "out/a.xml", XML.format(inner).encode()),), **more
    )


def test_only_the_tests_of_a_declared_report_count():
    receipt = JUNIT.run(Runner(wrote("<skipped/>")), None)

    assert (receipt.result, receipt.tests) == (Result.PASSED, Counts(passed=1, skipped=1))
    assert (receipt.skipped, receipt.failing) == (("t.py::b",), ())
    assert JUNIT.run(Runner(wrote("<failure/>")), None).failing == ("t.py::b",)


@pytest.mark.parametrize(
    "run",
    [
        Ran(output="5 passed in 1s", unread={"out/*.xml": "out/a.xml is older than the run"}),
        wrote("<!-- ")._replace(),
        wrote()._replace(files=(ReportFile("out/*.xml", "a", b"<!DOCTYPE a><testsuite/>"),)),
    ],
    ids=["older", "cut", "document type"],
)
def test_a_declared_report_that_cannot_be_trusted_is_no_evidence_whatever_was_printed(run):
    verdict, reason = judged(JUNIT.run(Runner(run), None), gate=JUNIT)

    assert verdict is Verdict.PENDING
    assert "the report of the tests does not count" in reason


def test_a_report_of_a_runner_that_cannot_be_read_is_no_evidence_either():
    run = Ran(output="5 passed in 1s", reports=(b"<!DOCTYPE a><testsuite/>",))

    assert judged(TestsGate(command="vitest").run(Runner(run), None))[0] is Verdict.PENDING


def test_new_tests_are_named():
    receipt = PYTEST.run(Runner(ran("a", "b"), known=names("a"), keeps=True), None)

    assert receipt.new == ("t.py::b",)


def test_fewer_tests_than_in_the_last_pass_need_a_person():
    run = Runner(ran("a", "b"), known=names("a"), last=names("a", "b", "c"), keeps=True)
    receipt = PYTEST.run(run, None)

    assert judged(receipt) == (Verdict.FAIL, "1 test of the last pass did not pass: t.py::c (missing)")
    assert judged(receipt, baseline=Baseline(accepted=("t.py::c",)))[0] is Verdict.PASS
    renamed = Runner(ran("a", "b", "d"), known=names("a"), last=names("a", "b", "c"), keeps=True)
    assert judged(PYTEST.run(renamed, None))[0] is Verdict.PASS
    counted = Runner(Ran(output="Ran 2 tests in 0.1s\n\nOK"), last=KnownNames(3, None))
    reason = judged(TestsGate(command="python -m unittest").run(counted, None))[1]
    assert reason == "1 test fewer passed than in the last pass"


def test_a_looser_setting_lets_a_loss_through_and_every_pass_says_so():
    loose = TestsGate(command="pytest -q", lost="report")
    receipt = loose.run(Runner(ran("a"), known=names("a", "b"), keeps=True), None)

    verdict, reason = judged(receipt, gate=loose)

    assert verdict is Verdict.PASS
    assert 'loosened by lost = "report": 1 test of the baseline did not pass: t.py::b (missing)' in reason
    assert receipt.is_pass


def test_so_many_tests_must_pass():
    gate = TestsGate(command="pytest -q", min_tests=3)

    verdict, reason = judged(gate.run(Runner(ran("a", "b")), None), gate=gate)

    assert (verdict, "2 tests passed, and 3 are needed (min_tests)" in reason) == (Verdict.PENDING, True)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"kind": "tests", "min_tests": 0}, TestsGate)
