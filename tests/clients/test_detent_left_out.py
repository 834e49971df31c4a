"""Claude Code starts no interpreter after most shell calls: nothing that its hook would have seen is lost."""

import sys

import pytest

from tests.clients import claude_code
from tests.clients.scripts import do, say
from tests.clients.workplace import journal, play, set_up

WORKFLOW = '[workflows.build]\nphases = [{ key = "build", agent = "builder", gates = [{ kind = "tests" }] }]\n'
TESTS = f"{sys.executable} -m unittest"
CHANGE = "import pathlib; pathlib.Path('.work' + 'flow', 'state' + '.json').write_text('x')\n"


@pytest.fixture(autouse=True)
def _in_claude_code(stage):
    if stage.kind is not claude_code:
        pytest.skip("only the launcher of Claude Code leaves a hook out")


def test_a_change_by_a_program_is_told_with_the_next_call(stage):
    set_up(stage, "build", "Add numbers", toml=WORKFLOW)
    (stage.project / "helper.py").write_text(CHANGE)
    shell = stage.kind.shell

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                *(do(shell("echo hi")), do(shell(f"{sys.executable} helper.py")), do(shell("echo ho"))),
                *(say("done") for _ in range(4)),
            ]
        },
    )

    asked = stage.server.conversation("main")
    assert "state.json.rejected-1" not in asked[2].told
    assert "state.json.rejected-1" in asked[3].told


def test_test_runs_beside_other_calls_are_all_seen(stage):
    set_up(stage, "build", "Add numbers", toml=WORKFLOW)
    (stage.project / "test_it.py").write_text(
        "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self): ...\n"
    )
    shell = stage.kind.shell

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                do(shell("echo hi"), shell(TESTS), shell("ls"), shell(f"{TESTS} -v")),
                do(shell("ls")),
                *(say("done") for _ in range(4)),
            ]
        },
    )

    receipts = [event["receipt"]["by"] for event in journal(stage) if event["type"] == "gate_checked"]
    assert receipts == ["seen", "seen"]
    assert not (stage.project / ".workflow/.expected").exists()
