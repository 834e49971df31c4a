import os
import subprocess
import sys
import time

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


# A script, and the call that has to know of its group


def captured(script, *, started=lambda _: None, env=None, tmp_path):
    return process.capture(
        script,
        cwd=str(tmp_path),
        env={"PATH": os.environ["PATH"], **(env or {})},
        timeout_s=60,
        max_bytes=10_000,
        started=started,
        watch=lambda _: None,
    )


def test_a_script_does_not_begin_before_its_group_is_known(tmp_path):
    seen = []

    def note(group):
        time.sleep(0.2)
        seen.append((process.born(group) is not None, (tmp_path / "begun").exists()))

    ran = captured("touch begun; cat; echo $$", started=note, tmp_path=tmp_path)

    assert seen == [(True, False)]
    assert (tmp_path / "begun").exists()
    assert ran.exit_code == 0


def test_the_time_until_a_script_is_known_is_not_its_own(tmp_path):
    ran = process.capture(
        "echo hi",
        cwd=str(tmp_path),
        env={"PATH": os.environ["PATH"]},
        timeout_s=2.0,
        max_bytes=100,
        started=lambda _: time.sleep(2.2),
        watch=lambda _: None,
    )

    assert (ran.exit_code, ran.output) == (0, b"hi\n")


def test_functions_and_odd_names_of_the_environment_are_handed_on(tmp_path):
    env = {"BASH_FUNC_greet%%": "() { echo hello; }", "my.var": "1"}

    ran = captured("greet; env | grep ^my", env=env, tmp_path=tmp_path)

    assert (ran.exit_code, ran.output) == (0, b"hello\nmy.var=1\n")


def test_a_script_whose_runner_died_before_it_was_known_never_begins(tmp_path):
    child = os.fork()
    if child == 0:
        captured("touch begun", started=lambda _: os._exit(3), tmp_path=tmp_path)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3

    time.sleep(0.3)
    assert not (tmp_path / "begun").exists()


def test_a_script_has_the_environment_that_it_was_given_and_its_start_up_file_once(tmp_path):
    (tmp_path / "start-up").write_text("echo read >> times\n")

    ran = captured("env; true", env={"BASH_ENV": "./start-up", "A": "b c"}, tmp_path=tmp_path)

    names = {line.partition("=")[0] for line in ran.output.decode().splitlines()}
    assert names == {"PATH", "BASH_ENV", "A", "PWD", "SHLVL", "_"}
    assert (tmp_path / "times").read_text() == "read\n"
