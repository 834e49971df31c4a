"""Work is delegated to the phase in progress and to no other."""

from tests.clients.scripts import do, say
from tests.clients.workplace import DETENT, delegate, play, results, set_up, statuses

DELEGATED = """\
[workflows.relay]
phases = [{ key = "PLAN", gates = [{ kind = "delegation" }] }, { key = "IMPLEMENT" }]
"""


def test_a_later_phase_cannot_be_delegated_and_the_model_is_told_the_way_out(stage):
    """Claude Code tells which agent is meant; elsewhere the text does: `Phase key: X`, or the key as a word."""
    set_up(stage, "plan-implement-review", "Add login")

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                delegate(stage, "IMPLEMENT", "code-developer", "[[S:sub]] build it")[0],
                stage.kind.delegate("[[S:sub]] began IMPLEMENT, build it")[0],
                say("held back"),
            ]
        },
    )

    for denied in results(stage):
        assert "phase IMPLEMENT, which is pending" in denied.text
        assert "the current phase is PLAN (in_progress)" in denied.text
        assert "finish PLAN, then detent begin IMPLEMENT" in denied.text
    assert len(results(stage)) == 2
    assert stage.server.conversation("sub") == []
    assert statuses(stage) == {"PLAN": "in_progress", "IMPLEMENT": "pending", "REVIEW": "pending"}


def test_the_phase_in_progress_can_be_delegated_and_its_gate_opens_when_the_agent_has_run(stage):
    """The phase is not finished by that: this workflow is driven by hand."""
    set_up(stage, "relay", "Add login", toml=DELEGATED)
    finish = do(stage.kind.shell(f"{DETENT} finish PLAN -m planned"))

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                finish,
                *delegate(stage, "PLAN", "planning-agent", "[[S:sub]] plan it"),
                finish,
                say("planned"),
            ],
            "sub": [stage.kind.hand_back("Summary: the plan stands")],
        },
    )

    told = results(stage)
    assert "planning-agent has not run" in told[0].text
    assert "the plan stands" in stage.server.told("main")
    assert "finished 1 of 2 PLAN" in told[-1].text
    assert statuses(stage) == {"PLAN": "completed", "IMPLEMENT": "pending"}
