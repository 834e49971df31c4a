"""A run and what comes between: another command, limits, an interruption, a defect; and what is recorded of it all."""

import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detent.core.run.agent_event import Failure, Said, ToolUsed, Used
from detent.core.run.run_event import AgentDid, End
from detent.core.session.evolve import evolve
from detent.core.session.phase_state import Tokens
from detent.documents import SESSION_DOCUMENT
from detent.engine import journal
from detent.engine.project import open_project
from detent.engine.run_lease import NAME, live_lease
from detent.errors import Conflict
from detent.run.turn import SAID_BURST
from detent.store.port import PROJECT
from tests.support.scripted_run import GATED, Cast, broken, done, stopped_only
from tests.support.values import TickingClock
from tests.support.waiting import until

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


def test_what_was_used_is_not_taken_back_by_a_smaller_figure(scene):
    here = scene('["a"]')
    told = [Tokens(input=90, output=20, cost=1.5), Tokens(input=100, output=10, cost=1.0), Tokens(cost=-4.0)]

    here.run(Cast(lambda turn, stopping: (*(Used(tokens=each) for each in told), done())))

    most = Tokens(input=100, output=10, cost=1.5)
    assert here.session.phases["a"].tokens == most
    assert [one.did.tokens for one in here.heard(AgentDid) if isinstance(one.did, Used)][-1] == most


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
    runner: Any = None

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
    runner: Any = None

    def act(turn, stopping):
        threading.Timer(0.1, runner.pause, ["enough"]).start()
        yield broken("busy", Failure.TRANSIENT)

    cast = Cast(act, backoff_s=3_600.0)
    runner = here.runner(cast)

    assert runner.run() is End.PAUSED
    assert len(cast.turns) == 1


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
    assert live_lease(here.project.store, here.handle.id, now=here.project.clock()) is None
    assert here.run() is End.COMPLETED


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_run_folds_each_commit_once_and_ends_with_its_documents_up_to_date(scene, monkeypatch, parallel):
    place = scene("[{key = 'a'}, {key = 'b', needs = []}, {key = 'c', needs = []}]")
    before, folded = place.session.version, []

    def counted(session, commit):
        folded.append(commit.version)
        return evolve(session, commit)

    monkeypatch.setattr(journal, "evolve", counted)

    assert place.run(parallel=parallel) is End.COMPLETED

    written = msgspec.json.decode(place.project.store.get(f"{place.handle.id}/{SESSION_DOCUMENT}") or b"{}")
    assert written["status"] == "completed"
    assert folded == list(range(before + 1, place.session.version + 1))


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
            found = msgspec.json.decode(other.store.get(f"{here.handle.id}/{NAME}") or b"")
            other.store.put(f"{here.handle.id}/{NAME}", msgspec.json.encode({**found, "run": "run-other"}))
        yield stopped_only(stopping)

    assert here.run(Cast(act)) is End.LOST
    here.project.store.delete(f"{here.handle.id}/{NAME}")


def test_what_agents_do_is_told_but_not_without_end(scene):
    here = scene('["a"]')
    words, tools = [Said(text=str(number)) for number in range(500)], [ToolUsed(tool="Read")] * 500
    notice = Said(text="Detent: detent.toml changed", by_detent=True)

    here.run(Cast(lambda turn, stopping: (*words, *tools, notice, done())))

    assert notice in [one.did for one in here.heard(AgentDid)]
    told = [type(one.did) for one in here.heard(AgentDid)]
    assert SAID_BURST <= told.count(Said) < 200
    assert told.count(ToolUsed) == 500
    assert set(told) == {Said, ToolUsed}


def test_a_phase_may_have_a_time_limit_of_its_own(scene):
    here, cast = scene('[{key="a", timeout_minutes=7}, "b"]'), Cast(timeout_minutes=30)

    here.run(cast)

    assert [turn.timeout_s for turn in cast.turns] == [7 * 60, 30 * 60]


def test_a_rollback_takes_the_files_that_turns_made_and_leaves_those_of_a_person(scene):
    here = scene('["a", "b"]')

    def act(turn, stopping):
        Path(turn.cwd, f"{turn.phase}.made").write_text("by an agent")
        yield done()

    assert here.run(Cast(act)) is End.COMPLETED
    (here.root / "person.txt").write_text("by hand")
    here.beside(lambda handle: handle.checkpoints.take("later"))

    plan: Any = here.beside(lambda handle: handle.checkpoints.rollback("PRE_a_v1").plan)

    assert sorted(path.name for path in here.root.iterdir() if path.suffix in (".made", ".txt")) == ["person.txt"]
    assert plan.unknown == ("person.txt",)
