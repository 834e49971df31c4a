"""`detent run` with a real client: what it pays for and counts, when it waits, and when it gives up."""

import json
import signal

import pytest

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.running import GATE, UNASKED, end_of, played, run, session, set_up, used
from tests.clients.scripts import Call, busy, do, refuse, reject, say, wait_until
from tests.clients.workplace import journal, read

#: Tokens of an answer of the scripted server.
INPUT, OUTPUT = 100, 10
WAIT_S = 3
#: Codex asks hooks only after a person approved them.
TRUSTED = {codex: ("--dangerously-bypass-hook-trust",)}


def answers(number):
    return {"input": number * INPUT, "output": number * OUTPUT}


def the_rest(stage):
    """A plan and an answer, without a detour."""
    return [say("Summary: planned"), do(stage.kind.write("answer.txt", "42\n")), say("Summary: wrote the answer")]


def set_attempts(stage, number):
    toml = stage.project / "detent.toml"
    toml.write_text(toml.read_text().replace("[run]\n", f"[run]\nattempts = {number}\n"))


def ask_once(stage):
    """Gemini CLI asks a busy service ten times by itself, for minutes."""
    if stage.kind is gemini_cli:
        path = stage.client.home / gemini_cli.PROJECT_SETTINGS
        known = json.loads(path.read_text())
        path.write_text(json.dumps({**known, "general": {**known["general"], "maxAttempts": 1}}))


def test_a_busy_service_is_given_the_time_that_it_asks_for_and_costs_no_attempt(stage):
    set_up(stage, *UNASKED[stage.kind], more="retries = 0\nbackoff_s = 0.01\n")
    ask_once(stage)
    own = 1 if stage.kind is gemini_cli else 2  # the others ask once more by themselves
    stage.server.play({"main": [*[busy(WAIT_S)] * own, *the_rest(stage)]})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    [pause] = [event for event in events if event["type"] == "retrying"]
    # Codex tells the wait by waiting itself; its clock is not ours.
    assert pause["pause_s"] > WAIT_S * 0.8
    assert [(phase["status"], phase["attempt"]) for phase in session(stage)["phases"]] == [("completed", 1)] * 2


def test_a_turn_that_is_never_answered_waits_for_a_person_in_the_same_attempt(stage):
    set_up(stage, *UNASKED[stage.kind], more="retries = 0\nbackoff_s = 0.01\n")
    set_attempts(stage, 2)
    ask_once(stage)
    stage.server.play({"main": [busy(1)] * 8})

    exit_code, _ = played(stage)

    assert exit_code == 6
    recorded = [event for event in journal(stage) if event["type"] in ("phase_failed", "escalation_raised")]
    assert [event.get("kind") for event in recorded] == ["agent_transient"]
    assert session(stage)["phases"][0]["attempt"] == 1


def test_stop_is_not_held_under_a_runner_once_the_inputs_of_a_gate_changed(stage):
    """The verdict is about the files before the change, so a held stop would only cost requests."""
    set_up(stage, *UNASKED[stage.kind], *TRUSTED.get(stage.kind, ()), hooked=True)
    looked = read(stage, "answer.txt")
    mending = [*([do(looked)] if looked else []), do(stage.kind.write("answer.txt", "42\n")), say("Summary: mended")]
    stage.server.play(
        {
            "main": [
                say("Summary: planned"),
                do(stage.kind.write("answer.txt", "41\n")),
                say("Summary: wrote the answer"),
                *mending,
            ]
        }
    )

    exit_code, events = played(stage)

    assert exit_code == 0, events
    receipts = [event["receipt"]["result"] for event in journal(stage) if event["type"] == "gate_checked"]
    assert receipts == ["failed", "passed"]
    # One request for each step of the script and none more; every one of them is counted.
    assert len(stage.server.requests) == 3 + len(mending)
    assert used(stage) == [answers(1), answers(2 + len(mending))]
    assert GATE in stage.server.conversation("main")[3].told


def test_stop_is_held_under_a_runner_while_the_gate_failed_on_the_present_files(stage):
    set_up(stage, *UNASKED[stage.kind], *TRUSTED.get(stage.kind, ()), hooked=True)
    stage.server.play(
        {
            "main": [
                say("Summary: planned"),
                do(stage.kind.write("answer.txt", "41\n")),
                say("Summary: wrote the answer"),
                say("Summary: I think that it is right"),
                do(stage.kind.shell("echo 42 > answer.txt")),
                say("Summary: mended the answer"),
            ]
        }
    )

    exit_code, events = played(stage)

    assert exit_code == 0, events
    turns = [event for event in events if event["type"] == "turn_started" and event["phase"] == "build"]
    assert len(turns) == 2
    assert "The work is not done" in stage.server.conversation("main")[4].told


def test_the_tokens_of_sub_agents_are_counted(stage):
    set_up(stage, *UNASKED[stage.kind])
    delegating = stage.kind.delegate("[[S:sub]] help")
    helping = [do(stage.kind.shell("echo hi")), stage.kind.hand_back("Summary: helped")]
    stage.server.play({"main": [*delegating, *the_rest(stage)], "sub": helping})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert used(stage) == [answers(len(delegating) + 1 + len(helping)), answers(2)]


def test_the_tokens_of_a_turn_that_failed_are_counted(stage):
    set_up(stage, *UNASKED[stage.kind], more="retries = 0\n")
    set_attempts(stage, 1)

    def script(_request):
        yield do(stage.kind.write("plan.md", "a plan\n"))
        while True:  # some clients ask again
            yield reject()

    stage.server.play({"main": script})

    exit_code, _ = played(stage)

    assert exit_code == 6
    assert used(stage) == [answers(1)]


def working_for_ever(stage):
    """A command that outlasts every limit, after a first answer."""
    command = stage.kind.shell("touch begun; sleep 600")
    if stage.kind is codex:  # it hands a long command back to the model otherwise
        command = Call(command.tool, {**command.input, "yield_time_ms": 60_000})
    return [do(stage.kind.write("plan.md", "a plan\n")), do(command)]


def test_the_tokens_of_a_turn_that_was_ended_at_its_time_limit_are_counted(stage):
    set_up(stage, *UNASKED[stage.kind], more="timeout_minutes = 0.2\n")
    set_attempts(stage, 1)
    stage.server.play({"main": working_for_ever(stage)})

    exit_code, events = played(stage)

    assert exit_code == 6, events
    assert [event["kind"] for event in journal(stage) if event["type"] == "escalation_raised"] == ["agent_timeout"]
    assert used(stage) == [answers(2)]


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_the_tokens_of_a_turn_that_ended_with_its_run_are_counted(stage, way):
    set_up(stage, *UNASKED[stage.kind])
    stage.server.play({"main": working_for_ever(stage)})
    with run(stage) as running:
        assert wait_until((stage.project / "begun").exists, timeout_s=60)
        # The client writes its record after it has begun the tool.
        assert wait_until(lambda: len(stage.server.requests) == 2)
        running.send_signal(way)
        end_of(running)
    stage.server.play({"main": the_rest(stage)})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert used(stage) == [answers(2), answers(1), answers(2)]


def test_a_refusal_is_no_reason_for_another_attempt(stage):
    """Gemini CLI asks four times by itself, and does not tell that the service blocks the request."""
    set_up(stage, *UNASKED[stage.kind])
    stage.server.play({"main": [refuse()] * 4})

    exit_code, _ = played(stage)

    assert exit_code == 6
    [raised] = [event for event in journal(stage) if event["type"] == "escalation_raised"]
    assert raised["kind"] == "agent_refused"
    assert session(stage)["phases"][0]["attempt"] == 1
    words = {claude_code: "flagged", codex: "content_filter", gemini_cli: "PROHIBITED_CONTENT"}
    assert words[stage.kind] in raised["detail"]
