"""An agent that a runner started is held to its own phase: what goes on in others beside it is none of its business."""

import json
import os
import sys

import pytest

from detent.core.session.events import SessionCancelled
from detent.core.session.status import Status
from detent.engine.agents.binding import bound_phase
from tests.support import values as factories
from tests.support.hook_answers import check_answer
from tests.support.hook_calls import BASH, READ, SLOW, WRITE
from tests.support.hooked_project import FAST, PASSES, Place, run_hook

TESTS = '{ kind = "tests" }'
FILES = '{ kind = "artifacts", paths = ["docs/%s.md"] }'
PARALLEL = f"""
[workflows.row]
phases = [
    {{ key = "one", agent = "ada", gates = [{TESTS}, {FILES % "one"}] }},
    {{ key = "two", agent = "bea", needs = [], gates = [{TESTS}, {FILES % "two"}] }},
    {{ key = "three", agent = "cid", needs = ["one", "two"] }},
]
"""


class Agent:
    """A client with the environment that the runner gives it."""

    def __init__(self, place, phase, **changes):
        self.place = place
        told = json.loads(place.detent("status", "--json"))
        token = next(one["token"] for one in told["phases"] if one["phase"] == phase)
        bound = {"DETENT_SESSION": told["session"], "DETENT_PHASE": phase, "DETENT_TOKEN": token, **changes}
        self.environment = {name: value for name, value in bound.items() if value is not None}

    def hook(self, event, *flags, **fields):
        payload = {"session_id": "s-1", "cwd": str(self.place.root), "hook_event_name": event, **fields}
        command = [sys.executable, "-I", "-S", *flags, str(FAST), "claude-code"]
        environment = {"PATH": os.environ["PATH"], **self.environment}
        return run_hook(command, json.dumps(payload).encode(), cwd=self.place.root, env=environment)

    def answer(self, event, **fields):
        text = self.hook(event, **fields).stdout.decode()
        return check_answer("claude-code", event, text)

    def blocked(self, **fields):
        return self.answer("Stop", **fields).get("reason", "")

    def told(self, event, **fields):
        return self.answer(event, **fields).get("hookSpecificOutput", {}).get("additionalContext", "")

    def denied(self, tool, **inputs):
        said = self.answer("PreToolUse", tool_name=tool, tool_input=inputs)
        return said.get("hookSpecificOutput", {}).get("permissionDecisionReason", "")

    def runs_tests(self):
        fields = {"tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": "1 passed in 0.1s"}}
        return self.told("PostToolUse", tool_name="Bash", **fields)


@pytest.fixture(scope="module")
def two_phases(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("two"), settings=PARALLEL)
    made.detent("start", "row", "Add search")
    made.detent("begin", "two")
    return made


@pytest.fixture
def place(two_phases, tmp_path):
    """Two phases in progress beside each other."""
    return two_phases.copied(tmp_path)


def checked(place):
    return [event["phase"] for event in place.events() if event["type"] == "gate_checked"]


def test_only_the_gates_of_its_own_phase_hold_an_agent(place):
    for phase, other in (("one", "two"), ("two", "one")):
        reason = Agent(place, phase).blocked()

        assert f"artifacts of {phase} is FAIL" in reason
        assert f"of {other} " not in reason


def test_an_agent_whose_gates_are_open_stops_although_others_are_not(place):
    agent = Agent(place, "two")
    agent.runs_tests()
    place.write("docs/two.md", "two\n")
    agent.runs_tests()

    assert agent.blocked() == ""
    assert "of one is" in Agent(place, "one").blocked()


def test_a_file_that_was_written_after_the_check_leaves_the_verdict_to_the_runner(tmp_path):
    """The command reads a file that is no input of its evidence, so the verdict alone would stand."""
    gates = 'gates = [{ kind = "command", name = "answer", command = "grep -x 42 answer.txt" }]'
    place = Place(tmp_path, settings=f'[workflows.row]\nphases = [{{ key = "one", {gates} }}]\n')
    place.detent("start", "row", "Find it")
    place.write("answer.txt", "41\n")
    place.refused("gate", "run", "answer")

    assert "answer of one is FAIL" in Agent(place, "one").blocked()
    place.write("answer.txt", "42\n")
    assert Agent(place, "one").blocked() == ""


def test_a_test_run_that_is_seen_counts_for_its_own_phase(place):
    told = Agent(place, "two").runs_tests()

    assert checked(place) == ["two"]
    assert "tests of two is PASS" in told
    assert "of one" not in told


NOT_BELIEVED = {
    "no session": {"DETENT_SESSION": None},
    "an empty session": {"DETENT_SESSION": ""},
    "a session that is not there": {"DETENT_SESSION": "WFS-nowhere"},
    "a session that leads elsewhere": {"DETENT_SESSION": "../WFS-add-search"},
    "no phase": {"DETENT_PHASE": None},
    "an empty phase": {"DETENT_PHASE": ""},
    "a phase that is not there": {"DETENT_PHASE": "four"},
    "a phase that is not in progress": {"DETENT_PHASE": "three"},
    "no token": {"DETENT_TOKEN": None},
    "an empty token": {"DETENT_TOKEN": ""},
    "the token of another attempt": {"DETENT_TOKEN": "two:2:9"},
    "the token of another phase": {"DETENT_TOKEN": "one:1:1"},
}


@pytest.mark.parametrize("changes", NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_what_the_journal_does_not_confirm_binds_nobody(place, changes):
    agent = Agent(place, "two", **changes)

    assert agent.answer("Stop") == place.hook("Stop", session_id="s-2").fields
    agent.runs_tests()
    assert checked(place) == ["one", "two"]
    assert not list((place.root / ".workflow").glob("hook-failures.log"))


def test_an_agent_that_outlived_its_attempt_is_bound_no_more(place):
    late = Agent(place, "two")
    place.detent("redo", "two")

    assert "of one is" in late.blocked()
    assert "of one is" not in Agent(place, "two").blocked()


def test_a_session_that_has_ended_binds_nobody():
    session = factories.opened()
    environment = {"DETENT_SESSION": session.id, "DETENT_PHASE": "a", "DETENT_TOKEN": str(session.token("a"))}
    over = factories.after(session, [SessionCancelled(reason="not wanted")])

    assert over.phases["a"].status is Status.IN_PROGRESS
    assert bound_phase(session, environment) == "a"
    assert bound_phase(over, environment) is None


def test_the_session_is_its_own_whichever_is_active(place):
    agent = Agent(place, "two")
    place.detent("start", "row", "Something urgent")

    agent.runs_tests()

    assert checked(place) == []
    journal = place.disk.journal(agent.environment["DETENT_SESSION"])
    assert [event["phase"] for one in journal for event in one["events"] if event["type"] == "gate_checked"] == ["two"]


def test_an_agent_is_held_three_times_an_attempt_and_then_left_to_the_runner(place):
    """Whatever others do to the journal meanwhile, and without a person having to decide already."""
    agent, other = Agent(place, "two"), Agent(place, "one")
    held = []
    for _ in range(3):
        held.append(agent.blocked())
        other.runs_tests()
        assert other.blocked(session_id="s-other")

    assert all(held)
    assert agent.answer("Stop") == {}
    assert place.disk.state()["pending_escalations"] == []


def test_what_waits_for_a_person_elsewhere_does_not_let_an_agent_go(place):
    agent, other = Agent(place, "two"), Agent(place, "one")
    for _ in range(4):
        place.hook("Stop")
    assert [one["phase"] for one in place.disk.state()["pending_escalations"]] == ["one"]

    assert "of two is" in agent.blocked()
    assert other.answer("Stop") == {}


def test_while_its_own_question_is_open_an_agent_is_not_held(place):
    agent = Agent(place, "two")
    place.detent("ask", "Which?", "--no-wait", **agent.environment)

    assert agent.answer("Stop") == {}
    assert Agent(place, "one").blocked()


@pytest.mark.parametrize("event", ["SessionStart", "SubagentStart"])
def test_it_hears_what_its_phase_was_given_and_not_how_to_end_it(place, event):
    told = Agent(place, "two").told(event, agent_id="a-9", agent_type="bea")

    assert "In progress: two, attempt 1" in told
    assert "Gate artifacts is FAIL: docs/two.md missing" in told
    assert "In progress: one" not in told
    assert "detent finish" not in told


def test_an_agent_of_another_phase_that_it_calls_helps_it_and_is_no_evidence_there(place):
    agent = Agent(place, "two")
    fields = {"tool_name": "Agent", "tool_input": {"subagent_type": "ada", "prompt": "help"}}
    response = {"status": "completed", "agentId": "a-1", "content": [{"type": "text", "text": "helped"}]}

    assert agent.told("SubagentStart", agent_id="a-1", agent_type="ada") == ""
    agent.answer("PostToolUse", tool_response=response, **fields)

    assert [event for event in place.events() if event["type"] == "agent_launched"] == []


# The guard


def fail_tests(place, phase):
    """A failing run makes a corridor of the phase."""
    agent = Agent(place, phase)
    inputs = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}}
    agent.answer("PostToolUseFailure", error="Exit code 1\nFAILED a.py::b - no\n1 failed in 0.1s", **inputs)


MOVE_ON = {"subagent_type": "sdlc-orchestrator", "prompt": "proceed now"}


def test_the_guard_takes_the_bound_phase_for_the_current_one(place):
    fail_tests(place, "two")
    assert place.before("Agent", **MOVE_ON).denied.startswith("phase one is held by its gates")

    assert Agent(place, "two").denied("Agent", **MOVE_ON).startswith("the tests of two fail")
    assert Agent(place, "one").denied("Agent", **MOVE_ON).startswith("phase one is held by its gates")


@pytest.mark.parametrize(
    "changes",
    [{"DETENT_PHASE": "three"}, {"DETENT_PHASE": ""}, {"DETENT_SESSION": "WFS-nowhere"}, {"DETENT_SESSION": ""}],
)
def test_the_guard_believes_only_what_the_document_says(place, changes):
    fail_tests(place, "two")

    assert Agent(place, "two", **changes).denied("Agent", **MOVE_ON).startswith("phase one is held by its gates")


@pytest.mark.parametrize("call", [BASH, READ, WRITE], ids=lambda call: call["tool_name"])
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
def test_being_bound_loads_nothing_slow(place, event, call):
    done = Agent(place, "two").hook(event, "-X", "importtime", **call, tool_response={"stdout": "ok"})

    lines = done.stderr.decode().splitlines()
    modules = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert done.stdout == b""
    assert "detent.clients.dialect" in modules
    assert modules & SLOW == set()


# Workflows that are driven by delegation


@pytest.fixture(scope="module")
def delegated(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("delegated"))
    made.detent("start", "adhoc", "Add search", "--phase", "Write it:ada", "--phase", "Check it:bea")
    return made


@pytest.fixture
def driven(delegated, tmp_path):
    return delegated.copied(tmp_path)


DONE = {"last_assistant_message": "Summary: all done\nDeliverables: a.md"}


def test_the_end_of_an_agent_ends_no_phase_that_a_runner_drives(driven):
    agent = Agent(driven, "phase_0")
    agent.told("SubagentStart", agent_id="a-1", agent_type="ada")

    agent.answer("SubagentStop", agent_id="a-1", agent_type="ada", **DONE)

    assert driven.status("phase_0") == "in_progress"
    assert [event["type"] for event in driven.events()][-2:] == ["agent_launched", "agent_ended"]


def test_without_a_runner_the_end_of_the_agent_ends_the_phase(driven):
    driven.hook("SubagentStart", agent_id="a-1", agent_type="ada")

    driven.hook("SubagentStop", agent_id="a-1", agent_type="ada", **DONE)

    assert driven.status("phase_0") == "completed"


def test_an_agent_cannot_begin_what_the_runner_begins(driven):
    agent = Agent(driven, "phase_0")

    reason = agent.denied("Agent", subagent_type="bea", prompt="go on")

    assert reason == "the run that started you begins phase_1; work on phase_0 only"
    assert driven.status("phase_1") == "pending"


def test_the_list_of_all_phases_is_not_the_agents_to_keep(driven):
    agent = Agent(driven, "phase_0")
    listed = {"todos": [{"content": "Write it", "status": "completed", "activeForm": "Writing"}]}

    assert agent.answer("UserPromptSubmit", prompt="<task-notification>done</task-notification>") == {}
    assert agent.answer("PostToolUse", tool_name="TodoWrite", tool_input=listed, tool_response={}) == {}
    assert "todo list" not in agent.told("SessionStart")
    assert "todo list" in driven.hook("SessionStart").told


def test_a_run_in_the_shell_of_an_agent_that_no_runner_started_counts_for_every_phase(place):
    place.tests(PASSES)

    assert checked(place) == ["one", "two"]


CHECKED = """
[workflows.row]
phases = [{ key = "one", gates = [{ kind = "command", command = "test -e ok.py" }] }]
"""


def test_under_a_runner_an_agent_is_not_held_once_the_files_of_a_gate_have_changed(tmp_path):
    place = Place(tmp_path / "checked", settings=CHECKED)
    place.detent("start", "row", "Add search")
    place.run("gate", "run", "command")
    agent = Agent(place, "one")
    assert "command of one is FAIL" in agent.blocked()

    place.write("other.py", "x = 1\n")

    assert agent.blocked() == ""
