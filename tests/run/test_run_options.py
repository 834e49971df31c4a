"""A run keeps its options in the session: `detent run` without them goes on as the run before did."""

import pytest

from detent.core.run.choices import RunChoices
from detent.core.session.describe import event_lines
from detent.core.session.session import SessionStatus
from tests.support import run_process as run_scene
from tests.support.waiting import wait_until

#: The second agent waits in its first turn, so that the run can be killed in it.
OTHER = """
[agents.other]
adapter = "command"
command = "echo $DETENT_PHASE >> by-other; test -e go || exec sleep 60"
"""
TESTS = "echo 1 passed in 0.1s"


@pytest.fixture
def waiting(play):
    return play("echo $DETENT_PHASE >> by-script", '{ key = "a", gates = [{ kind = "tests" }] }, "b"', agent=OTHER)


def killed(scene, *options):
    process = scene.start("run", run_scene.TASK, "--no-wait", *options)
    wait_until((scene.directory / "by-other").exists, during=process)
    run_scene.kill(process)
    (scene.directory / "go").touch()


def lines(scene, name):
    path = scene.directory / name
    return path.read_text().split() if path.exists() else []


def test_a_run_that_was_killed_goes_on_with_the_options_that_it_was_started_with(waiting):
    killed(waiting, "--agent", "other", "--parallel", "2", "--tests", TESTS)

    ran = waiting.detent("run", "--no-wait")

    assert ran.exit_code == 0, ran
    assert "with the options of the run before: --agent other --parallel 2" in ran.errors
    assert lines(waiting, "by-other") == ["a", "a", "b"]
    assert lines(waiting, "by-script") == []
    session = waiting.session()
    assert session.status is SessionStatus.COMPLETED
    assert session.phases["a"].gates["tests"].receipt.command == TESTS
    assert waiting.findings() == []


def test_an_option_that_is_given_again_replaces_the_recorded_one_and_is_recorded(waiting):
    killed(waiting, "--agent", "other", "--parallel", "2", "--tests", TESTS)

    ran = waiting.detent("run", "--no-wait", "--agent", "b=script")

    assert ran.exit_code == 0, ran
    assert (lines(waiting, "by-other"), lines(waiting, "by-script")) == (["a", "a"], ["b"])
    assert waiting.session().options.run == RunChoices(agents={"": "other", "b": "script"}, parallel=2)
    described = [line for commit in waiting.commits() for line in event_lines(commit.events)]
    assert "set the options of the run: --agent other --agent b=script --parallel 2" in str(described)


def test_a_session_that_was_started_by_hand_keeps_the_options_of_its_run(waiting):
    waiting.detent("start", "trial", run_scene.TASK)
    killed(waiting, "--agent", "other")

    waiting.detent("run", "--no-wait")

    assert waiting.session().options.run == RunChoices(agents={"": "other"})
    assert lines(waiting, "by-other") == ["a", "a"]
    assert lines(waiting, "by-script") == []


def test_the_same_options_again_are_recorded_once(waiting):
    killed(waiting, "--agent", "other", "--tests", TESTS)
    (waiting.directory / "go").unlink()
    killed(waiting, "--agent", "other", "--tests", TESTS)

    recorded = [
        event for commit in waiting.commits() for event in commit.events if "RunOptionsSet" in repr(type(event))
    ]
    assert recorded == []


def test_a_second_run_in_the_same_files_is_warned_of_and_is_offered_a_worktree(waiting):
    first = waiting.start("run", run_scene.TASK, "--no-wait", "--agent", "other", "--tests", TESTS)
    wait_until((waiting.directory / "by-other").exists, during=first)
    with waiting.project() as project:
        project.start("trial", "something else")

    second = waiting.detent("run", "--no-wait", "--agent", "script")

    assert f"another run works in the same files: {run_scene.SESSION} by " in second.errors
    assert "detent run --isolation session" in second.errors
    run_scene.kill(first)
