"""Seeded kills: workers die at random moments, others are started, and every session is completed.

Two kills with `make test-machines`, fifty with `make soak`. DETENT_SEED chooses other moments.
"""

import os
import random
import signal
import time

from detent.core.session.session import SessionStatus
from tests.support.worker_machines import cluster

KILLS = 50 if os.environ.get("DETENT_SOAK") else 2


def test_kills_at_random_moments_lose_nothing(tmp_path, report):
    rng = random.Random(int(os.environ.get("DETENT_SEED", "0")))
    with cluster(tmp_path, seconds=0.3) as world:
        workers = [world.machine(f"m{number}") for number in range(3)]
        kills = count = 0
        while kills < KILLS:
            count += 1
            session = world.start_session(f"task {count}")
            world.run()
            until = time.monotonic() + 120.0
            while not is_completed(world, session):
                assert time.monotonic() < until, "the session is not completed"
                time.sleep(rng.random() * 4.0)
                if kills < KILLS and not is_completed(world, session):
                    victim = rng.choice(workers)
                    victim.send(signal.SIGKILL)
                    victim.process.wait()
                    kills += 1
                    until = time.monotonic() + 120.0
                    victim.start()
            world.check(session)
        report(f"{kills} kills in {count} sessions of 12 phases")


def is_completed(world, session: str) -> bool:
    return world.handle(lambda handle: handle.state.status, session) is SessionStatus.COMPLETED
