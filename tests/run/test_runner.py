"""A run of a session, with agents in this process: who works when, on what, and how it ends."""

import os
import threading
import time
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from detent.core.agent_event import Failure, Said, ToolUsed, Used
from detent.core.phase_state import Tokens
from detent.core.run_event import AgentDid, End, Need, PhaseEnded, Retrying, RunEnded, RunStarted, TurnStarted
from detent.engine.project import open_project
from detent.errors import Conflict
from detent.run.desk import SAID_BURST
from detent.run.lease import NAME, holder
from detent.store.port import PROJECT
from tests.factories import TickingClock
from tests.run.scenes import Cast, Scene, broken, done, stopped_only, until

ROW = '["a", "b", "c"]'
GATED = '[{key="a", gates=[{kind="command", command="test -e ok || { echo where is ok; false; }"}]}, "b"]'
MISSING = '[{key="a", gates=[{kind="artifacts", paths=["made.txt"]}]}]'
APPROVED = '[{key="a", gates=[{kind="approval"}]}, "b"]'


@pytest.fixture
def scene(tmp_path):
    made = []

    def make(phases=ROW, **given):
        made.append(Scene(tmp_path, phases, **given))
        return made[-1]

    yield make
    for one in made:
        one.close()


# Order


def test_phases_come_one_after_the_other_each_told_what_the_one_before_left(scene):
    here, cast = scene(), Cast(lambda turn, stopping: (done(f"did {turn.phase}", context=f"mind {turn.phase}"),))

    assert here.run(cast) is End.COMPLETED

    assert cast.worked_on == ["a", "b", "c"]
    assert "did a" in cast.prompts("b")[0]
    assert "mind b" in cast.prompts("c")[0]
    assert {state.summary for state in here.session.phases.values()} == {"did a", "did b", "did c"}
    assert isinstance(here.told[0], RunStarted)
    assert here.told[-1] == RunEnded(at=here.told[-1].at, end=End.COMPLETED)


def test_no_more_work_at_once_than_allowed_and_as_many_as_that_where_needs_let_them(scene):
    together, settled = threading.Barrier(3, timeout=10), set()
    needs = {"a": (), **dict.fromkeys("bcdefg", ("a",)), "z": tuple("bcdefg")}
    here = scene(str([{"key": key, "needs": list(of)} for key, of in needs.items()]).replace("':", "' ="))

    def act(turn, stopping):
        assert settled.issuperset(needs[turn.phase])
        if turn.phase in "bcdefg":
            together.wait()
        settled.add(turn.phase)
        yield done()

    cast = Cast(act)

    assert here.run(cast, parallel=3) is End.COMPLETED
    assert cast.most == 3
    assert cast.worked_on[0] == "a"
    assert cast.worked_on[-1] == "z"
    assert sorted(cast.worked_on) == [*"abcdefg", "z"]


def test_one_at_a_time_if_nothing_is_said(scene):
    here, cast = scene('["a", {key="b", needs=["a"]}, {key="c", needs=["a"]}]'), Cast()

    here.run(cast)

    assert (cast.most, here.is_completed("a", "b", "c")) == (1, True)


def test_everything_is_told_from_the_thread_that_runs(scene):
    here = scene('["a", {key="b", needs=["a"]}, {key="c", needs=["a"]}]')

    here.run(Cast(lambda turn, stopping: (ToolUsed(tool="Read"), done())), parallel=2)

    assert here.threads == {threading.get_ident()}
    assert {one.phase for one in here.heard(PhaseEnded)} == {*"abc"}


# Gates and turns


def test_a_gate_that_failed_is_the_next_turn_with_its_evidence(scene, tmp_path):
    here = scene(GATED)

    def act(turn, stopping):
        if "where is ok" in turn.prompt.partition("Done when")[0]:
            (tmp_path / "ok").touch()
        yield done()

    cast = Cast(act)

    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == ["a", "a", "b"]
    assert "# What failed" in cast.prompts("a")[1]
    assert "# What failed" not in cast.prompts("a")[0]
    assert here.attempts == {"a": 1, "b": 1}
    assert [(one.phase, one.turn) for one in here.heard(TurnStarted)] == [("a", 1), ("a", 2), ("b", 1)]


@pytest.mark.parametrize(("turns", "given"), [(1, 1), (2, 2), (10, 3)])
def test_turns_have_a_limit_and_the_same_failure_again_and_again_ends_them_sooner(scene, turns, given):
    here, cast = scene(MISSING), Cast()

    assert here.run(cast, turns=turns) is End.WAITING

    assert len(cast.turns) == given
    assert here.escalations == [("gates_closed", "a")]
    [need] = here.needed
    assert (need.need, need.phase) == (Need.DECISION, "a")
    assert "made.txt" in need.text


def test_a_check_that_fails_the_same_way_each_time_is_given_up(scene):
    here, cast = scene(GATED), Cast()

    assert here.run(cast) is End.WAITING
    assert len(cast.turns) == 3
    assert [phase for _, phase in here.escalations] == ["a"]


def test_after_retry_the_phase_goes_on_where_it_stands(scene, tmp_path):
    here, cast = scene(GATED), Cast()
    here.run(cast)
    (tmp_path / "ok").touch()
    here.handle.resolve("retry", "mended by hand")

    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == ["a", "a", "a", "b"]


def test_what_a_phase_was_to_leave_behind_is_its_artifact(scene, tmp_path):
    here = scene(MISSING)

    def act(turn, stopping):
        (tmp_path / "made.txt").touch()
        yield done(artifacts=("nowhere.txt", "/etc/passwd", "made.txt"))

    assert here.run(Cast(act)) is End.COMPLETED
    assert here.session.phases["a"].artifacts == ("made.txt",)
    [warned] = [one.warnings for one in here.heard(PhaseEnded)]
    assert [text for text in warned if "nowhere.txt" in text or "/etc/passwd" in text] == list(warned)
    assert len(warned) == 2


# Attempts


def test_what_failed_is_done_again_knowing_what_failed(scene):
    here, cast = (
        scene(),
        Cast(lambda turn, stopping: (broken(f"no {len(cast.turns)}") if len(cast.turns) < 3 else done(),)),
    )

    assert here.run(cast) is End.COMPLETED

    assert here.attempts == {"a": 3, "b": 1, "c": 1}
    first, second, third = cast.prompts("a")
    assert ("no 1" in first, "no 1" in second, "no 2" in third) == (False, True, True)


@pytest.mark.parametrize("failure", [Failure.ERROR, Failure.TIMEOUT])
def test_attempts_have_a_limit_and_then_a_person_decides(scene, failure):
    here, cast = scene(), Cast(lambda turn, stopping: (broken("never works", failure),))

    assert here.run(cast, attempts=2) is End.WAITING

    assert (len(cast.turns), here.escalations) == (2, [(f"agent_{failure}", "a")])
    assert "never works" in here.needed[0].text
    here.handle.resolve("retry")
    assert here.run() is End.COMPLETED
    assert here.attempts["a"] == 3


def test_a_refusal_is_not_asked_for_twice(scene):
    here, cast = scene(), Cast(lambda turn, stopping: (broken("I will not", Failure.REFUSED),))

    assert here.run(cast) is End.WAITING
    assert (len(cast.turns), here.escalations) == (1, [("agent_refused", "a")])


def test_a_passing_failure_is_the_same_attempt_and_what_it_cost_counts(scene):
    here = scene('["a"]')

    def act(turn, stopping):
        yield Used(tokens=Tokens(input=10, output=1, cost=0.5))
        yield broken("busy", Failure.TRANSIENT) if len(cast.turns) < 3 else done()

    cast = Cast(act, retries=2)

    assert here.run(cast) is End.COMPLETED
    assert (len(cast.turns), here.attempts) == (3, {"a": 1})
    assert [(one.again, one.of) for one in here.heard(Retrying)] == [(1, 2), (2, 2)]
    assert here.session.phases["a"].tokens == Tokens(input=30, output=3, cost=1.5)


def test_a_passing_failure_that_does_not_pass_is_a_failed_attempt(scene):
    here, cast = scene(), Cast(lambda turn, stopping: (broken("busy", Failure.TRANSIENT),), retries=1)

    assert here.run(cast, attempts=2) is End.WAITING
    assert (len(cast.turns), here.escalations) == (4, [("agent_transient", "a")])


def test_an_agent_that_says_nothing_at_the_end_has_failed(scene):
    here = scene()

    assert here.run(Cast(lambda turn, stopping: (ToolUsed(tool="Read"),)), attempts=1) is End.WAITING
    assert "without saying how" in str(here.session.phases["a"].error)


# People


@pytest.mark.parametrize(
    ("action", "end", "left"), [("skip", End.COMPLETED, "skipped"), ("cancel", End.CANCELLED, "failed")]
)
def test_what_a_person_decides_beside_is_carried_on_with(scene, action, end, left):
    here = scene()

    def idle():
        if here.escalations:
            here.beside(lambda handle: handle.resolve(action, "so it is"))

    cast = Cast(lambda turn, stopping: (broken() if turn.phase == "a" else done(),))

    assert here.run(cast, attempts=1, wait=True, idle=idle) is end
    assert here.statuses["a"] == left
    assert cast.worked_on == (["a", "b", "c"] if action == "skip" else ["a"])


def test_a_phase_that_waits_for_a_person_ends_the_run_and_needs_no_other_turn_in_the_next(scene):
    here, cast = scene(APPROVED), Cast(lambda turn, stopping: (done(f"did {turn.phase}"),))

    assert here.run(cast) is End.WAITING
    [need] = here.needed
    assert (need.need, need.phase, need.about) == (Need.APPROVAL, "a", "approval")
    assert "detent approve" in need.way_out
    here.handle.approve("fine", phase="a")

    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == ["a", "b"]
    assert here.session.phases["a"].summary == "did a"


def test_a_run_that_waits_goes_on_when_somebody_approved_elsewhere(scene):
    here, cast = scene(APPROVED), Cast()
    asked = iter([True])

    def idle():
        if here.needed and next(asked, False):
            here.beside(lambda handle: handle.approve("fine", phase="a"))

    assert here.run(cast, wait=True, idle=idle) is End.COMPLETED
    assert cast.worked_on == ["a", "b"]
    assert len(here.needed) == 1


def test_others_go_on_while_one_phase_waits_for_a_person(scene):
    here = scene(
        '["a", {key="b", needs=["a"], gates=[{kind="approval"}]}, {key="c", needs=["a"]}, {key="d", needs=["c"]}]'
    )

    assert here.run() is End.WAITING
    assert here.statuses == {"a": "completed", "b": "in_progress", "c": "completed", "d": "completed"}


@pytest.mark.parametrize(("decision", "turns"), [("continue", ["a", "b"]), ("redo", ["a", "a", "b"])])
def test_under_supervision_nothing_follows_before_a_person_has_looked(scene, decision, turns):
    here, cast = scene('["a", "b"]', more="[supervised]\nphases = ['a']"), Cast()

    assert here.run(cast) is End.WAITING
    assert (cast.worked_on, here.needed[0].need) == (["a"], Need.REVIEW)

    here.handle.review(decision, phase="a", note="once more")
    if decision == "redo":
        assert here.run(cast) is End.WAITING
        here.handle.review("continue", phase="a")
    assert here.run(cast) is End.COMPLETED
    assert cast.worked_on == turns
    assert decision == "continue" or "once more" in cast.prompts("a")[1]


# What others do meanwhile


@pytest.mark.parametrize(
    ("move", "statuses", "worked"),
    [
        (lambda handle: handle.finish(phase="a", summary="by hand"), "completed", ["a", "b"]),
        (lambda handle: handle.fail("by hand", phase="a"), "completed", ["a", "a", "b"]),
        (lambda handle: handle.redo("a", reason="anew"), "completed", ["a", "a", "b"]),
        (lambda handle: handle.skip("a", reason="by hand"), "skipped", ["a", "b"]),
    ],
    ids=["finish", "fail", "redo", "skip"],
)
def test_an_attempt_that_somebody_else_ends_is_left_and_the_run_goes_on_from_there(scene, move, statuses, worked):
    here = scene('["a", "b"]')

    def act(turn, stopping):
        if len(cast.turns) == 1:
            here.beside(move)
            yield stopped_only(stopping)
        else:
            yield done()

    cast = Cast(act)

    assert here.run(cast) is End.COMPLETED
    assert here.statuses == {"a": statuses, "b": "completed"}
    assert cast.worked_on == worked


def test_a_session_that_is_cancelled_meanwhile_ends_the_run(scene):
    here = scene()

    def act(turn, stopping):
        here.beside(lambda handle: handle.cancel("no more"))
        yield stopped_only(stopping)

    assert here.run(Cast(act)) is End.CANCELLED
    assert here.told[-1].said == "no more"


def test_what_failed_before_the_run_is_done_again(scene):
    here, cast = scene(), Cast()
    here.handle.fail("by hand, it broke")

    assert here.run(cast) is End.COMPLETED
    assert here.attempts["a"] == 2
    assert "by hand, it broke" in cast.prompts("a")[0]


# Budgets


def spending(tokens):
    def act(turn, stopping):
        yield Used(tokens=tokens)
        yield stopped_only(stopping) if len(cast.turns) == 1 else done()

    cast = Cast(act)
    return cast


@pytest.mark.parametrize("limit", ["tokens = 100", "phase_tokens = 100", "cost = 1.0"])
def test_a_turn_that_uses_too_much_is_ended_and_goes_on_when_a_person_allows_it(scene, limit):
    here, cast = scene('["a"]', more=f"budget = {{ {limit} }}"), spending(Tokens(input=90, output=20, cost=1.5))

    assert here.run(cast) is End.WAITING
    assert here.escalations == [("budget_exceeded", "a")]
    assert here.session.phases["a"].tokens == Tokens(input=90, output=20, cost=1.5)
    here.handle.resolve("retry", "it may cost more")

    assert here.run(cast) is End.COMPLETED
    assert here.attempts == {"a": 2}


def test_a_turn_within_its_budget_is_left_alone(scene):
    here = scene('["a"]', more="budget = { tokens = 110, cost = 2.0 }")

    assert (
        here.run(Cast(lambda turn, stopping: (Used(tokens=Tokens(input=90, output=20, cost=1.5)), done())))
        is End.COMPLETED
    )


def test_a_phase_that_takes_too_long_is_ended_even_if_its_agent_tells_nothing_of_what_it_uses(scene):
    clock = TickingClock(step=timedelta(milliseconds=1))
    here = scene('["a"]', more="budget = { phase_minutes = 5 }", clock=clock)

    def act(turn, stopping):
        clock.now += timedelta(minutes=6)
        yield stopped_only(stopping) if len(cast.turns) == 1 else done()

    cast = Cast(act)

    assert here.run(cast) is End.WAITING
    assert here.escalations == [("budget_exceeded", "a")]
    here.handle.resolve("retry")
    assert here.run(cast) is End.COMPLETED


# What is recorded


def test_what_turns_used_adds_up_and_is_in_the_checkpoint_after_the_phase(scene, tmp_path):
    here = scene(GATED)

    def act(turn, stopping):
        yield ToolUsed(tool="Read", input="one")
        yield Used(tokens=Tokens(input=1, output=1, cost=0.1))
        yield ToolUsed(tool="Bash", input="make", succeeded=False)
        yield Used(tokens=Tokens(input=10, output=5, cost=0.25))
        if len(cast.turns) == 2:
            (tmp_path / "ok").touch()
        yield done()

    cast = Cast(act)
    here.run(cast)

    state = here.session.phases["a"]
    assert state.tokens == Tokens(input=20, output=10, cost=0.5)
    assert [(one.tool, one.succeeded) for one in state.tools] == [("Read", True), ("Bash", False)] * 2
    here.project.flush()
    documents = [msgspec.json.decode(path.read_bytes()) for path in tmp_path.glob(".workflow/checkpoints/run-*/*.json")]
    [after] = [one for one in documents if (one["phase"], one["type"]) == ("a", "POST")]
    [recorded] = after["agent_states"].values()
    assert recorded["token_usage"] == {"input": 20, "output": 10}
    assert recorded["cost"] == 0.5
    assert [one["tool"] for one in recorded["tool_invocations"]] == ["Read", "Bash"] * 2
    assert [one["succeeded"] for one in recorded["delegations"]] == [True, True]


def test_every_turn_has_an_environment_a_scratch_directory_and_a_token_of_its_own(scene, tmp_path):
    here = scene('["a", "b"]')

    def act(turn, stopping):
        os.makedirs(turn.scratch)
        Path(turn.scratch, "note").touch()
        yield done()

    cast = Cast(act)
    here.run(cast)

    for turn in cast.turns:
        assert turn.env["DETENT_PHASE"] == turn.phase
        assert turn.env["DETENT_TOKEN"] == turn.token
        assert turn.env["DETENT_SESSION"] == here.handle.id
        assert turn.env["DETENT_STATE"] == here.project.place.state
        assert turn.env["DETENT_AGENT"] == turn.agent_id
        assert not os.path.exists(turn.scratch)
    assert len({turn.agent_id for turn in cast.turns}) == len({turn.scratch for turn in cast.turns}) == 2


# The end


def test_a_paused_run_records_what_it_stopped_and_the_next_begins_a_new_attempt(scene):
    here = scene()
    runner = None

    def act(turn, stopping):
        runner.pause("enough for today")
        yield stopped_only(stopping)

    runner = here.runner(Cast(act))

    assert runner.run() is End.PAUSED
    assert here.told[-1].said == "enough for today"
    assert (here.statuses["a"], here.session.phases["a"].error) == ("failed", "enough for today")
    assert here.escalations == []
    assert here.run() is End.COMPLETED
    assert here.attempts["a"] == 2


def test_a_run_that_is_paused_between_two_tries_does_not_wait_for_the_second(scene):
    here = scene('["a"]')
    runner = None

    def act(turn, stopping):
        threading.Timer(0.1, runner.pause, ["enough"]).start()
        yield broken("busy", Failure.TRANSIENT)

    cast = Cast(act, backoff_s=60.0)
    runner = here.runner(cast)
    began = time.monotonic()

    assert runner.run() is End.PAUSED
    assert (len(cast.turns), time.monotonic() - began < 5) == (1, True)


def test_a_check_that_is_cut_short_says_nothing_and_is_run_again_without_another_turn(scene, tmp_path):
    gate = '{kind="command", command="echo x >> ran.txt; test -e quick || sleep 300"}'
    here, cast = scene(f'[{{key="a", gates=[{gate}]}}]'), Cast()

    def idle():
        if (tmp_path / "ran.txt").exists():
            runner.pause("enough")

    runner = here.runner(cast, idle=idle)

    assert runner.run() is End.PAUSED
    assert (here.statuses, here.session.phases["a"].gates) == ({"a": "in_progress"}, {})
    (tmp_path / "quick").touch()
    assert here.run(cast) is End.COMPLETED
    assert ((tmp_path / "ran.txt").read_text(), cast.worked_on) == ("x\nx\n", ["a"])


def test_an_agent_that_raises_ends_the_run_with_its_error_and_nobody_goes_on(scene):
    here = scene('["a", {key="b", needs=["a"]}, {key="c", needs=["a"]}]')
    ended = []

    def act(turn, stopping):
        if turn.phase == "b":
            until(lambda: "c" in cast.worked_on)
            raise RuntimeError("a defect of the agent")
        yield done() if turn.phase == "a" else stopped_only(stopping)
        ended.append(turn.phase)

    cast = Cast(act)

    with pytest.raises(RuntimeError, match="a defect of the agent"):
        here.run(cast, parallel=2)

    assert ended == ["a", "c"]
    assert holder(here.project.store, here.handle.id, now=here.project.clock()) is None
    assert here.run() is End.COMPLETED


def test_only_one_runs_a_session(scene):
    here = scene()

    def act(turn, stopping):
        with pytest.raises(Conflict, match="is being run by tester"):
            here.runner(Cast()).run()
        yield done()

    assert here.run(Cast(act)) is End.COMPLETED


def test_a_run_whose_session_was_taken_over_stops_and_says_so(scene):
    clock = TickingClock(step=timedelta(seconds=5))
    here = scene('["a"]', clock=clock)

    def act(turn, stopping):
        with open_project(here.root) as other, other.store.lock(PROJECT):
            found = msgspec.json.decode(other.store.get(f"{here.handle.id}/{NAME}"))
            other.store.put(f"{here.handle.id}/{NAME}", msgspec.json.encode({**found, "run": "run-other"}))
        yield stopped_only(stopping)

    assert here.run(Cast(act)) is End.LOST
    here.project.store.delete(f"{here.handle.id}/{NAME}")


def test_what_agents_do_is_told_but_not_without_end(scene):
    here = scene('["a"]')
    words, tools = [Said(text=str(number)) for number in range(500)], [ToolUsed(tool="Read")] * 500

    here.run(Cast(lambda turn, stopping: (*words, *tools, done())))

    told = [type(one.did) for one in here.heard(AgentDid)]
    assert SAID_BURST <= told.count(Said) < 200
    assert told.count(ToolUsed) == 500
    assert set(told) == {Said, ToolUsed}


def test_a_phase_may_have_a_time_limit_of_its_own(scene):
    here, cast = scene('[{key="a", timeout_minutes=7}, "b"]'), Cast(timeout_minutes=30)

    here.run(cast)

    assert [turn.timeout_s for turn in cast.turns] == [7 * 60, 30 * 60]
