"""Two who run the same session at the same moment: one works, the other is told who does; the dead are succeeded."""

import os
import re
import signal
import sys
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from detent.core.session.session import SessionStatus
from detent.engine.run_lease import LEASE_S, RunLease
from tests.support.run_process import TASK, Scene, ended, kill, lines_of
from tests.support.waiting import wait_until

ROUNDS = 10
#: Everything is loaded before it says that it is ready; then it waits until the other one is ready too.
AT_THE_BARRIER = """
import sys, detent.cli.commands.run, detent.run.scheduler, detent.run.feed, detent.engine.project
from detent.cli.main import run
print("ready", flush=True)
sys.stdin.readline()
sys.exit(run(sys.argv[1:]))
"""
#: Says much more often than usual that it is alive.
OFTEN_HEARD = """
import sys, detent.run.lease as lease
from detent.cli.main import run
lease.BEAT_S = 0.2
sys.exit(run(sys.argv[1:]))
"""
PHASES = '{ key = "a" }, { key = "b", needs = ["a"] }, { key = "c", needs = ["a"] }, { key = "d", needs = ["b", "c"] }'
#: Says so if there is another one at work on the same phase.
SCRIPT = """
mkdir ../at-work-$DETENT_PHASE || echo "two at $DETENT_PHASE" >> ../trouble
echo $DETENT_PHASE >> ../begun
sleep 0.05
rmdir ../at-work-$DETENT_PHASE
echo Summary: did $DETENT_PHASE
"""
#: Works until it is let go.
HELD = "echo $$ >> ../begun; until [ -e ../go ]; do sleep 0.02; done; echo Summary: did it"


@pytest.fixture
def scene(tmp_path):
    made = Scene(tmp_path / "project", PHASES, SCRIPT, run="parallel = 2")
    yield made
    made.clear()


@pytest.fixture
def held(tmp_path):
    made = Scene(tmp_path / "project", '{ key = "a" }', HELD)
    yield made
    made.clear()


def at_the_same_moment(scene, *arguments):
    """How two runners ended that were released together."""
    waiting = (sys.executable, "-c", AT_THE_BARRIER)
    pair = [scene.start(*arguments, argv=waiting, DETENT_ACTOR=f"runner{number}") for number in (1, 2)]
    for one in pair:
        assert one.stdout.readline() == b"ready\n"
    for one in pair:
        one.stdin.write(b"\n")
        one.stdin.flush()
    return [(one.pid, ended(one)) for one in pair]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_of_two_runners_released_together_one_works_and_the_other_names_it(number, scene, tmp_path):
    assert scene.detent("start", "trial", TASK).exit_code == 0

    pair = at_the_same_moment(scene, "run")

    assert sorted(ran.exit_code for _, ran in pair) == [0, 4], pair
    (winner,) = [(f"runner{index}", pid) for index, (pid, ran) in enumerate(pair, 1) if ran.exit_code == 0]
    (loser,) = [ran for _, ran in pair if ran.exit_code == 4]
    assert f"is being run by {winner[0]} (process {winner[1]} on {os.uname().nodename}" in loser.errors
    assert_each_phase_had_one_agent(scene, tmp_path)


@pytest.mark.parametrize("number", range(3))
def test_of_two_runners_that_start_the_same_task_one_works_and_there_is_one_session(number, scene, tmp_path):
    pair = at_the_same_moment(scene, "run", TASK)

    assert sorted(ran.exit_code for _, ran in pair) == [0, 4], pair
    with scene.project() as project:
        assert len(project.store.sessions()) == 1
    assert_each_phase_had_one_agent(scene, tmp_path)


def assert_each_phase_had_one_agent(scene, place):
    assert not (place / "trouble").exists()
    assert sorted((place / "begun").read_text().split()) == list("abcd")
    session = scene.session()
    assert session.status is SessionStatus.COMPLETED
    assert {state.attempt for state in session.phases.values()} == {1}
    assert_nothing_is_left(scene)


def assert_nothing_is_left(scene):
    assert scene.alive() == []
    assert not scene.lease.exists()
    assert scene.findings() == []


def test_a_third_takes_over_at_once_when_the_first_was_killed(held, tmp_path):
    first = held.start("run", TASK)
    wait_until(lambda: lines_of(tmp_path / "begun") == 1, during=first)
    (orphan,) = held.agents()
    assert held.detent("run").exit_code == 4
    kill(first)

    third = held.start("run")
    wait_until(lambda: lines_of(tmp_path / "begun") == 2, during=third, seconds=10)

    assert orphan not in held.alive()
    assert held.holder().pid == third.pid
    (tmp_path / "go").touch()
    assert ended(third).exit_code == 0
    assert_nothing_is_left(held)


def test_a_runner_that_stands_still_is_the_holder_all_the_same(held, tmp_path):
    first = held.start("run", TASK)
    wait_until(lambda: lines_of(tmp_path / "begun") == 1, during=first)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        second = held.detent("run")
        assert (second.exit_code, f"(process {first.pid} on" in second.errors) == (4, True)
        assert len(held.agents()) == 1
    finally:
        os.kill(first.pid, signal.SIGCONT)
    (tmp_path / "go").touch()

    assert ended(first).exit_code == 0
    assert lines_of(tmp_path / "begun") == 1
    assert_nothing_is_left(held)


def test_a_process_that_was_given_the_number_of_a_dead_runner_is_not_the_holder(held, tmp_path):
    (tmp_path / "go").touch()
    assert held.detent("start", "trial", TASK).exit_code == 0
    write_lease(held, host=os.uname().nodename, pid=os.getpid(), born="long ago", age_s=0)

    assert held.detent("run").exit_code == 0


@pytest.mark.parametrize(("age_s", "exit_code"), [(0, 4), (LEASE_S - 20, 4), (LEASE_S + 1, 0)])
def test_a_runner_on_another_machine_holds_the_session_until_it_was_not_heard_of_for_long(
    age_s, exit_code, held, tmp_path
):
    (tmp_path / "go").touch()
    assert held.detent("start", "trial", TASK).exit_code == 0
    write_lease(held, host="elsewhere", pid=1, born="some time", age_s=age_s)

    ran = held.detent("run")

    assert ran.exit_code == exit_code, ran
    if exit_code:
        assert re.search(r"is being run by far away \(process 1 on elsewhere, since \d\d:\d\d\)", ran.errors)
        assert held.lease.exists()
        assert lines_of(tmp_path / "begun") == 0
    else:
        assert_nothing_is_left(held)


def write_lease(scene, *, host, pid, born, age_s):
    heard = datetime.now(UTC) - timedelta(seconds=age_s)
    other = RunLease(run="run-elsewhere", owner="far away", host=host, pid=pid, born=born, since=heard, beat=heard)
    scene.lease.parent.mkdir(parents=True, exist_ok=True)
    scene.lease.write_bytes(msgspec.json.encode(other))


def test_a_runner_whose_session_was_taken_over_leaves_and_ends_its_agent(held, tmp_path):
    """As after a long sleep of the machine: by its next beat another one has written itself into the lease."""
    first = held.start("run", TASK, argv=(sys.executable, "-c", OFTEN_HEARD))
    wait_until(lambda: lines_of(tmp_path / "begun") == 1, during=first)

    write_lease(held, host="elsewhere", pid=1, born="some time", age_s=0)

    assert ended(first).exit_code == 4
    assert held.agents() == []
    assert b"run-elsewhere" in held.lease.read_bytes()
