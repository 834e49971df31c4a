"""A recorded session under another policy: what would have been refused, passed, or waited for whom."""

from typing import Any

from detent.core.actor import Assurance
from detent.core.gate import Gate
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.gate.kinds.changes import ChangesGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.history.dry_run import Outcome, Policy, Trial, try_session
from detent.core.session import events
from detent.core.session.events import Budget, Options, Supervised
from detent.core.session.phase_state import Tokens
from tests.support.history import History, gated, person, receipt

TESTS = TestsGate(command="pytest -q")


def recorded() -> History:
    """`build` fails once and passes with 70 % coverage; ada approves `check`."""
    history = History(gated(build=(TESTS,), check=(ApprovalGate(),))).begin("build", tree="t1")
    history.at(5).check("build", "tests", receipt(False, inputs="a"))
    history.at(10).check("build", "tests", receipt(inputs="b", coverage=70.0)).finish("build", tree="t2")
    return history.at(20).begin("check", tree="t2").at(30).vote("check", "approval").finish("check", tree="t2")


def tried(history: History, *, options: Options | None = None, **gates: tuple[Gate, ...]) -> Trial:
    graph = gated(**{"build": (TESTS,), "check": (ApprovalGate(),), **gates})
    return try_session(history.commits, Policy(workflow=graph, options=options or Options()))


def answers(trial: Trial, gate: str) -> list[tuple[Any, ...]]:
    return [(step.outcome, step.waits_for) for step in trial.differing if step.gate == gate]


def test_the_policy_of_the_record_changes_nothing():
    trial = tried(recorded())

    assert trial.differing == ()
    assert (trial.outcome, trial.finishes) == (Outcome.PASSED, 2)


def test_a_higher_threshold_refuses_what_was_recorded_below_it():
    trial = tried(recorded(), build=(TestsGate(command="pytest -q", coverage=80),))

    [step] = trial.differing
    assert (step.phase, step.gate, step.outcome) == ("build", "tests", Outcome.REFUSED)
    assert step.reason == "coverage is 70 %, and 80 % are needed"
    assert trial.outcome is Outcome.REFUSED


def test_a_lower_threshold_opens_a_gate_at_an_earlier_run():
    strict = TestsGate(command="pytest -q", coverage=80)
    history = History(gated(build=(strict,))).begin("build")
    history.at(5).check("build", "tests", receipt(inputs="a", coverage=70.0))
    history.at(9).check("build", "tests", receipt(inputs="b", coverage=90.0)).finish("build")

    trial = try_session(history.commits, Policy(workflow=gated(build=(TESTS,)), options=Options()))

    [step] = trial.differing
    assert (step.commit, step.outcome) == (3, Outcome.PASSED)
    assert step.reason.startswith("opens earlier: passed")


def test_a_gate_that_the_policy_leaves_out_held_nothing_up():
    trial = tried(recorded(), build=())

    [step] = trial.differing
    assert (step.outcome, step.reason) == (Outcome.PASSED, "the policy has no such gate")


def test_a_gate_that_asks_for_votes_waits_for_its_approvers():
    gate = ApprovalGate(name="security", approvers=("security",), roles={"security": ("eve", "mallory")})

    trial = tried(recorded(), build=(TESTS, gate))

    assert answers(trial, "security") == [(Outcome.WAITS, "security (eve or mallory)")]
    assert trial.outcome is Outcome.WAITS


def test_a_vote_that_is_too_weak_does_not_count():
    history = recorded()

    trial = tried(history, options=Options(assurance=Assurance.SIGNED))

    assert answers(trial, "approval") == [(Outcome.WAITS, "a person")]


def test_a_decision_that_is_too_weak_is_refused():
    history = recorded().add(events.SessionCancelled(reason="enough"), by=person())

    trial = tried(history, options=Options(assurance=Assurance.SIGNED))

    step = trial.steps[-1]
    assert step.outcome is Outcome.REFUSED
    assert step.reason == "session cancelled by ada is attended, and must be signed"
    assert [step.outcome for step in tried(history).differing] == []


def test_a_check_that_never_ran_is_unknown_and_not_passed():
    trial = tried(recorded(), build=(TESTS, CommandGate(name="lint", command="ruff check")))

    [step] = trial.differing
    assert (step.outcome, step.reason) == (Outcome.UNKNOWN, "no run of `ruff check` is recorded")
    assert trial.outcome is Outcome.UNKNOWN


def test_another_command_for_the_same_gate_is_unknown():
    assert answers(tried(recorded(), build=(TestsGate(command="tox"),)), "tests") == [(Outcome.UNKNOWN, "")]


def test_a_run_of_the_same_command_under_another_name_counts():
    trial = tried(recorded(), build=(TestsGate(name="suite", command="pytest -q"),))

    assert [(step.gate, step.outcome) for step in trial.steps if step.gate == "suite"] == [("suite", Outcome.PASSED)]


def test_fewer_runs_ask_a_person_earlier():
    trial = tried(recorded(), build=(TestsGate(command="pytest -q", circuit_breaker=1),))

    outcomes = [(step.commit, step.outcome, step.reason) for step in trial.differing]
    assert outcomes[0] == (3, Outcome.WAITS, "circuit_breaker after run 1")


def test_whether_files_changed_is_read_from_the_checkpoints():
    trial = tried(recorded(), build=(TESTS, ChangesGate()), check=(ApprovalGate(), ChangesGate()))

    assert [(step.phase, step.outcome) for step in trial.steps if step.gate == "changes"] == [
        ("build", Outcome.PASSED),
        ("check", Outcome.REFUSED),
    ]


def test_a_path_that_the_record_does_not_name_is_unknown():
    trial = tried(recorded(), check=(ApprovalGate(), ArtifactsGate(paths=("PLAN.md",))))

    assert answers(trial, "artifacts") == [(Outcome.UNKNOWN, "")]


def test_supervision_and_budgets_wait_for_a_person():
    options = Options(supervised=Supervised(phases=("check",)), budget=Budget(minutes=15, tokens=100))
    history = recorded()

    trial = tried(history, options=options)

    waits = [(step.phase, step.reason) for step in trial.differing]
    assert waits == [
        ("check", "a person reviews the finished phase"),
        ("check", "30 minutes used, and 15 were allowed"),
    ]


def test_tokens_of_the_finish_count_against_the_budget():
    history = History(gated(build=(TESTS,))).begin("build").check("build", "tests", True)
    history.finish("build", tokens=Tokens(input=90, output=20))

    trial = try_session(
        history.commits, Policy(workflow=gated(build=(TESTS,)), options=Options(budget=Budget(tokens=100)))
    )

    assert [step.reason for step in trial.differing] == ["110 tokens used, and 100 were allowed"]


def test_a_policy_without_gates_refuses_nothing():
    trial = tried(recorded(), options=Options(gates=False))

    assert trial.outcome is Outcome.PASSED
    assert [(step.commit, step.reason) for step in trial.steps] == [(3, "the policy has no such gate")]
