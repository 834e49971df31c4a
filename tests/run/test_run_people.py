"""`detent run` and the people around it: at its terminal, at another one, and with a hand on Ctrl-C."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.process.marked import kill_marked, marked
from tests.support.command import DETENT, Tool
from tests.support.people import ME
from tests.support.project import build_project
from tests.support.typed_terminal import Terminal
from tests.support.waiting import until

SETTINGS = """
[agents.script]
adapter = "command"
command = "bash agent.sh"
[run]
agent = "script"
workflow = "w"
{more}
[workflows.w]
phases = {phases}
"""
QUICK = 'echo "$DETENT_PHASE" >> worked\n'
#: Works until it is ended, with a child that left its group.
SLOW = QUICK + "setsid sleep 300 & echo up >> up; sleep 300\n"
APPROVED = '["a", {key="b", gates=[{kind="approval"}]}, "c"]'


class Place(Tool):
    """A project with agents that are scripts."""

    def __init__(self, directory):
        super().__init__(directory)
        self._started = []

    def close(self):
        for process in self._started:
            process.kill()
            process.wait()
            process.stdout.close()

    def set_up(self, phases='["a", "b"]', *, agent=QUICK, more="attempts = 1"):
        settings = SETTINGS.format(phases=phases, more=more)
        build_project(self.directory, settings, files={"agent.sh": agent}, agent=True)
        return self

    def at_terminal(self, *arguments):
        return Terminal(self.directory, self.environment, *(arguments or ("run", "Do it")))

    def behind(self, *arguments):
        """Started beside, without a terminal."""
        process = subprocess.Popen(
            [DETENT, *(arguments or ("run", "Do it"))],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        return process

    @property
    def worked(self):
        path = self.directory / "worked"
        return path.read_text().split() if path.exists() else []

    @property
    def session(self):
        with open_project(self.directory) as project:
            [session] = project.store.sessions()
            return project.session(session).state

    @property
    def statuses(self):
        return {key: str(state.status) for key, state in self.session.phases.items()}

    @property
    def mark(self):
        return f"DETENT_STATE={os.path.realpath(self.state)}"

    @property
    def left_running(self):
        return marked(self.mark)

    def is_up(self):
        return (self.directory / "up").exists()


@pytest.fixture
def place(tmp_path):
    here = Place(tmp_path)
    yield here
    here.close()
    left = here.left_running
    kill_marked(here.mark)
    assert left == []
    with open_project(tmp_path) as opened:
        assert check(opened) == []


# What is asked at the terminal


def test_an_approval_is_asked_for_and_given_with_its_reason(place):
    place.set_up(APPROVED)

    with place.at_terminal() as terminal:
        terminal.expect("gate approval is PENDING")
        terminal.say("maybe")
        terminal.expect("'maybe' is neither yes nor no (try: y WHY, or n WHY)")
        terminal.say("")
        terminal.say("y looks good")
        assert terminal.ended() == 0

    assert place.worked == ["a", "b", "c"]
    [vote] = place.session.phases["b"].gates["approval"].votes.values()
    assert (vote.approve, vote.reason) == (True, "looks good, at the terminal of the run")


def test_a_rejection_is_the_next_attempt_which_knows_why(place):
    place.set_up(APPROVED, agent='cat >> "prompt-$DETENT_PHASE"\n' + QUICK, more="attempts = 2")

    with place.at_terminal() as terminal:
        terminal.say("n not like this")
        terminal.expect("gate approval is PENDING")
        terminal.say("y")
        assert terminal.ended() == 0

    assert place.worked == ["a", "b", "b", "c"]
    assert place.session.phases["b"].attempt == 2
    assert "not like this" in (place.directory / "prompt-b").read_text()


@pytest.mark.parametrize("typed", ["2", "continue"])
def test_a_choice_is_made_by_its_number_or_its_name(place, typed):
    place.set_up('[{key="a", gates=[{kind="elicitation"}]}]')

    with place.at_terminal() as terminal:
        terminal.expect("1  save", "2  continue")
        terminal.say(typed)
        assert terminal.ended() == 0

    assert place.session.phases["a"].gates["elicitation"].selection == "continue"


def test_what_an_agent_asks_is_answered_while_it_waits(place):
    asks = 'answer=$(detent ask "Which way?" --choice left --choice right); echo "Summary: went $answer"\n'
    place.set_up('["a"]', agent=asks)

    with place.at_terminal() as terminal:
        terminal.expect("a: Which way?", "1  left", "2  right")
        terminal.say("up")
        terminal.expect("up")
        terminal.say("2")
        assert terminal.ended() == 0

    assert place.session.phases["a"].summary == "went right"


@pytest.mark.parametrize(
    ("typed", "code", "worked", "left"),
    [
        ("retry", 0, ["a", "a", "b"], {"a": "completed", "b": "completed"}),
        ("2", 0, ["a", "b"], {"a": "skipped", "b": "completed"}),
        ("cancel it is hopeless", 7, ["a"], {"a": "failed", "b": "pending"}),
    ],
    ids=["retry", "skip", "cancel"],
)
def test_a_decision_is_asked_for_and_carried_out(place, typed, code, worked, left):
    place.set_up(agent=QUICK + "test $(wc -l < worked) -gt 1\n")

    with place.at_terminal() as terminal:
        terminal.expect("1  retry", "2  skip", "3  cancel")
        terminal.say("whatever")
        terminal.expect("whatever")
        terminal.say(typed)
        assert terminal.ended() == code

    assert (place.worked, place.statuses) == (worked, left)


def test_a_review_is_asked_for_and_what_follows_waits_for_it(place):
    place.set_up(more="attempts = 1\n[supervised]\nphases = ['a']")

    with place.at_terminal() as terminal:
        terminal.expect("1 of 2 a: finished", "1  continue", "2  redo")
        assert place.worked == ["a"]
        terminal.say("redo once more")
        terminal.expect("1 of 2 a: finished")
        assert place.worked == ["a", "a"]
        terminal.say("continue")
        assert terminal.ended() == 0

    assert place.worked == ["a", "a", "b"]


def test_a_question_that_is_settled_elsewhere_is_not_asked_any_more(place):
    place.set_up('[{key="a", gates=[{kind="approval"}]}, {key="b", gates=[{kind="approval"}]}]')

    with place.at_terminal() as terminal:
        terminal.expect("gate approval is PENDING", ") > ")
        place("approve", "-m", "seen elsewhere").ok()
        terminal.expect("gate approval is PENDING")
        terminal.say("y")
        assert terminal.ended() == 0

    assert place.session.phases["a"].gates["approval"].votes[ME].reason == "seen elsewhere"


def test_of_several_things_one_is_asked_at_a_time_and_work_goes_on_meanwhile(place):
    phases = (
        '["a", {key="b", needs=["a"], gates=[{kind="approval"}]}, {key="c", needs=["a"], gates=[{kind="approval"}]}]'
    )
    place.set_up(phases, more="parallel = 2")

    with place.at_terminal() as terminal:
        terminal.say("y")
        terminal.say("y")
        assert terminal.ended() == 0

    assert set(place.statuses.values()) == {"completed"}


# Interruptions


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupted_run_ends_what_it_started_records_it_and_goes_on_when_it_is_run_again(place, how):
    place.set_up(agent=SLOW)

    with place.at_terminal() as terminal:
        assert until(place.is_up)
        terminal.type("\x03") if how == "Ctrl-C" else terminal.process.send_signal(getattr(signal, how))
        assert terminal.ended() == 130

    assert place.left_running == []
    state = place.session.phases["a"]
    assert (state.status, state.attempt) == ("failed", 1)
    assert "interrupted" in state.error if how in ("Ctrl-C", "SIGINT") else "signal" in state.error
    (place.directory / "agent.sh").write_text(QUICK)
    place("run").ok()
    assert (place.worked, place.session.phases["a"].attempt) == (["a", "a", "b"], 2)


def test_a_second_interruption_ends_everything_at_once_and_the_next_run_records_it(place):
    place.set_up(agent="trap '' TERM\n" + SLOW + "while :; do sleep 1; done\n")

    with place.at_terminal() as terminal:
        assert until(place.is_up)
        terminal.type("\x03")
        time.sleep(0.3)
        terminal.type("\x03")
        assert terminal.ended() == 130

    assert until(lambda: place.left_running == [])
    (place.directory / "agent.sh").write_text(QUICK)
    said = place("run").ok().out
    assert "attempt 1 of a was interrupted" in said
    assert place.session.phases["a"].attempt == 2


def test_a_terminal_that_is_closed_pauses_the_run(place):
    place.set_up(agent=SLOW)

    with place.at_terminal() as terminal:
        assert until(place.is_up)
        terminal.hang_up()
        assert terminal.process.wait(timeout=60) == 130

    assert place.left_running == []
    assert place.statuses["a"] == "failed"


def test_a_run_that_was_killed_is_taken_over_with_all_that_it_left(place):
    place.set_up(agent=SLOW)
    killed = place.behind()
    assert until(place.is_up)
    killed.kill()
    killed.communicate()
    assert len(place.left_running) > 0

    (place.directory / "agent.sh").write_text(QUICK)
    said = place("run").ok().out

    assert "processes of an earlier run were ended" in said
    assert "attempt 1 of a was interrupted" in said
    assert place.worked == ["a", "a", "b"]


# Without a terminal


def test_without_a_terminal_a_run_that_needs_a_person_ends_with_the_command_to_type(place):
    place.set_up(APPROVED)

    ran = place("run", "Do it")

    assert ran.code == 6
    assert "detent approve" in ran.out
    assert place.worked == ["a", "b"]
    place("approve", "-m", "fine").ok()
    place("run").ok()
    assert place.worked == ["a", "b", "c"]


def test_a_run_that_waits_without_a_terminal_goes_on_when_the_approval_came(place):
    place.set_up(APPROVED)
    running = place.behind("run", "Do it", "--wait")
    assert until(lambda: place.worked == ["a", "b"])

    assert until(lambda: place("approve", "-m", "fine").code == 0)
    out, _ = running.communicate(timeout=60)

    assert (running.returncode, place.worked) == (0, ["a", "b", "c"]), out


def test_at_a_terminal_one_need_not_wait(place):
    place.set_up(APPROVED)

    with place.at_terminal("run", "Do it", "--no-wait") as terminal:
        assert terminal.ended() == 6

    assert ") > " not in terminal.text


def test_whoever_runs_a_session_that_is_being_run_looks_on(place):
    place.set_up(agent=QUICK + "until test -e go; do sleep 0.05; done\n")
    running = place.behind()
    assert until(lambda: place.worked == ["a"])

    with place.at_terminal("run") as terminal:
        terminal.expect("is being run by", "showing that run")
        Path(place.directory, "go").touch()
        assert terminal.ended() == 0

    assert running.wait(timeout=60) == 0
    assert place.worked == ["a", "b"]


def test_whoever_looks_on_leaves_with_an_interruption_and_the_run_goes_on(place):
    place.set_up(agent=QUICK + "until test -e go; do sleep 0.05; done\n")
    running = place.behind()
    assert until(lambda: place.worked == ["a"])

    with place.at_terminal("watch") as terminal:
        terminal.expect("a")
        terminal.type("\x03")
        terminal.ended()
    Path(place.directory, "go").touch()

    out, _ = running.communicate(timeout=60)
    assert (running.returncode, place.worked) == (0, ["a", "b"]), out
