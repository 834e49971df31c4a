"""`detent flow` as people and agents run it: live, interrupted, killed, and told what to decide."""

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from detent.core.task.document import new_document
from detent.engine.project import open_project
from tests.support.command import DETENT
from tests.support.task_documents import step
from tests.support.waiting import is_running, until


@pytest.fixture
def planned(project):
    """A project with a session, and a way to give it a task with steps."""
    project("start", "feature", "Try the steps").ok()

    def plan(*steps):
        document = new_document("IMPL-1", "Try it", focus_paths=["src"])
        document["flow_control"] |= {"pre_analysis": list(steps), "implementation_approach": "see [id]"}
        with open_project(project.directory) as opened:
            opened.session().tasks.write([document])
        return project

    return plan


def background(tool, *arguments, **settings):
    return subprocess.Popen(
        [DETENT, *arguments],
        cwd=tool.directory,
        env=tool.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **settings,
    )


def pid_in(path: Path) -> int:
    assert until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


SLOW = "sleep 300 & echo $! > PID; wait"


def test_run_show_and_what_comes_next(planned, tmp_path):
    tool = planned(step("one", "echo hello", output_to="greeting"))
    assert "IMPL-1: not run yet, 0 of 1 step done" in tool("flow", "show", "impl-1").ok().out

    ran = tool("flow", "run", "impl-1", "--context", "agent.json").ok()

    assert ran.out.startswith("IMPL-1: finished, 1 of 1 step done\n  ✓ one: do one\n")
    assert ran.err == "detent: step 1 of 1: one: do one\ndetent: step 1 of 1: done after 0s\n"
    assert "IMPL-1: finished" in tool("flow", "show", "IMPL-1").ok().out
    context = msgspec.json.decode((tmp_path / "agent.json").read_bytes())
    assert context["flow"]["implementation_approach"] == "see IMPL-1"
    assert context["flow"]["outputs"] == {"greeting": "hello"}
    done = tool("task", "done", "IMPL-1", "--claim", str(context["claim"]), "-m", "Did it")
    assert done.code == 0, done.err


def test_for_machines(planned):
    tool = planned(step("one", "echo hello", output_to="greeting"), step("two", "false"))

    ran = tool("flow", "run", "IMPL-1", "--json")

    assert (ran.code, ran.err) == (7, "")
    told = ran.json()
    assert (told["ended"], told["step"], told["reason"]) == ("failed", "two", "the exit code is 1, not 0")
    assert [each["state"] for each in told["steps"]] == ["done", "failed"]
    assert tool("flow", "show", "IMPL-1", "--json").ok().json()["ended"] == "failed"


def test_a_dry_run_shows_what_would_run(planned):
    tool = planned(step("one", "touch RAN", output_to="x"), step("two", "echo '[x]' $MY_SECRET"))
    before = tool.digest()

    shown = tool("flow", "run", "IMPL-1", "--dry-run", MY_SECRET="swordfish").ok().out

    assert "bash -c 'touch RAN'" in shown
    assert "DETENT_V0='<what one puts out>' \\\n" in shown
    assert "swordfish" not in shown
    assert not (tool.directory / "RAN").exists()
    assert tool.digest() == before


def test_what_waits_is_decided_by_a_person(planned):
    tool = planned(step("ask", "false", on_error="manual_intervention", output_to="x"), step("use", "echo '[x]' > OUT"))

    waits = tool("flow", "run", "IMPL-1")
    assert waits.code == 6
    assert "  detent flow resume IMPL-1 --skip\n" in waits.out
    assert tool("flow", "resume", "IMPL-1").error()[0] == 1
    for how in (["--skip"], ["--set", "x"], ["--rerun-from", "ask"]):
        refused = tool("flow", "resume", "IMPL-1", *how, CLAUDECODE="1").error()
        assert (refused[0], "person" in refused[1]) == (1, True)
    assert tool("flow", "resume", "IMPL-1", "--skip", "--abort").error()[0] == 2

    tool("flow", "resume", "IMPL-1", "--set", "-", stdin=b"from a person").ok()
    assert (tool.directory / "OUT").read_text() == "from a person\n"


def test_a_step_reads_nothing_from_whoever_runs_it(planned):
    tool = planned(step("one", "cat > READ"))

    tool("flow", "run", "IMPL-1", stdin=b"not for the step").ok()

    assert (tool.directory / "READ").read_bytes() == b""


def test_agents_run_steps(planned):
    assert planned(step("one", "true"))("flow", "run", "IMPL-1", CLAUDECODE="1").ok()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_running(planned, kind):
    tool = planned(step("slow", SLOW))
    runner = background(tool, "flow", "run", "IMPL-1")
    pid = pid_in(tool.directory / "PID")

    runner.send_signal(kind)
    _, told = runner.communicate(timeout=60)

    assert runner.returncode == 130
    assert not is_running(pid)
    assert b"detent flow resume IMPL-1 continues the steps of IMPL-1" in told
    assert "begun: interrupted" in tool("flow", "show", "IMPL-1").ok().out
    document = next(tool.state.glob("WFS-*/.task/IMPL-1.json")).read_bytes()
    assert msgspec.json.decode(document)["status"] == "pending"


def test_a_runner_that_was_killed_is_gone_on_with_at_its_step(planned):
    tool = planned(
        step("one", "echo x >> ONE; printf 'caf\\303\\251 $(touch CANARY)'", output_to="v"),
        step("two", "echo x >> TWO; [ -e GO ] || { " + SLOW + "; }", output_to="w"),
        step("three", "printf '%s' [v] > OUT"),
    )
    runner = background(tool, "flow", "run", "IMPL-1")
    pid = pid_in(tool.directory / "PID")
    runner.kill()
    runner.communicate(timeout=60)
    assert is_running(pid)
    (tool.directory / "GO").touch()

    went_on = tool("flow", "resume", "IMPL-1").ok()

    assert not is_running(pid)
    assert "was still running, and was ended" in went_on.out
    assert (tool.directory / "ONE").read_text() == "x\n"
    assert (tool.directory / "TWO").read_text() == "x\nx\n"
    assert (tool.directory / "OUT").read_text() == "café $(touch CANARY)"
    assert not (tool.directory / "CANARY").exists()


def test_a_terminal_sees_how_far_it_is(planned):
    tool = planned(step("one", "echo first line; sleep 0.6"))
    ours, theirs = pty.openpty()
    runner = subprocess.Popen(
        [DETENT, "flow", "run", "IMPL-1"],
        cwd=tool.directory,
        env=tool.environment | {"TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        seen += chunk
    runner.wait(timeout=60)
    os.close(ours)

    assert b"\rstep 1 of 1: one: do one  0s  first line\x1b[K" in seen
    assert b"IMPL-1: finished" in seen
