"""The task list of Claude Code is kept in step with the phases."""

import pytest

from tests.clients import claude_code
from tests.clients.scripts import Call, do, say
from tests.clients.workplace import play, results, set_up


@pytest.mark.parametrize("kind", [claude_code], ids=["claude-code"])
def test_a_task_is_not_completed_before_its_phase(stage):
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                do(Call("TaskCreate", {"subject": "Plan", "description": "the plan", "activeForm": "Planning"})),
                do(Call("TaskUpdate", {"taskId": "1", "status": "completed"})),
                say("done"),
            ]
        },
        # Newer models have the tools only if they are asked for.
        env={"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"},
    )

    assert "Plan is in progress. It is completed when" in results(stage)[1].text
