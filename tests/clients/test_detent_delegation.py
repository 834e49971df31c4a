"""In a workflow that is driven by delegation an agent's start begins its phase, and its end finishes it."""

import pytest

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.scripts import say, wait_until
from tests.clients.workplace import delegate, journal, play, set_up, state, statuses

PHASES = ("--phase", "Find it:planning-agent", "--phase", "Mend it:code-developer", "--phase", "Check it:reviewer")
FOUND = """\
I have looked everywhere.

Status: completed
Summary: The sum is off by one
Deliverables: calc.py, notes/cause.md
Context for next: Only add() is wrong"""


def only(*kinds):
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.NAME)


@only(claude_code)
def test_a_background_agent_finishes_its_phase_when_it_ends(stage):
    """It is launched and said to be (async_launched), the session stops, and the agent's end comes as SubagentStop."""
    set_up(stage, "adhoc", "Mend the sum", *PHASES)
    stage.record(user=True)
    seen = []

    def after_the_main_stop(request):
        assert wait_until(lambda: stage.events("Stop") != [])
        seen.append(statuses(stage)["phase_0"])
        return stage.kind.hand_back(FOUND)

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                *delegate(stage, "phase_0", "planning-agent", "[[S:finder]] look", background=True),
                say("waiting for it"),
                *delegate(stage, "phase_1", "code-developer", "[[S:mender]] mend"),
                say("enough for today"),
            ],
            "finder": [after_the_main_stop],
            "mender": [stage.kind.hand_back("Summary: Mended")],
        },
    )

    launched, _ = stage.events("PostToolUse", tool_name="Agent")
    assert launched["tool_response"]["status"] == "async_launched"
    assert seen == ["in_progress"]
    _assert_found_and_mended(stage)


@only(codex, gemini_cli)
def test_an_agent_finishes_its_phase_when_it_was_waited_for(stage):
    """Codex: an agent runs beside the session, which waits for it with a call of its own; its end is SubagentStop.

    Gemini has no agents in the background and no event of an agent's end: the end of the call (AfterTool) counts.
    """
    set_up(stage, "adhoc", "Mend the sum", *PHASES)

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                *delegate(stage, "phase_0", "planning-agent", "[[S:finder]] look"),
                *delegate(stage, "phase_1", "code-developer", "[[S:mender]] mend"),
                say("enough for today"),
            ],
            "finder": [stage.kind.hand_back(FOUND)],
            "mender": [stage.kind.hand_back("Summary: Mended")],
        },
    )

    _assert_found_and_mended(stage)


@only(codex)
def test_an_agent_that_nobody_waited_for_leaves_its_phase_in_progress(stage):
    """Codex ends it with the session and tells no hook: Detent does not know, and does not count the phase as done."""
    set_up(stage, "adhoc", "Mend the sum", *PHASES)
    stage.record(user=True)

    def never(request):
        wait_until(lambda: stage.events("SessionEnd") != [], timeout_s=10)
        return say("too late")

    def once_it_runs(request):
        assert wait_until(lambda: stage.server.conversation("finder") != [])
        return say("enough for today")

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                *delegate(stage, "phase_0", "planning-agent", "[[S:finder]] look", background=True),
                once_it_runs,
            ],
            "finder": [never],
        },
    )

    assert statuses(stage)["phase_0"] == "in_progress"
    assert [event["type"] for event in journal(stage)].count("agent_launched") == 1


@only(claude_code)
def test_a_helper_of_the_phases_agent_does_not_finish_the_phase(stage):
    set_up(stage, "adhoc", "Mend the sum", *PHASES)
    seen = []

    def after_the_helper(request):
        seen.append(statuses(stage)["phase_0"])
        return stage.kind.hand_back(FOUND)

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [*delegate(stage, "phase_0", "planning-agent", "[[S:finder]] look"), say("enough for today")],
            "finder": [*stage.kind.delegate("[[S:helper]] list the files"), after_the_helper],
            "helper": [stage.kind.hand_back("Summary: there are two files")],
        },
    )

    assert seen == ["in_progress"]
    assert state(stage)["phases"]["phase_0"]["summary"] == "The sum is off by one"


def test_an_agent_that_reports_failure_fails_its_phase(stage):
    set_up(stage, "adhoc", "Mend the sum", *PHASES)

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [*delegate(stage, "phase_0", "planning-agent", "[[S:finder]] look"), say("enough for today")],
            "finder": [stage.kind.hand_back("Status: failed\nSummary: Nothing to be found")],
        },
    )

    assert statuses(stage) == {"phase_0": "failed", "phase_1": "pending", "phase_2": "pending"}


def _assert_found_and_mended(stage):
    found = state(stage)["phases"]["phase_0"]
    assert statuses(stage) == {"phase_0": "completed", "phase_1": "completed", "phase_2": "pending"}
    assert found["summary"] == "The sum is off by one"
    assert found["deliverables"] == ["calc.py", "notes/cause.md"]
    assert found["context_for_next"] == "Only add() is wrong"
    assert state(stage)["phases"]["phase_1"]["summary"] == "Mended"
