"""Workers that die, freeze and lose the network: another takes over, nothing is done twice, no file is lost.

Only with `make test-machines`. Each test prints how long the takeover took.
"""

import os
import signal
import time

import pytest

from tests.support import postgres
from tests.support.worker_machines import HEARTBEAT_S, VICTIM_S, WorkerMachine, cluster, wait_until

#: How long Postgres is away: longer than a worker without it counts as alive.
AWAY_S = 30.0 if os.environ.get("DETENT_SOAK") else 6.0
FAULTS = {
    "killed": (lambda one: one.send(signal.SIGKILL), lambda one: None),
    "frozen": (lambda one: one.send(signal.SIGSTOP), lambda one: one.send(signal.SIGCONT)),
    "cut from Postgres": (lambda one: one.postgres.cut(), lambda one: one.postgres.heal()),
    "cut from Temporal": (lambda one: one.temporal.cut(), lambda one: one.temporal.heal()),
}


@pytest.mark.parametrize("workers", [2, 3])
def test_twelve_phases_four_at_once(tmp_path, workers, report):
    with cluster(tmp_path) as world:
        machines = [world.machine(f"m{number}") for number in range(workers)]
        session = world.start_session()
        begun = time.monotonic()
        world.run_to_end()
        report(f"12 phases by {workers} workers: {time.monotonic() - begun:.1f} s")
        world.check(session)
        assert all(machine.works_on() for machine in machines)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_worker_with_a_fault_is_replaced(tmp_path, fault, report):
    cause, end = FAULTS[fault]
    with cluster(tmp_path) as world:
        victim: WorkerMachine = world.machine("victim")
        world.machine("other", slots=2)
        session = world.start_session()
        world.run()
        wait_until(victim.works_on, "the victim does nothing")
        before = victim.works_on()
        since = time.time()
        cause(victim)
        wait_until(lambda: world.retaken_at(session, before, since), "no worker took over")
        report(f"{fault}: takeover after {world.retaken_at(session, before, since):.1f} s, heartbeat {HEARTBEAT_S:g} s")
        end(victim)
        world.wait_completed(session)
        # The victim ends its work now, and its commits are refused.
        time.sleep(max(0.0, since + VICTIM_S + 1.0 - time.time()))
        world.check(session)
        assert world.refused(session, before)


def test_a_temporal_that_lost_its_database_goes_on_from_the_journal(tmp_path):
    # Without Temporal the worker of the loop does the phases alone, one after another. The run notices the loss after
    # up to 20 s, and that has to be before the last phase.
    with cluster(tmp_path, seconds=5.0, own_temporal=True) as world:
        machines = [world.machine(name) for name in ("m0", "m1")]
        session = world.start_session()
        first = world.run()
        wait_until(lambda: machines[0].works_on() | machines[1].works_on(), "nothing is done")
        wait_until(lambda: "launched sh for" in world.log, "the log shows no commit while the run goes on")
        world.temporal.lose_database()
        wait_until(lambda: "does not answer" in world.log, "the person is not told")
        world.temporal.start()
        wait_until(lambda: first.poll() is not None, "the run is followed for ever")
        assert "detent run --on starts it again" in world.log
        assert "Traceback" not in world.log
        world.run()
        world.wait_completed(session)
        world.check(session)


def test_workers_go_on_after_postgres_was_away(tmp_path):
    with cluster(tmp_path, seconds=1.0) as world:
        machines = [world.machine(name) for name in ("m0", "m1")]
        session = world.start_session()
        world.run()
        wait_until(lambda: machines[0].works_on() | machines[1].works_on(), "nothing is done")
        acknowledged = len(world.commits(session))
        server = postgres.server()
        server.kill()
        time.sleep(AWAY_S)
        server.start()
        assert len(world.commits(session)) >= acknowledged
        world.wait_completed(session)
        world.check(session)
