"""Who decides, in the shells of real clients: their marks, and what Detent sees of the processes above it."""

import re

from detent.clients.registry import CLIENTS
from detent.core.actor import ActorKind
from detent.engine.project import open_project
from tests.clients import codex
from tests.clients.scripts import do, say
from tests.clients.workplace import DETENT, play, results, set_up

GATED = """\
[workflows.release]
phases = [{ key = "release", agent = "release-manager", gates = [{ kind = "approval" }] }]
"""
#: What the hook cannot see: it is in a file, without a mark, and in the place of the agent's shell.
CLEAN = f'exec env -i PATH="$PATH" HOME="$HOME" {DETENT}'


def test_the_shell_of_an_agent_has_the_marks_that_are_looked_for(stage):
    set_up(stage, "release", "Ship it", toml=GATED)

    play(
        stage, "[[S:main]] go", {"main": [do(stage.kind.shell("env | cut -d= -f1 | sort | tr '\\n' ' '")), say("done")]}
    )

    names = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", results(stage)[0].text))
    marks = set(CLIENTS[stage.kind.NAME].marks)
    if stage.kind is codex:
        assert names >= {"CODEX_THREAD_ID", "CODEX_CI"}
    assert names & marks


def test_a_script_that_removes_the_marks_is_still_the_agents(stage):
    set_up(stage, "release", "Ship it", toml=GATED)
    (stage.project / "ok.sh").write_text(f"{CLEAN} approve release -m fine\n")
    (stage.project / "note.sh").write_text(f"{CLEAN} checkpoint create here\n")

    play(
        stage,
        "[[S:main]] go",
        {"main": [*(do(stage.kind.shell(f"bash {name}.sh")) for name in ("ok", "note")), say("held back")]},
    )

    assert "approve is a person's decision, and this is an agent's shell" in results(stage)[0].text
    with open_project(stage.project) as project:
        commits = list(project.session().log())
    assert [commit.actor.kind for commit in commits[1:]] == [ActorKind.AGENT], results(stage)[1].text
