"""`detent run` drives the real client through a whole session, and a gate that fails makes it mend its work."""

import json
import os
import shutil
import signal

import pytest

from detent.process.marked import marked
from tests.clients import claude_code, codex, gemini_cli
from tests.clients.running import GATE, UNASKED, checkpoints, end_of, git, run, session, set_up
from tests.clients.scripts import Turn, do, say, wait_until
from tests.clients.workplace import journal, read

TOOLS = {
    claude_code: ["Write", "Write", "Read", "Write"],
    codex: ["apply_patch", "apply_patch", "apply_patch"],
    gemini_cli: ["write_file", "write_file", "read_file", "write_file"],
}


def requests(agent, tools):
    """Every call makes one more request to the model, and so do the last words of each turn."""
    return len(tools) + (2 if agent == "builder@build" else 1)


def mending(stage):
    """The model looks at the file and writes it anew, if it was told what failed; otherwise it only talks."""

    def mend(request) -> Turn:
        return do(stage.kind.write("answer.txt", "42\n")) if GATE in request.told else say("I was told nothing.")

    looked = read(stage, "answer.txt")
    return [*([do(looked)] if looked else []), mend]


def test_a_run_mends_what_the_gate_found_and_records_what_the_client_used(stage):
    set_up(stage)
    stage.server.play(
        {
            "main": [
                do(stage.kind.write("plan.md", "a plan\n")),
                say("Summary: planned\nDeliverables: plan.md\nContext for next: the answer is a number"),
                do(stage.kind.write("answer.txt", "41\n")),
                say("Summary: wrote the answer"),
                *mending(stage),
                say("Summary: mended the answer\nDeliverables: answer.txt"),
            ]
        }
    )

    with run(stage) as running:
        exit_code, told = end_of(running)

    assert exit_code == 0, told
    assert session(stage)["status"] == "completed"
    assert [(phase["status"], phase["attempt"]) for phase in session(stage)["phases"]] == [("completed", 1)] * 2
    receipts = [event["receipt"] for event in journal(stage) if event["type"] == "gate_checked"]
    assert [one["result"] for one in receipts] == ["failed", "passed"]
    assert "the answer is a number" in stage.server.conversation("main")[2].told
    assert (stage.project / "answer.txt").read_text() == "42\n"
    taken = {path.stem: json.loads(path.read_text())["agent_states"] for path in checkpoints(stage)}
    assert sorted(taken) == ["POST_build_v1", "POST_plan_v1"]
    for agent, tools in (("planner@plan", TOOLS[stage.kind][:1]), ("builder@build", TOOLS[stage.kind][1:])):
        used = taken["POST_build_v1"][agent]
        assert used["token_usage"]["input"] == 100 * requests(agent, tools)
        assert used["token_usage"]["output"] == 10 * requests(agent, tools)
        assert [each["tool"] for each in used["tool_invocations"]] == tools
        assert all(each["input"].endswith((".md", ".txt")) for each in used["tool_invocations"])


def test_the_shell_of_an_agent_in_a_run_has_this_detent_on_its_path(stage):
    """A login shell would set PATH anew."""
    set_up(stage, *UNASKED[stage.kind])
    asked = do(stage.kind.shell("detent status --json"))
    stage.server.play(
        {
            "main": [
                asked,
                say("Summary: planned"),
                do(stage.kind.write("answer.txt", "42\n")),
                say("Summary: wrote the answer\nDeliverables: answer.txt"),
            ]
        }
    )

    with run(stage) as running:
        exit_code, told = end_of(running)

    assert exit_code == 0, told
    assert '"session"' in stage.server.conversation("main")[1].told


def test_hooks_in_the_client_do_not_stand_in_the_way_of_a_run(stage):
    """They may hold a stop while the gate is closed; then the model mends its work in the same turn."""

    def script(_request):
        yield do(stage.kind.write("plan.md", "a plan\n"))
        yield say("Summary: planned")
        yield do(stage.kind.write("answer.txt", "41\n"))
        request = yield say("Summary: wrote the answer")
        for step in mending(stage):
            request = yield step(request) if callable(step) else step
        while True:
            yield say("Summary: mended the answer")

    set_up(stage, hooked=True)
    stage.server.play({"main": script})

    with run(stage) as running:
        exit_code, told = end_of(running)

    assert exit_code == 0, told
    assert session(stage)["status"] == "completed"
    assert (stage.project / "answer.txt").read_text() == "42\n"
    assert [event for event in journal(stage) if event["type"].startswith("escalat")] == []
    assert not (stage.project / ".workflow/hook-failures.log").exists()


def test_a_run_that_is_interrupted_leaves_nothing_running_and_goes_on_later(stage):
    set_up(stage, *UNASKED[stage.kind])
    stage.server.play({"main": [do(stage.kind.shell("env > begun; sleep 600"))]})
    begun, mark = stage.project / "begun", f"DETENT_STATE={stage.project}/.workflow"
    with run(stage) as running:
        assert wait_until(lambda: begun.exists() and mark in begun.read_text(), timeout_s=60)
        was_running = len(marked(mark))

        running.send_signal(signal.SIGINT)
        exit_code, told = end_of(running)

    assert exit_code == 130, told
    assert was_running >= 2  # the client and what it runs
    assert marked(mark) == []
    assert session(stage)["status"] == "active"

    stage.server.play({"main": [say("Summary: planned"), do(stage.kind.write("answer.txt", "42\n")), say("done")]})
    with run(stage) as running:
        exit_code, told = end_of(running)

    assert exit_code == 0, told
    assert session(stage)["status"] == "completed"


SPOIL = "echo spoilt >> .workflow/WFS-find-the-answer/journal.jsonl; echo spoilt >> detent.toml; echo $?"


@pytest.mark.skipif(shutil.which("bwrap", path=os.defpath) is None, reason="there is no sandbox")
def test_a_client_works_in_the_sandbox_with_its_hooks_and_spoils_nothing(stage):
    set_up(stage, *UNASKED[stage.kind], hooked=True)
    toml = stage.project / "detent.toml"
    toml.write_text(toml.read_text().replace("[run]\n", '[run]\nsandbox = "required"\n'))
    git(stage, "commit", "-qam", "required")
    before = toml.read_text()
    stage.server.play(
        {
            "main": [
                do(stage.kind.shell(SPOIL)),
                do(stage.kind.shell("detent note 'from inside' --kind ideas --name inside")),
                say("Summary: planned"),
                do(stage.kind.write("answer.txt", "42\n")),
                say("Summary: wrote the answer\nDeliverables: answer.txt"),
            ]
        }
    )

    with run(stage) as running:
        exit_code, told = end_of(running)

    assert exit_code == 0, told
    assert toml.read_text() == before
    launched = [event for event in journal(stage) if event["type"] == "agent_launched"]
    assert [event.get("sandboxed") for event in launched] == [True, True]
    [folder] = stage.project.glob(".workflow/WFS-*")
    assert (folder / ".brainstorming/inside.md").exists()
    assert not (stage.project / ".workflow/hook-failures.log").exists()
    if stage.kind is not codex:
        # Codex runs hooks only after a person approved them.
        assert "answer.txt" in (folder / ".process/written").read_text()
