"""`kill -9` of the runner, of an agent, or of both, at any moment of a run: run again, it ends as if nothing had been.

Six phases, three of them at once. Moments are points of progress, the number of commits in the journal, and a delay
behind them. What an agent does may happen twice, as everywhere, and so the agents here do the same each time; what is
recorded of it happens once.
"""

import os
import random
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from detent.core.session.events import AgentLaunched, TaskMoved
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.task.lifecycle import Action
from detent.errors import DetentError
from tests.support.campaign import SEED, sampled
from tests.support.run_process import SESSION, TASK, Scene, ended, kill, lines_of
from tests.support.waiting import wait_until

MOMENTS = 20
#: A phase that is interrupted is tried again in the next run, so one is enough; the others are for a test that fails.
RERUNS = 3
#: Commits of a run that is not disturbed.
COMMITS = 17

PHASES = """
  { key = "a" },
  { key = "b", needs = ["a"], gates = [ { kind = "command", command = "grep -q a out/b", inputs = ["out/b"] } ] },
  { key = "c", needs = ["a"] },
  { key = "d", needs = ["a"] },
  { key = "e", needs = ["b", "c"], gates = [ { kind = "command", command = "sleep 0.05", inputs = ["out/e"] } ] },
  { key = "f", needs = ["d", "e"] },
"""
#: Each makes a file out of those that its phase is built on, slowly, with a child of its own that it waits for.
SCRIPT = """
mkdir -p out
sleep 0.0$((4 + RANDOM % 6)) & wait $!
case $DETENT_PHASE in a) from= ;; b|c|d) from=a ;; e) from='b c' ;; f) from='d e' ;; esac
{ for one in $from; do cat out/$one || exit 1; done; echo $DETENT_PHASE; } > out/$DETENT_PHASE.new || exit 1
mv out/$DETENT_PHASE.new out/$DETENT_PHASE
echo "{\\"summary\\": \\"did $DETENT_PHASE\\", \\"artifacts\\": [\\"out/$DETENT_PHASE\\"]}"
"""


def moments(target):
    """So many commits, and a delay in seconds: the same ones every time."""
    choose = random.Random(f"{SEED} {target}")
    first = 0 if target == "runner" else 1
    return [(first + (number * COMMITS) // MOMENTS, choose.uniform(0.0, 0.12)) for number in range(MOMENTS)]


CASES = sampled(
    [(target, *moment) for target in ("runner", "agent", "both") for moment in moments(target)], 8, "kills of a run"
)


@pytest.fixture
def scene(quick_path):
    made = made_in(quick_path / "project")
    yield made
    made.clear()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    sys.stdout.write(f"DETENT_SEED={SEED}\n")
    whole = made_in(tmp_path_factory.mktemp("undisturbed"))
    ran = whole.run()
    assert (ran.exit_code, ran.errors) == (0, "")
    assert set(whole.finished().values()) == {1}
    assert {state.attempt for state in whole.session().phases.values()} == {1}
    assert abs(len(whole.commits()) - COMMITS) <= 2, "moments would not be spread over all of the run"
    return standing(whole.session()), whole.files()


def made_in(directory: Path) -> Scene:
    return Scene(directory, PHASES, SCRIPT, agent='result = "json"', run="parallel = 3")


def standing(session: Session) -> object:
    """Where it stands, without a trace of how often it was tried."""
    phases = {
        key: (state.status, state.summary, state.artifacts, state.error, sorted(state.gates))
        for key, state in session.phases.items()
    }
    return session.status, session.task, phases, session.escalations, session.questions


def go_on(scene):
    """The same command again, until the session is over and its runner says so."""
    for _ in range(RERUNS):
        if is_over(scene) and not scene.lease.exists():
            return
        ran = scene.run()
        if ran.exit_code == 0:
            return
    pytest.fail(f"not over after {RERUNS} more runs: {ran}")


def is_over(scene):
    return lines_of(scene.journal) > 0 and scene.session().status is SessionStatus.COMPLETED


@pytest.mark.parametrize(("target", "commits", "delay_s"), CASES, ids=[f"{t}-{c}-{d * 1e3:.0f}ms" for t, c, d in CASES])
def test_after_a_kill_at_any_moment_a_second_run_ends_as_if_nothing_had_been(
    target, commits, delay_s, scene, undisturbed
):
    runner = scene.start("run", TASK)
    wait_until(lambda: lines_of(scene.journal) >= commits or runner.poll() is not None)
    time.sleep(delay_s)

    tokens = strike(target, scene, runner)

    if target != "agent":
        assert scene.holder() is None
        refused_from_the_next_run_on(scene, tokens)
    go_on(scene)
    assert (standing(scene.session()), scene.files()) == undisturbed
    assert scene.finished() == dict.fromkeys("abcdef", 1)
    assert scene.alive() == []
    assert scene.findings() == []
    assert not scene.lease.exists()
    assert [path.name for path in Path(scene.state).glob("WFS-*")] == [SESSION]
    assert list(Path(scene.state, SESSION).glob(".process/turns/*")) == []


def strike(target, scene, runner):
    """Kill what is meant; the tokens of the attempts that were open then and have no process any more."""
    if target in ("agent", "both"):
        wait_until(lambda: scene.agents() or runner.poll() is not None)
    victims = scene.agents() if target != "runner" else []
    if target == "agent":
        victims = victims[:1]
    elif runner.poll() is None:
        victims = [runner.pid, *victims]
    sys.stdout.write(f"at commit {lines_of(scene.journal)}: {len(victims)} killed, run over: {runner.poll()}\n")
    for pid in victims:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if target == "agent":
        assert ended(runner).exit_code == 0
        return []
    kill(runner)
    return open_tokens(scene)


def open_tokens(scene):
    if not lines_of(scene.journal):
        return []
    session = scene.session()
    return [
        str(session.token(phase))
        for phase in session.with_status(Status.IN_PROGRESS)
        if any(one.ended_at is None for one in session.phases[phase].delegations)
    ]


def refused_from_the_next_run_on(scene, tokens):
    """Whatever a dead attempt still wants to say, it is too late for it as soon as the next run has begun."""
    if is_over(scene):
        return
    before = scene.feed.read_bytes() if scene.feed.exists() else b""
    rerun = scene.start("run", TASK)
    wait_until(
        lambda: rerun.poll() is not None or (scene.feed.exists() and scene.feed.read_bytes()[:90] != before[:90])
    )
    with scene.project() as project:
        for token in tokens:
            with pytest.raises(DetentError):
                project.session(SESSION).finish("by the dead", token=token)
    assert ended(rerun).exit_code == 0


def first_line(scene):
    return scene.feed.read_bytes().partition(b"\n")[0] if scene.feed.exists() else b""


def test_the_agent_of_a_dead_run_is_ended_and_can_finish_nothing_any_more(quick_path):
    """The same with everything held still, so that the second attempt is open when the first one speaks."""
    script = 'echo $DETENT_TOKEN >> trace-tokens; until [ -e go ]; do sleep 0.02; done; echo "Summary: did it"'
    scene = Scene(quick_path / "held", '{ key = "a" }', script)
    try:
        first = scene.start("run", TASK)
        tokens = scene.directory / "trace-tokens"
        wait_until(lambda: lines_of(tokens) == 1, during=first)
        orphans = scene.alive()
        kill(first)
        assert set(scene.agents()) <= set(orphans)
        assert scene.agents()
        second = scene.start("run", TASK)
        wait_until(lambda: lines_of(tokens) == 2, during=second)

        dead, live = tokens.read_text().split()
        late = scene.detent("finish", "-m", "by the dead", "--token", dead)

        assert dead != live
        assert (late.exit_code, "attempt" in late.errors) == (1, True), late
        assert set(scene.alive()).isdisjoint(orphans)
        (scene.directory / "go").touch()
        assert ended(second).exit_code == 0
        assert scene.session().phases["a"].summary == "did it"
        assert "was interrupted" in scene.told()[0].taken_over[-1]
        launched = [event for commit in scene.commits() for event in commit.events if isinstance(event, AgentLaunched)]
        assert len(launched) == 2
        assert scene.findings() == []
    finally:
        scene.clear()


def test_what_an_agent_reported_before_the_kill_is_not_done_again(quick_path):
    """Killed while the gate runs: the next run goes on with the gate."""
    script = "echo worked >> ../work; echo Summary: did it"
    gate = '{ kind = "command", command = "echo >> ../gate; test -e ../go || sleep 60" }'
    scene = Scene(quick_path / "gated", f'{{ key = "a", gates = [{gate}] }}', script)
    try:
        first = scene.start("run", TASK)
        wait_until(lambda: lines_of(quick_path / "gate") == 1, during=first)
        kill(first)
        (quick_path / "go").touch()

        ran = scene.run()

        assert ran.exit_code == 0, ran
        assert (lines_of(quick_path / "work"), lines_of(quick_path / "gate")) == (1, 2)
        assert scene.session().phases["a"].attempt == 1
        assert scene.alive() == []
        assert scene.findings() == []
    finally:
        scene.clear()


def test_a_run_that_died_when_all_was_done_is_not_done_again(quick_path):
    """Its lease is what it leaves behind: here as it was while it ran."""
    lease = f".workflow/{SESSION}/.process/runner.json"
    scene = Scene(quick_path / "done", '{ key = "a" }', f"echo >> ../work; cp {lease} ../lease; echo Summary: did it")
    try:
        assert scene.run().exit_code == 0
        shutil.copy(quick_path / "lease", scene.lease)

        ran = scene.run()

        assert ran.exit_code == 0, ran
        assert lines_of(quick_path / "work") == 1
        assert not scene.lease.exists()
        assert scene.findings() == []
        assert scene.run().exit_code == 0
        assert lines_of(quick_path / "work") == 2, "a task that was done before may be asked for again"
    finally:
        scene.clear()


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_tasks_whose_runner_was_killed_are_given_back_and_done_once(done, quick_path):
    """Killed after so many of four tasks, with two more at work."""
    script = "echo $DETENT_TASK >> ../begun; sleep 0.15; echo $DETENT_TASK > $DETENT_TASK; echo Summary: did it"
    scene = Scene(quick_path / "tasks", '{ key = "IMPLEMENT" }', script, run="parallel = 2")
    names = [f"IMPL-{number}" for number in (1, 2, 3, 4)]
    try:
        assert scene.detent("start", "trial", TASK).exit_code == 0
        with scene.project() as project:
            for name in names:
                project.session(SESSION).tasks.add(name)
        first = scene.start("run")
        wait_until(lambda: lines_of(quick_path / "begun") > done, during=first)
        kill(first)

        ran = scene.run()

        assert ran.exit_code == 0, ran
        moves = [event for commit in scene.commits() for event in commit.events if isinstance(event, TaskMoved)]
        assert sorted(move.task for move in moves if move.action == Action.DONE) == names
        assert set(names) <= set(scene.files())
        assert scene.finished() == {"IMPLEMENT": 1}
        assert scene.alive() == []
        assert not scene.lease.exists()
        assert scene.findings() == []
    finally:
        scene.clear()
