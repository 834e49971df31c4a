"""The task lists of the clients are kept in step with the phases."""

from itertools import pairwise

import pytest

from tests.clients import claude_code
from tests.clients.scripts import Call, do, say
from tests.clients.workplace import delegate, play, results, set_up

#: Newer models have the tools only if they are asked for.
TASK_TOOLS = {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}
TODO_TOOL = {**TASK_TOOLS, "CLAUDE_CODE_ENABLE_TASKS": "0"}
PHASES = ("--phase", "Find it:planning-agent", "--phase", "Mend it:code-developer", "--phase", "Check it:reviewer")
IN_STEP = "keep it in step with the workflow"
claude_only = pytest.mark.parametrize("kind", [claude_code], ids=["claude-code"])


def create(subject):
    return do(Call("TaskCreate", {"subject": subject, "description": "x", "activeForm": f"Working on {subject}"}))


def update(task, status):
    return do(Call("TaskUpdate", {"taskId": task, "status": status}))


def todo(*entries):
    todos = [{"content": title, "status": status, "activeForm": f"Working on {title}"} for title, status in entries]
    return do(Call("TodoWrite", {"todos": todos}))


def corrections(stage):
    """How often the model had been told the list of the phases, at each of its requests."""
    counts = [request.told.count(IN_STEP) for request in stage.server.conversation("main")]
    return [after - before for before, after in pairwise(counts)]


@claude_only
def test_a_task_is_not_completed_before_its_phase(stage):
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")

    play(
        stage,
        "[[S:main]] go",
        {"main": [create("Plan"), update("1", "completed"), say("done")]},
        env=TASK_TOOLS,
    )

    assert "Plan is in progress. It is completed when" in results(stage)[1].text


@claude_only
def test_tasks_that_contradict_the_phases_are_answered_with_the_list(stage):
    """Created and updated tasks are judged as the entries of TodoWrite are."""
    set_up(stage, "adhoc", "Mend the sum", *PHASES)

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                create("Mend it"),  # pending, as its phase
                create("Buy milk"),  # no phase
                update("1", "in_progress"),  # too early
                create("Find it"),  # its phase is in progress already
                update("3", "in_progress"),  # now in step
                say("done"),
            ]
        },
        env=TASK_TOOLS,
    )

    assert corrections(stage) == [0, 0, 1, 1, 0]
    assert "- Find it: in_progress (activeForm: Working on Find it)" in stage.server.told("main")
    assert "- Mend it: pending" in stage.server.told("main")


@claude_only
def test_a_todo_list_that_contradicts_the_phases_is_answered_with_the_list(stage):
    set_up(stage, "adhoc", "Mend the sum", *PHASES)

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                todo(("Find it", "in_progress"), ("Mend it", "pending"), ("Buy milk", "completed")),
                todo(("Find it", "completed"), ("Mend it", "in_progress")),
                say("done"),
            ]
        },
        env=TODO_TOOL,
    )

    assert corrections(stage) == [0, 1]


def test_the_caller_of_an_agent_is_told_the_new_list_when_the_agent_has_ended(stage):
    """In Codex the end of an agent reaches no model, so the call that waits for the agent is answered with the list."""
    set_up(stage, "adhoc", "Mend the sum", *PHASES)
    delegating = delegate(stage, "phase_0", "planning-agent", "[[S:finder]] look")

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [*delegating, say("enough for today")],
            "finder": [stage.kind.hand_back("Summary: The sum is off by one\nContext for next: only add() is wrong")],
        },
    )

    *before, last = [request.told for request in stage.server.conversation("main")]
    assert not any("- Find it: completed" in told for told in before)
    assert "- Find it: completed (activeForm: Working on Find it)" in last
    assert "- Mend it: pending" in last
    assert "Next: Mend it (code-developer). From phase_0: only add() is wrong" in last
