"""Gates over several tries: when a person is asked, what the person can say, who may vote, and what budgets do."""

from datetime import timedelta

import pytest

from detent.core.gate.evidence import Verdict
from detent.core.session.phase_state import Tokens
from detent.engine.project import open_project
from detent.errors import GateClosed, Invalid, NotFound, Refused
from tests.support.gated import started, verdicts
from tests.support.people import ANN, BOB, CEM, ME, acting, needs_people, roles
from tests.support.project import write
from tests.support.values import TickingClock

#: Says whatever stands in a file, and fails if it is not empty.
SAYS = '{ kind = "tests", command = "cat said; test ! -s said && echo 1 passed in 0.1s", inputs = ["src"] }'
BESIDE = '[{ key = "work", gates = [GATES] }, { key = "beside", needs = [] }]'


def says(root, text=""):
    write(root, "said", text)


def tries(root, handle, *texts):
    for text in texts:
        says(root, text)
        handle.gates.run("tests")


def kinds(handle):
    return [(one.kind, one.phase, one.gate) for one in handle.state.escalations]


# Enough is enough


def test_the_same_failure_three_times_in_a_row_asks_a_person(tmp_path):
    _, handle = started(tmp_path, SAYS)

    tries(tmp_path, handle, "ValueError: a\n", "ValueError: a\n")
    assert handle.state.escalations == ()
    tries(tmp_path, handle, "ValueError: a\n")

    assert kinds(handle) == [("circuit_breaker", "work", "tests")]
    assert "the same failure 3 times" in handle.state.escalations[0].detail
    assert "ValueError: a" in handle.state.escalations[0].detail


def test_different_failures_do_not_trip_the_breaker(tmp_path):
    _, handle = started(tmp_path, SAYS)

    tries(tmp_path, handle, *(f"ValueError: {word}\n" for word in ("a", "a", "b", "a", "a", "b")))

    assert handle.state.escalations == ()
    assert handle.state.phases["work"].gates["tests"].repeats == 1


def test_a_pass_between_failures_starts_the_count_anew(tmp_path):
    _, handle = started(tmp_path, SAYS)

    tries(tmp_path, handle, "E: a\n", "E: a\n", "", "E: a\n", "E: a\n")

    assert handle.state.escalations == ()


def test_what_differs_only_in_times_and_addresses_is_the_same_failure(tmp_path):
    _, handle = started(tmp_path, SAYS)

    tries(tmp_path, handle, *(f"ValueError: <x at 0x7f{n}1a2b3c4> after 0.{n}1s\n" for n in (1, 2, 3)))

    assert kinds(handle) == [("circuit_breaker", "work", "tests")]


def test_the_last_try_asks_a_person(tmp_path):
    _, handle = started(tmp_path, SAYS.replace(" }", ", max_iterations = 2, circuit_breaker = 9 }"))

    tries(tmp_path, handle, "E: a\n")
    assert handle.state.escalations == ()
    tries(tmp_path, handle, "E: b\n")

    assert kinds(handle) == [("max_iterations", "work", "tests")]


@pytest.mark.parametrize("percent", [0, 79])
def test_coverage_below_its_threshold_holds_and_at_the_last_try_asks_a_person(tmp_path, percent):
    command = f"echo 'TOTAL 100 21 {percent}%'; echo 3 passed in 0.1s"
    _, handle = started(
        tmp_path, f'{{ kind = "tests", command = "{command}", coverage = 80, max_iterations = 2, inputs = ["src"] }}'
    )
    handle.gates.run("tests")

    with pytest.raises(GateClosed, match=rf"coverage is {percent} %, and 80 % are needed"):
        handle.finish("done")
    assert handle.state.escalations == ()

    handle.gates.run("tests")
    assert kinds(handle) == [("coverage_below_threshold", "work", "tests")]


def test_coverage_at_its_threshold_passes(tmp_path):
    command = "echo 'TOTAL 100 20 80%'; echo 3 passed in 0.1s"
    _, handle = started(tmp_path, f'{{ kind = "tests", command = "{command}", coverage = 80, inputs = ["src"] }}')

    handle.gates.run("tests")

    handle.finish("done")


def test_a_pass_does_not_undo_an_escalation(tmp_path):
    _, handle = started(tmp_path, SAYS)
    tries(tmp_path, handle, *["E: a\n"] * 3)

    tries(tmp_path, handle, "")

    with pytest.raises(GateClosed, match="a person must decide"):
        handle.finish("done")


# What a person can say


def escalated(root):
    _, handle = started(root, "", phases=BESIDE.replace("GATES", SAYS))
    tries(root, handle, *["E: a\n"] * 3)
    return handle


def test_nothing_else_begins_until_it_is_resolved(tmp_path):
    handle = escalated(tmp_path)

    with pytest.raises(Refused, match="a person must decide first: work: tests: the same failure 3 times"):
        handle.begin("beside")

    handle.resolve("retry")
    handle.begin("beside")
    assert handle.state.phases["beside"].status == "in_progress"


def test_retry_counts_anew(tmp_path):
    handle = escalated(tmp_path)

    handle.resolve("retry", "the server is back")

    gate = handle.state.phases["work"].gates["tests"]
    assert (gate.iterations, gate.repeats, gate.escalated, gate.failures) == (0, 0, None, 3)
    tries(tmp_path, handle, "E: a\n", "E: a\n")
    assert handle.state.escalations == ()
    tries(tmp_path, handle, "E: a\n")
    assert len(handle.state.escalations) == 1
    handle.resolve("retry")
    tries(tmp_path, handle, "")
    handle.finish("done")


def test_skip_leaves_the_phase_out(tmp_path):
    handle = escalated(tmp_path)

    handle.resolve("skip", "not needed")

    assert handle.state.phases["work"].status == "skipped"
    assert handle.state.phases["work"].skip_reason == "not needed"
    assert handle.state.escalations == ()
    handle.begin("beside")


def test_skipping_all_that_is_left_ends_the_session(tmp_path):
    _, handle = started(tmp_path, "", phases=f'[{{ key = "work", gates = [{SAYS}] }}]')
    tries(tmp_path, handle, *["E: a\n"] * 3)

    handle.resolve("skip")

    assert handle.state.status == "completed"


def test_cancel_ends_the_session(tmp_path):
    handle = escalated(tmp_path)

    handle.resolve("cancel")

    assert (handle.state.status, "the same failure" in handle.state.cancel_reason) == ("cancelled", True)


def test_nothing_can_be_resolved_twice_or_in_other_words(tmp_path):
    handle = escalated(tmp_path)

    with pytest.raises(Invalid, match="say retry, skip, cancel"):
        handle.resolve("ignore")
    handle.resolve("retry")
    with pytest.raises(Refused, match="nothing waits for a decision"):
        handle.resolve("retry")


# Approvals and votes


def test_an_approval_says_who_and_why(tmp_path):
    project, handle = started(tmp_path, SAYS)
    tries(tmp_path, handle, "E: a\n")

    handle.approve("flaky on this machine, looked at it", gate="tests")

    [judged] = handle.gates.judgements()["work"]
    assert (judged.verdict, judged.reason) == (Verdict.PASS, f"opened by {ME}: flaky on this machine, looked at it")
    state = handle.state.phases["work"].gates["tests"]
    assert (state.approved_by, state.approval_reason) == (ME, "flaky on this machine, looked at it")
    handle.finish("done")
    project.close()


@pytest.mark.parametrize("reason", ["", "   "])
def test_an_approval_without_a_reason_is_none(tmp_path, reason):
    _, handle = started(tmp_path, SAYS)

    with pytest.raises(Invalid, match="a reason"):
        handle.approve(reason, gate="tests")

    assert verdicts(handle) == {"tests": Verdict.PENDING}


@needs_people
def test_a_quorum_of_the_named_approvers_opens(tmp_path):
    gate = '{ kind = "consensus", approvers = ["lead", "sec", "ops"], quorum = 2 }'
    _, handle = started(tmp_path, gate, more=roles(lead=ANN, sec=BOB, ops=CEM))

    with pytest.raises(Refused, match=f"{ME} is not an approver of consensus; lead \\({ANN}\\), sec"):
        handle.approve("fine")
    with acting(ANN):
        handle.approve("fine")
        handle.approve("still fine")  # one person, one vote
    assert verdicts(handle) == {"consensus": Verdict.PENDING}
    with acting(BOB):
        handle.approve("no tests", approve=False)
    assert verdicts(handle) == {"consensus": Verdict.PENDING}
    with pytest.raises(GateClosed, match=f"1 of 2 approvals; {CEM} may still vote"):
        handle.finish("done")

    with acting(CEM):
        handle.approve("agreed")

    handle.finish("done")
    votes = handle.state.phases["work"].gates["consensus"].votes
    assert {who: (vote.approve, vote.reason) for who, vote in votes.items()} == {
        ANN: (True, "still fine"),
        BOB: (False, "no tests"),
        CEM: (True, "agreed"),
    }


@needs_people
def test_votes_that_make_a_quorum_impossible_are_a_no_and_may_be_changed(tmp_path):
    gate = '{ kind = "consensus", approvers = ["lead", "sec"], quorum = 2 }'
    _, handle = started(tmp_path, gate, more=roles(lead=ANN, sec=BOB))

    with acting(ANN):
        handle.approve("fine")
    with acting(BOB):
        handle.approve("no tests", approve=False)
    [judged] = handle.gates.judgements()["work"]
    assert (judged.verdict, f"{BOB} rejected it: no tests" in judged.reason) == (Verdict.FAIL, True)

    with acting(BOB):
        handle.approve("there are now")
    assert verdicts(handle) == {"consensus": Verdict.PASS}


@needs_people
def test_an_approval_gate_opens_for_one_of_its_approvers(tmp_path):
    _, handle = started(tmp_path, '{ kind = "approval", approvers = ["lead"] }', more=roles(lead=ANN))

    with pytest.raises(Refused):
        handle.approve("fine")
    assert verdicts(handle) == {"approval": Verdict.PENDING}
    with acting(ANN):
        handle.approve("fine")

    assert verdicts(handle) == {"approval": Verdict.PASS}


def test_a_new_attempt_starts_without_the_evidence_of_the_last(tmp_path):
    _, handle = started(tmp_path, f'{SAYS}, {{ kind = "approval" }}')
    tries(tmp_path, handle, "")
    handle.approve("fine", gate="approval")
    assert set(verdicts(handle).values()) == {Verdict.PASS}

    handle.redo("work")

    assert verdicts(handle) == {"tests": Verdict.PENDING, "approval": Verdict.PENDING}


def test_release_opens_all_that_is_closed_and_says_so(tmp_path):
    _, handle = started(tmp_path, f'{SAYS}, {{ kind = "elicitation" }}, {{ kind = "artifacts", paths = ["a.md"] }}')
    tries(tmp_path, handle, *["E: a\n"] * 3)

    handle.release("the gates are wrong, see the log")

    assert {one.reason for one in handle.gates.judgements()["work"]} == {
        f"opened by {ME}: the gates are wrong, see the log"
    }
    assert handle.state.escalations == ()
    handle.finish("done")


# Agents


def test_only_the_agent_of_the_phase_opens_a_delegation_gate(tmp_path):
    phases = '[{ key = "02-tracing", gates = [{ kind = "delegation" }] }]'
    _, handle = started(tmp_path, "", phases=phases)

    handle.record_agent_started("02-tracing", "symptom-analyzer", "a-1")
    assert "still running" in handle.gates.judgements()["02-tracing"][0].reason
    handle.record_agent_ended("a-1", succeeded=True)
    assert verdicts(handle) == {"delegation": Verdict.PENDING}
    handle.record_agent_started("02-tracing", "tracing-orchestrator", "a-2")
    handle.record_agent_ended("a-2", succeeded=False)
    assert verdicts(handle) == {"delegation": Verdict.FAIL}
    handle.record_agent_started("02-tracing", "tracing-orchestrator", "a-3")
    handle.record_agent_ended("a-3", succeeded=True)

    assert verdicts(handle) == {"delegation": Verdict.PASS}
    with pytest.raises(NotFound):
        handle.record_agent_ended("a-3", succeeded=True)


# Constitution by commands


def test_articles_with_checks_are_decided_by_them(tmp_path):
    gate = '{ kind = "constitution", articles = ["I", "II"], checks = { I = "test -e a", II = "test -e b" } }'
    _, handle = started(tmp_path, gate)

    with pytest.raises(Refused, match="is not reported"):
        handle.gates.report("constitution", compliant=True)
    write(tmp_path, "a", "")
    handle.gates.run("constitution")
    assert "articles II" in handle.gates.judgements()["work"][0].reason
    write(tmp_path, "b", "")
    handle.gates.run("constitution")

    assert verdicts(handle) == {"constitution": Verdict.PASS}


# Budgets


def with_budget(root, budget, clock=None):
    return started(root, SAYS, more=f"[budget]\n{budget}\n", clock=clock)[1]


def test_under_the_budget_nothing_is_said(tmp_path):
    handle = with_budget(tmp_path, "tokens = 100")

    outcome = handle.fail("it broke", tokens=Tokens(input=40, output=40))

    assert (outcome.warnings, handle.state.escalations) == ((), ())


def test_near_the_budget_it_is_said_and_over_it_a_person_is_asked(tmp_path):
    handle = with_budget(tmp_path, "tokens = 100")

    near = handle.fail("it broke", tokens=Tokens(input=50, output=31))
    assert near.warnings == ("81 of 100 tokens are used",)
    assert handle.state.escalations == ()
    handle.redo("work")
    over = handle.fail("it broke again", tokens=Tokens(output=20))

    assert over.warnings == ("101 of 100 tokens are used",)
    assert kinds(handle) == [("budget_exceeded", "work", None)]
    assert handle.state.escalations[0].detail == "101 tokens used, and 100 were allowed"


@pytest.mark.parametrize(
    ("budget", "tokens", "detail"),
    [
        ("cost = 2.5", Tokens(cost=2.6), "the cost is 2.6, and 2.5 was allowed"),
        ("phase_tokens = 10", Tokens(input=11), "11 tokens of the phase used, and 10 were allowed"),
    ],
)
def test_every_kind_of_budget_is_watched(tmp_path, budget, tokens, detail):
    handle = with_budget(tmp_path, budget)

    handle.fail("it broke", tokens=tokens)

    assert handle.state.escalations[0].detail == detail


def test_time_is_watched_at_every_check(tmp_path):
    clock = TickingClock(step=timedelta(minutes=1))
    handle = with_budget(tmp_path, "minutes = 15", clock)
    says(tmp_path, "")

    said = []
    while not handle.state.escalations:
        said.append(handle.gates.run("tests").warnings)

    assert said[0] == ()
    assert any("of 15 minutes are used" in warning for warnings in said for warning in warnings)
    assert kinds(handle) == [("budget_exceeded", "work", None)]


def test_over_the_budget_work_goes_on_only_when_a_person_says_so_and_is_asked_once(tmp_path):
    handle = with_budget(tmp_path, "tokens = 100")
    handle.fail("it broke", tokens=Tokens(input=101))
    handle.redo("work")
    tries(tmp_path, handle, "")
    handle.resolve("retry", "worth it")

    tries(tmp_path, handle, "", "")
    assert handle.state.escalations == ()

    handle.finish("done", tokens=Tokens(input=500))
    handle.begin("after")
    # A new phase is a new question.
    handle.fail("it broke", tokens=Tokens(input=1))
    assert kinds(handle) == [("budget_exceeded", "after", None)]


def test_a_finish_over_the_budget_stands_and_the_next_phase_waits(tmp_path):
    handle = with_budget(tmp_path, "tokens = 100")
    tries(tmp_path, handle, "")

    handle.finish("done", tokens=Tokens(input=500))

    assert handle.state.phases["work"].status == "completed"
    with pytest.raises(Refused, match="a person must decide first"):
        handle.begin("after")
    handle.resolve("retry")
    handle.begin("after")


def test_of_a_session_that_is_over_nobody_has_to_decide(tmp_path):
    _, handle = started(tmp_path, "", phases='[{ key = "work", gates = [] }]', more="[budget]\ntokens = 1")

    handle.finish("done", tokens=Tokens(input=500))

    assert (handle.state.status, handle.state.escalations) == ("completed", ())


def test_what_a_person_said_about_a_budget_is_in_the_journal(tmp_path):
    handle = with_budget(tmp_path, "tokens = 100")
    handle.fail("it broke", tokens=Tokens(input=101))
    handle.resolve("retry")

    with open_project(tmp_path) as again:
        assert again.session().state == handle.state
        assert again.session().state.phases["work"].budget_accepted
