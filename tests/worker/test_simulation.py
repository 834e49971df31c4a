"""Machines that crash, freeze, lose the network and have wrong clocks: every session is completed, each attempt once.

`make simulate` tries many more seeds, and a large world.
"""

import os
import subprocess
import sys
from unittest.mock import patch

import msgspec
import pytest

from detent.core.session import decide_phase
from detent.core.session.status import Status
from detent.store.line import encode_line
from detent.store.memory import MemoryStore
from detent.store.port import Cursor
from tests.support.simulation import World, broken_seeds

SEEDS, PARTS = 200, 8


@pytest.mark.parametrize("part", range(PARTS))
def test_the_invariants_hold(part):
    assert broken_seeds(range(part, SEEDS, PARTS)) == {}


def test_a_seed_has_faults_of_every_kind():
    kinds = {" ".join(fault.split()[1:-1]) for seed in range(3) for fault in World(seed).run().faults}
    assert kinds == {"crash", "freeze", "cut store", "cut scheduler", "skew"}


def test_a_seed_replays_exactly_in_any_process():
    def digest(hash_seed: str) -> str:
        code = "from tests.support.simulation import World; print(World(3, sessions=6).run().digest)"
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout

    assert digest("1") == digest("2") == f"{World(3, sessions=6).run().digest}\n"


def first_broken(limit: int = 40) -> World:
    return next(world for seed in range(limit) if (world := World(seed).run()).problems)


def test_a_finish_without_a_fence_is_found_and_replays():
    real = decide_phase._live_attempt

    def without_fence(session, command):
        """Takes any token of a phase in progress."""
        phase = command.token.phase
        if session.phases[phase].status is Status.IN_PROGRESS:
            command = msgspec.structs.replace(command, token=session.token(phase))
        return real(session, command)

    with patch.object(decide_phase, "_live_attempt", without_fence):
        world = first_broken()
        again = World(world.seed).run()
    assert "and belongs to" in world.problems[0]
    assert (again.digest, again.problems) == (world.digest, world.problems)


def test_an_append_that_does_not_compare_versions_is_found():
    def append(store, session, after, commit):
        line, total = encode_line(commit, after.sum)
        store._journals[session][after.version :] = [line]
        return Cursor(commit.version, total)

    with patch.object(MemoryStore, "append", append):
        assert first_broken().problems
