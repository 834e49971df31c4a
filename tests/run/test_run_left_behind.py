"""What a run leaves behind, however it ends: no process, no claim, and a true word about how it ended."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from detent.core.run.agent_event import Used
from detent.core.run.run_event import End, PhaseEnded
from detent.core.session.phase_state import Tokens
from detent.core.session.session import SessionStatus
from detent.core.task.row import TaskStatus
from detent.process.marked import kill_marked, marked
from detent.render.markdown.report import report_text
from detent.render.tokens import tokens_text
from tests.support import run_process as run_scene
from tests.support.scripted_run import FLOW, Cast, bounded, done, stopped_only
from tests.support.task_documents import stepped
from tests.support.waiting import until, wait_until


def is_running(path):
    """Whether the process whose number the file has is there; one that was not waited for has no arguments."""
    arguments = Path("/proc", path.read_text().strip(), "cmdline")
    return arguments.exists() and arguments.read_bytes() != b""


# What is left behind


def test_what_a_gate_left_running_ends_with_the_run(scene):
    daemon = "setsid sleep 77 > /dev/null 2>&1 & echo $! > daemon.txt"
    here = scene(f'[{{key = "a", gates = [{{kind = "command", command = "{daemon}"}}]}}]')

    assert bounded(here, Cast()) is End.COMPLETED

    assert not is_running(here.root / "daemon.txt")


def test_a_step_is_ended_with_the_run_by_a_second_interruption(play, tmp_path):
    scene = play("true", '{key = "build", tasks = true}')
    with scene.project() as project:
        handle = project.start("trial", run_scene.TASK)
        stubborn = f"trap '' TERM INT; echo $$ > {tmp_path}/step; for i in 1 2 3 4 5 6; do sleep 1.1; done"
        handle.tasks.write([stepped(1, stubborn)])

    process = scene.start("run", "--no-wait")
    wait_until((tmp_path / "step").exists, during=process)
    wait_until((tmp_path / "step").read_text, during=process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)

    assert run_scene.ended(process).exit_code == 130
    assert scene.alive() == []
    assert not is_running(tmp_path / "step")


class Broken(Exception):
    """An error that no code expects."""


def test_a_task_whose_agent_breaks_the_run_is_given_back(scene):
    here = scene("", more='gates = "off"', workflow=FLOW)
    here.handle.tasks.add("One")

    def act(turn, stopping):
        if turn.task:
            raise Broken
        yield done()

    with pytest.raises(Broken):
        bounded(here, Cast(act))

    assert here.session.claims == {}
    assert here.handle.tasks.row("IMPL-1").status is TaskStatus.PENDING
    assert bounded(here, cast := Cast()) is End.COMPLETED
    assert cast.worked_on == ["IMPL-1", "REVIEW"]


# Interruptions


def test_a_run_that_is_interrupted_in_its_last_turn_and_completes_has_completed(scene):
    here = scene('["a"]')

    def act(turn, stopping):
        runner.pause("interrupted")
        assert until(stopping)
        yield done()

    runner = here.runner(Cast(act))

    assert runner.run() is End.COMPLETED
    assert here.session.status is SessionStatus.COMPLETED


def test_a_runner_that_has_not_begun_can_be_killed(scene):
    runner = scene().runner(Cast())

    assert runner.kill() is None


def test_killing_ends_what_is_started_meanwhile(tmp_path):
    mark = f"DETENT_RUN={tmp_path.name}-{os.getpid()}"
    # Each starts two more: one look at the processes sees only some of them.
    relay = 'n=$1; [ "$n" -gt 0 ] && { sh "$0" $((n - 1)) & sh "$0" $((n - 1)) & }; sleep 20'
    (tmp_path / "relay.sh").write_text(relay)
    name, _, value = mark.partition("=")
    command = ["sh", str(tmp_path / "relay.sh"), "6"]
    first = subprocess.Popen(command, env={**os.environ, name: value}, start_new_session=True)

    try:
        assert until(lambda: len(marked(mark)) > 2)
        kill_marked(mark)
        first.wait(timeout=60)
        time.sleep(0.2)
        assert marked(mark) == []
    finally:
        with suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)


def test_what_a_person_left_out_meanwhile_is_told_as_it_is(scene):
    here = scene('["a", "b"]')

    def act(turn, stopping):
        if turn.phase == "b":
            yield done()
            return
        here.beside(lambda handle: handle.skip("a", reason="by hand"))
        yield stopped_only(stopping)

    assert bounded(here, Cast(act)) is End.COMPLETED
    assert [(event.phase, event.status) for event in here.heard(PhaseEnded)] == [("a", "skipped"), ("b", "completed")]


# The report


def test_a_directory_in_the_place_of_the_report_is_kept_and_does_not_change_how_the_run_ended(play):
    scene = play("true", '"a"')
    with scene.project() as project:
        project.start("trial", run_scene.TASK)
    report = Path(scene.state, run_scene.SESSION, "REPORT.md")
    report.mkdir()

    ran = scene.run()

    assert ran.exit_code == 0, ran
    assert report.is_file()
    assert report.with_name("REPORT.md.set-aside-1").is_dir()


def test_the_report_counts_what_was_used_in_attempts_that_have_not_ended(scene):
    here = scene('[{key = "a", gates = [{kind = "approval"}]}]')
    used = Tokens(input=90, output=20)

    assert bounded(here, Cast(lambda turn, stopping: (Used(tokens=used), done()))) is End.WAITING

    head = report_text(here.session, here.handle.log()).partition("## ")[0]
    assert tokens_text(used) in head
