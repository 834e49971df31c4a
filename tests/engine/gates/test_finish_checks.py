"""`finish` runs the checks that were not run on the present files; a long one outlives the command that started it."""

import os
import signal
import subprocess
import time

import pytest

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.gate.evidence import Verdict
from detent.engine.gates import session_gates
from detent.engine.project import open_project
from detent.errors import CheckRunning, GateClosed
from tests.support.command import DETENT, Tool
from tests.support.gated import CODE, UNITTEST, calculator, started, verdicts
from tests.support.project import build_project, write

GATE = f'{{ kind = "tests", command = "{UNITTEST}" }}'
BROKEN = CODE.replace("+", "-")
AGENT = {"DETENT_PHASE": "work"}
WAIT_S = 60


def runs(handle):
    return handle.state.phases["work"].gates["tests"].iterations


def test_finish_runs_a_check_that_was_never_run(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, GATE)

    handle.finish("done")

    assert (runs(handle), handle.state.phases["work"].status) == (1, "completed")


def test_finish_runs_a_stale_check_again_and_a_fresh_one_not(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, f'{GATE}, {{ kind = "approval" }}')
    handle.gates.run("tests")

    for count in (1, 1):
        with pytest.raises(GateClosed, match="approval is PENDING"):
            handle.finish("done")
        assert runs(handle) == count

    write(tmp_path, "calc.py", CODE + "# faster\n")
    with pytest.raises(GateClosed, match="approval is PENDING"):
        handle.finish("done")
    assert runs(handle) == 2


def test_a_failure_is_repeated_only_after_a_change(tmp_path):
    calculator(tmp_path, code=BROKEN)
    _, handle = started(tmp_path, GATE)

    for _ in range(3):
        with pytest.raises(GateClosed, match="tests is FAIL"):
            handle.finish("done")
    assert runs(handle) == 1

    write(tmp_path, "calc.py", CODE + "# mended\n")
    handle.finish("done")
    assert runs(handle) == 2


def test_a_finish_with_an_old_token_runs_nothing(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, GATE)
    token = handle.state.token("work")
    handle.redo("work")

    with pytest.raises(Exception, match="attempt"):
        handle.finish("done", token=token)

    assert "tests" not in handle.state.phases["work"].gates


# In processes


@pytest.fixture
def slow(tmp_path):
    """A project whose check waits for a file, and its tool."""
    gate = '{ kind = "command", name = "slow", command = "until test -e ../go; do sleep 0.05; done", inputs = ["src"] }'
    root = tmp_path / "project"
    build_project(root, f'[workflows.short]\nphases = [{{ key = "work", gates = [{gate}] }}, "after"]\n')
    tool = Tool(root)
    tool("start", "short", "try it").ok()
    yield tool, tmp_path / "go"
    (tmp_path / "go").touch()
    tool("gate", "wait", "slow")


def opened(tool, channel, kind=ActorKind.AGENT):
    return open_project(tool.directory, actor=Actor(name="agent", kind=kind, channel=channel))


def test_in_an_agents_shell_a_long_check_goes_on_in_the_background(slow, monkeypatch):
    tool, go = slow
    monkeypatch.setattr(session_gates, "SHELL_S", 0.2)
    with opened(tool, Channel.TERMINAL) as project:
        handle = project.session()
        for _ in range(2):
            with pytest.raises(CheckRunning, match="the check of gate slow is running") as running:
                handle.finish("done")
        assert running.value.exit_code == 6
        assert running.value.way_out == "detent gate wait slow, then finish again"
        assert verdicts(handle) == {"slow": Verdict.PENDING}

        assert tool("gate", "wait", "slow", "--timeout", "0", **AGENT).code == 6
        go.touch()
        assert tool("gate", "wait", "slow", **AGENT).ok()

        assert handle.state.phases["work"].gates["slow"].iterations == 1
        handle.finish("done")
        assert handle.state.phases["work"].status == "completed"


def test_a_hook_starts_the_check_and_does_not_wait(slow):
    tool, go = slow
    go.touch()
    with opened(tool, Channel.HOOK) as project, pytest.raises(CheckRunning):
        project.session().finish("done")

    tool("gate", "wait", "slow").ok()
    tool("finish", "-m", "done").ok()


def test_two_finishes_at_once_start_one_check(slow):
    tool, go = slow
    command = [DETENT, "finish", "-m", "done"]
    both = [
        subprocess.Popen(
            command, cwd=tool.directory, env=tool.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    until = time.monotonic() + WAIT_S
    while not list(tool.directory.glob(".workflow/WFS-*/.process/check-slow.json")) and time.monotonic() < until:
        time.sleep(0.05)
    go.touch()
    ended = [(one.communicate(timeout=WAIT_S), one.returncode) for one in both]

    # One finishes the phase; the other finds it finished.
    assert sorted(code for _, code in ended)[0] == 0, ended
    with opened(tool, Channel.LIBRARY) as project:
        assert project.session().state.phases["work"].gates["slow"].iterations == 1


def test_ctrl_c_at_gate_wait_leaves_the_check_running(slow):
    tool, go = slow
    with opened(tool, Channel.HOOK) as project, pytest.raises(CheckRunning):
        project.session().finish("done")
    waiting = subprocess.Popen(
        [DETENT, "gate", "wait", "slow"],
        cwd=tool.directory,
        env=tool.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # The first line of progress says that it waits.
    assert waiting.stderr is not None
    first = waiting.stderr.readline()
    os.kill(waiting.pid, signal.SIGINT)
    _, errors = waiting.communicate(timeout=WAIT_S)

    assert (b"the check of slow runs" in first, waiting.returncode) == (True, 130)
    assert b"the check of slow goes on" in errors
    go.touch()
    tool("gate", "wait", "slow").ok()


def test_waiting_for_nothing_shows_the_verdict(slow):
    tool, go = slow
    assert tool("gate", "wait", "slow").code == 3
    go.touch()
    tool("gate", "run", "slow").ok()

    assert "PASS" in tool("gate", "wait", "slow").ok().out
