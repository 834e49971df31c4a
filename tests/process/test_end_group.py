import subprocess
import sys

import pytest

from detent import process

MEMBER = """
import os, signal, sys, time
{how}
print(os.getpid(), flush=True)
time.sleep(60)
"""
LEADER = "{python} -c '{member}' & {then}"


@pytest.fixture
def group():
    """Starts a group of a leader and one more; the leader, and the number of the other."""
    started = []

    def start(how, then):
        script = LEADER.format(python=sys.executable, member=MEMBER.format(how=how), then=then)
        leader = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
        started.append(leader)
        return leader, int(leader.stdout.readline())

    yield start
    for leader in started:
        process.end_group(leader.pid)
        leader.kill()
        leader.wait()
        leader.stdout.close()


DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.mark.parametrize("how", ["", DEAF])
@pytest.mark.parametrize("then", ["wait", "exit 0"])
def test_nobody_of_the_group_is_left_whoever_leads_it(group, how, then):
    leader, member = group(how, then)
    assert process.born(member) is not None

    process.end_group(leader.pid)

    assert process.born(member) is None


def test_a_group_that_is_gone_is_not_waited_for():
    leader = subprocess.Popen(["true"], start_new_session=True)
    leader.wait()

    process.end_group(leader.pid)
