"""A review by a second real client: the one that did the work cannot review it, another one can."""

import pytest

from tests.clients.client import CLIENTS, Client
from tests.clients.recorder import Recorder
from tests.clients.scripts import do, say
from tests.clients.stage import Stage
from tests.clients.workplace import DETENT, journal, play, results, set_up

WORKFLOW = """\
[workflows.build]
phases = [
    { key = "build", agent = "builder", gates = [{ kind = "review" }, { kind = "approval" }] },
    { key = "ship", agent = "shipper" },
]
"""
REPORT = f"{DETENT} gate report review --compliant -m 'read calc.py, it adds'"
OTHER_MARKS = "env CODEX_THREAD_ID=1 CLAUDECODE=1 GEMINI_CLI=1"


@pytest.fixture
def reviewer(kind, installed, server, stage, tmp_path):
    """The next of the clients, in a home of its own, in the same project."""
    other = CLIENTS[(CLIENTS.index(kind) + 1) % len(CLIENTS)]
    home = tmp_path / "reviewer"
    home.mkdir()
    return Stage(Client(other, installed(other), home), stage.project, server, Recorder(tmp_path / "hook-2"))


def reviews(stage):
    checks = (event for event in journal(stage) if event["type"] == "gate_checked")
    return [event["receipt"]["review"] for event in checks]


def test_the_author_is_refused_and_another_client_reviews(stage, reviewer):
    set_up(stage, "build", "Add numbers", toml=WORKFLOW)
    reviewer.detent("init", "--agent", reviewer.kind.NAME)
    code = "def add(a, b):\n    return a + b\n"

    play(
        stage,
        "[[S:author]] go",
        {
            "author": [
                do(stage.kind.write("calc.py", code)),
                do(stage.kind.shell(REPORT)),
                do(stage.kind.shell(f"{OTHER_MARKS} {REPORT}")),
                say("done"),
            ]
        },
    )
    assert (stage.project / "calc.py").read_text() == code
    refused = [result.text for result in results(stage, "author")[1:]]
    assert all(f"{stage.kind.NAME} did the work itself" in text for text in refused), refused
    assert reviews(stage) == []

    play(
        reviewer,
        "[[S:review]] review it",
        {"review": [do(reviewer.kind.shell("cat calc.py")), do(reviewer.kind.shell(REPORT)), say("reviewed")]},
    )
    [review] = reviews(stage)
    assert review["reviewer"]["client"] == reviewer.kind.NAME
    assert [author["client"] for author in review["authors"]] == [stage.kind.NAME]
    gates = " ".join(stage.detent("gates").split())
    assert f"PASS review: {reviewer.kind.NAME} reviewed the work of {stage.kind.NAME}: read calc.py, it adds" in gates
    # No person has agreed, and a review of an agent is no agreement.
    assert "PENDING approval" in gates

    (stage.project / "calc.py").write_text(f"{code}# changed\n")
    assert "STALE review" in " ".join(stage.detent("gates").split())
