"""A phase with a tests gate: stopping is held until the tests have passed, as seen in the agent's own shell."""

import sys

from tests.clients.scripts import do, say
from tests.clients.workplace import DETENT, journal, play, results, set_up, state, statuses

WORKFLOW = """\
[workflows.build]
phases = [
    { key = "build", agent = "builder", gates = [{ kind = "tests", inputs = ["*.py"] }] },
    { key = "ship", agent = "shipper" },
]
"""
TESTS = f"{sys.executable} -m unittest"
FIX = "sed -i 's/a - b/a + b  # mended/' calc.py"


def test_a_closed_gate_holds_the_stop_until_the_tests_pass(stage):
    set_up(stage, "build", "Add numbers", toml=WORKFLOW)
    (stage.project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (stage.project / "test_calc.py").write_text(
        "import unittest\nfrom calc import add\n\n\nclass Adding(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n"
    )

    first = play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                say("done"),
                do(stage.kind.shell(TESTS)),
                say("done, whatever the tests say"),
                do(stage.kind.shell(FIX)),
                do(stage.kind.shell(TESTS)),
                say("done"),
            ]
        },
    )
    play(
        stage,
        "[[S:finish]] finish it",
        {"finish": [do(stage.kind.shell(f"{DETENT} finish build -m 'adds numbers'")), say("finished")]},
        resume=first.session_id,
    )

    asked = stage.server.conversation("main")
    assert len(asked) == 6  # two stops were held, the third one was not
    assert "tests of build is PENDING: no run yet" in asked[1].told
    # The run is recorded while the client goes on; the stop that follows waits for that.
    assert "The work is not done: tests of build is FAIL: run 1 of 10 failed" in asked[3].told
    receipts = [event["receipt"] for event in journal(stage) if event["type"] == "gate_checked"]
    assert [(one["result"], one["by"]) for one in receipts] == [("failed", "seen"), ("passed", "seen")]
    assert "finished 1 of 2 build" in results(stage, "finish")[-1].text
    assert statuses(stage)["build"] == "completed"


def test_an_agent_that_insists_is_let_go_and_a_person_is_asked(stage):
    """Three stops are held. What a client says about earlier ones is not counted on: Gemini forgets them."""
    set_up(stage, "build", "Add numbers", toml=WORKFLOW)

    play(
        stage,
        "[[S:main]] go",
        {"main": [say("one"), say("two"), do(stage.kind.shell("echo hm")), say("three"), say("four")]},
    )

    [escalation] = state(stage)["pending_escalations"]
    assert len(stage.server.conversation("main")) == 5
    assert escalation["type"] == "stop_blocked"
    assert "the agent stopped 3 times with closed gates" in stage.detent("why")


def test_the_agent_hears_the_verdict_on_its_run_with_its_next_call(stage):
    """The run is recorded while the client goes on; the second call leaves enough time for that."""
    set_up(stage, "build", "Add numbers", toml=WORKFLOW)
    (stage.project / "test_it.py").write_text(
        "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self): ...\n"
    )

    play(
        stage,
        "[[S:main]] go",
        {"main": [do(stage.kind.shell(TESTS)), do(stage.kind.shell("sleep 5")), say("done")]},
    )

    first, _, after = stage.server.conversation("main")[:3]
    assert "Detent: tests of build is PASS" in after.told
    assert "Detent: tests of build is PASS" not in first.told
