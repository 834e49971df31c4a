"""`detent run` as a command: what it refuses, and then nothing has begun; what it says; how it ends."""

import os
import subprocess

import msgspec
import pytest

from detent.core.run.run_event import End, PhaseEnded, RunEnded, RunEvent, RunStarted
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.process.marked import marked
from tests.support.command import Tool
from tests.support.project import build_project

SETTINGS = """
gates = "off"
[agents.script]
adapter = "command"
command = "echo $DETENT_PHASE >> worked"
[agents.other]
adapter = "command"
command = "echo other-$DETENT_PHASE >> worked"
[run]
agent = "script"
workflow = "w"
[workflows.w]
phases = [{ key = "a", agent = "writer" }, { key = "b", agent = "reader" }]
"""


@pytest.fixture
def ready(detent) -> Tool:
    """In a project whose agents are commands, without a session."""
    build_project(detent.directory, SETTINGS)
    yield detent
    assert marked(f"DETENT_STATE={os.path.realpath(detent.state)}") == []
    with open_project(detent.directory) as opened:
        assert check(opened) == []


def worked(tool):
    path = tool.directory / "worked"
    return path.read_text().split() if path.exists() else []


def events(ran):
    return [msgspec.json.decode(line, type=RunEvent) for line in ran.out.splitlines()]


# What it does


def test_a_new_task_is_a_new_session_that_is_run_to_its_end(ready):
    said = ready("run", "Do it").ok().out

    assert worked(ready) == ["a", "b"]
    assert "The report is in .workflow/WFS-do-it/REPORT.md" in said
    assert (ready.state / "WFS-do-it/REPORT.md").read_text().count("\n# Do it\n") == 1
    assert "2/2 phases" in ready("history").ok().out


def test_for_machines_every_line_is_an_event_and_the_last_is_the_end(ready):
    told = events(ready("run", "Do it", "--json").ok())

    assert isinstance(told[0], RunStarted)
    assert [one.phase for one in told if isinstance(one, PhaseEnded)] == ["a", "b"]
    assert isinstance(told[-1], RunEnded)
    assert told[-1].end is End.COMPLETED
    assert sum(isinstance(one, RunEnded) for one in told) == 1


def test_the_same_task_again_goes_on_with_its_session(ready):
    ready("start", "w", "Do it").ok()
    ready("finish", "-m", "by hand").ok()

    ready("run", "  Do it ").ok()

    assert worked(ready) == ["b"]
    assert [one.name for one in ready.state.glob("WFS-*")] == ["WFS-do-it"]


def test_without_a_task_the_active_session_goes_on(ready):
    ready("start", "w", "Do it").ok()

    ready("run").ok()

    assert worked(ready) == ["a", "b"]


def test_a_task_that_is_done_may_be_run_anew_as_another_session(ready):
    ready("run", "Do it").ok()
    ready("run", "Do it").ok()

    assert worked(ready) == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("chosen", "done"),
    [
        (["other"], ["other-a", "other-b"]),
        (["b=other"], ["a", "other-b"]),
        (["writer=other"], ["other-a", "b"]),
        (["other", "a=script"], ["a", "other-b"]),
        (["writer=other", "a=script"], ["a", "b"]),
    ],
)
def test_who_does_the_work_can_be_said_for_all_for_a_role_and_for_a_phase(ready, chosen, done):
    ready("run", "Do it", *(part for one in chosen for part in ("--agent", one))).ok()

    assert worked(ready) == done


def test_a_session_that_failed_ends_with_the_way_on(ready):
    (ready.directory / "detent.toml").write_text(SETTINGS.replace("echo $DETENT_PHASE >> worked", "exit 3"))

    ran = ready("run", "Do it")

    assert ran.code == 6
    assert "detent resolve retry a" in ran.out
    ready("resolve", "cancel").ok()


def test_a_run_whose_reader_has_gone_goes_on(ready):
    ran = ready.run("run", "Do it", preexec_fn=lambda: os.close(1))

    assert worked(ready) == ["a", "b"], ran.stderr


# What it refuses


def refused(tool, *arguments, **environment):
    """Exit code, message and way out; nothing was started, and nothing is different."""
    before = tool.digest()
    ran = tool("run", *arguments, **environment).error()
    assert tool.digest() == before
    assert worked(tool) == []
    return ran


def test_without_a_task_and_a_session_there_is_nothing_to_run(ready):
    assert refused(ready) == (1, "no session is active", 'detent run "TASK"')


def test_an_agent_that_is_not_known_is_refused_before_a_session_is_started(ready):
    code, message, _ = refused(ready, "Do it", "--agent", "nobody")

    assert (code, "there is no agent nobody; known agents:" in message) == (1, True)


def test_a_workflow_that_is_not_known_is_refused(ready):
    code, message, _ = refused(ready, "Do it", "--workflow", "nothing")

    assert (code, "nothing" in message) == (1, True)


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("=other", 2, "'=other' is not an agent; give NAME, or PHASE=NAME"),
        ("a=", 2, "'a=' is not an agent; give NAME, or PHASE=NAME"),
        ("z=other", 1, "w has no phase or role z"),
        ("a=nobody", 1, "there is no agent nobody"),
    ],
)
def test_an_agent_for_nothing_or_a_phase_for_nobody_is_refused(ready, given, code, said):
    found, message, _ = refused(ready, "Do it", "--agent", given)

    assert (found, said in message) == (code, True), message


def test_another_task_does_not_push_an_unfinished_session_aside(ready):
    ready("start", "w", "Do it").ok()

    code, message, way_out = refused(ready, "Something else")

    assert (code, message) == (1, "WFS-do-it is active with another task: Do it")
    assert "detent pause" in way_out


@pytest.mark.parametrize("given", [["--isolation", "session"], []])
def test_a_run_on_workers_with_worktrees_is_refused_before_a_session_is_started(ready, given):
    if not given:
        settings = ready.directory / "detent.toml"
        settings.write_text(settings.read_text().replace("[run]", '[run]\nisolation = "phase"'))
    _, message, way_out = refused(ready, "Do it", "--on", "temporal://127.0.0.1:1", *given)

    assert message.startswith("a run on workers has no worktrees, and isolation is")
    assert way_out.startswith("give --isolation none")


def test_a_run_on_workers_without_a_shared_place_is_refused_before_a_session_is_started(ready):
    _, message, _ = refused(ready, "Do it", "--on", "temporal://127.0.0.1:1")

    assert message == "no place is set that all machines reach"
    assert ready("sessions", "--json").ok().json()["sessions"] == []


def test_a_run_on_workers_that_cannot_be_given_to_them_says_that_its_session_is_there(ready, tmp_path):
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    settings = ready.directory / "detent.toml"
    settings.write_text(f'{settings.read_text()}\n[files]\nremote = "{remote}"\n')

    ran = ready("run", "Do it", "--on", "temporal://127.0.0.1:1")

    assert ran.code == 1
    assert "WFS-do-it is active; detent run --on URL continues it" in ran.err


def test_an_agent_does_not_start_a_run(ready):
    ready("start", "w", "Do it").ok()

    code, message, _ = refused(ready, DETENT_PHASE="a")

    assert (code, message) == (1, "an agent of a run cannot start another run")


def test_a_session_that_is_not_the_active_one_is_not_run(ready):
    ready("start", "w", "One").ok()
    ready("pause").ok()
    ready("start", "w", "Two").ok()

    code, message, way_out = refused(ready, "--session", "WFS-one")

    assert (code, message, way_out) == (1, "WFS-one is not the active session", "detent switch WFS-one")


def test_outside_a_project_nothing_is_run(detent):
    assert detent("run", "Do it").code != 0
    assert os.listdir(detent.directory) == []


@pytest.mark.parametrize("settings", ['[agents.x]\nadapter = "command"\n[run]\nagent = "x"', '[run]\nagent = "gone"'])
def test_settings_that_name_no_agent_that_works_are_refused(detent, settings):
    build_project(detent.directory, settings)
    before = detent.digest()

    ran = detent("run", "Do it")

    assert ran.code == 1
    assert detent.digest() == before
