"""Processes are found by what they carry in their environment, wherever they went, and ended."""

import os
import secrets
import signal
import subprocess
import sys
import time

import pytest

from detent.process import GRACE_S
from detent.process.marked import _environment, end_marked, kill_marked, marked
from tests.support.waiting import until

IGNORES = "trap '' TERM; echo up; while :; do sleep 0.05; done"


@pytest.fixture
def mark():
    return f"DETENT_TEST_MARK={secrets.token_hex(8)}"


@pytest.fixture
def started(mark):
    children = []

    def start(script="sleep 60", **environment):
        name, _, value = mark.partition("=")
        env = {"PATH": os.environ["PATH"], name: value, **environment}
        children.append(
            subprocess.Popen(["bash", "-c", script], env=env, stdout=subprocess.PIPE, start_new_session=True)
        )
        assert until(lambda: children[-1].pid in marked(mark))
        return children[-1]

    yield start
    kill_marked(mark)
    for child in children:
        child.kill()
        child.communicate()


def test_all_that_carry_every_mark_are_found_and_no_others(started, mark):
    plain, more = started("exec sleep 60"), started("exec sleep 60", MORE="yes")

    assert sorted(marked(mark)) == sorted([plain.pid, more.pid])
    assert marked(mark, "MORE=yes") == [more.pid]
    assert marked(mark, "MORE=ye") == []
    assert marked(mark[:-1]) == []


def test_children_are_found_that_left_the_group_and_whose_parents_died(started, mark):
    parent = started("setsid sleep 60 & disown; exec sleep 60")
    assert until(lambda: len(marked(mark)) == 2)
    parent.kill()
    parent.wait()

    [orphan] = marked(mark)

    assert until(lambda: os.getpgid(orphan) == orphan)
    assert end_marked(mark) == 1
    assert marked(mark) == []


def test_who_asks_is_never_found(mark):
    name, _, value = mark.partition("=")
    asks = f"from detent.process.marked import end_marked, marked; print(marked({mark!r}), end_marked({mark!r}))"

    done = subprocess.run(
        [sys.executable, "-c", asks], env={**os.environ, name: value}, capture_output=True, text=True, check=True
    )

    assert done.stdout == "[] 0\n"


def test_ending_is_kind_first(started, mark, tmp_path):
    child = started(f"trap 'echo bye > {tmp_path}/said; exit' TERM; echo up; while :; do sleep 0.05; done")
    child.stdout.readline()

    assert end_marked(mark) >= 1
    assert child.wait(timeout=60) == 0
    assert (tmp_path / "said").exists()


def test_ending_is_firm_then(started, mark):
    child = started(IGNORES)
    child.stdout.readline()
    began = time.monotonic()

    end_marked(mark)

    assert child.wait(timeout=60) == -signal.SIGKILL
    assert time.monotonic() - began >= GRACE_S


def test_killing_does_not_ask_first(started, mark, tmp_path):
    child = started(f"trap 'echo bye > {tmp_path}/said; exit' TERM; echo up; while :; do sleep 0.05; done")
    child.stdout.readline()

    kill_marked(mark)

    assert child.wait(timeout=60) == -signal.SIGKILL
    assert not (tmp_path / "said").exists()


def test_where_there_is_nobody_nobody_is_ended(mark):
    assert end_marked(mark) == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="only /proc tells the bounds of an environment")
def test_a_process_without_variables_is_looked_at_once():
    with subprocess.Popen(["/bin/sh", "-c", "echo up; read -r _"], env={}, stdin=-1, stdout=-1) as child:
        child.stdout.readline()
        assert _environment(child.pid) == set()
        child.stdin.close()
