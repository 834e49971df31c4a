"""Ways to give work away that are no call of a sub-agent: a script, and a message to an agent that has ended."""

import pytest

from tests.clients import claude_code, codex
from tests.clients.scripts import Call, do, say
from tests.clients.workplace import play, results, set_up

SCRIPT = "export const meta = { name: 'x', description: 'y' }\nawait agent('Phase key: REVIEW. Review the code.')\n"
DENIED = "phase REVIEW, which is pending"


@pytest.mark.parametrize("kind", [claude_code], ids=["claude-code"])
@pytest.mark.parametrize(
    "call",
    [
        Call("Workflow", {"script": SCRIPT}),
        Call("SendMessage", {"to": "helper", "message": "Phase key: REVIEW. Review the code.", "summary": "review"}),
    ],
    ids=lambda call: call.tool,
)
def test_a_later_phase_is_not_given_away_by_a_script_or_a_message(stage, call):
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")

    play(stage, "[[S:main]] go", {"main": [do(call), say("done")]})

    assert DENIED in results(stage)[0].text


@pytest.mark.parametrize("kind", [codex], ids=["codex"])
def test_a_later_phase_is_not_given_away_by_a_message_in_codex(stage):
    set_up(stage, "plan-implement-review", "Add login", toml="gates = 'strict'\n")
    call = Call("multi_agent_v1/send_input", {"target": "a-1", "message": "Phase key: REVIEW\nReview the code."})

    play(stage, "[[S:main]] go", {"main": [do(call), say("done")]})

    assert DENIED in results(stage)[0].text
