"""`detent run` drives every client by ACP: gates, questions, cancellation, resume, the guard, tokens and budgets."""

import json
import os
import shutil
import signal
import time

import pytest

from tests.clients import claude_code, gemini_cli
from tests.clients.acp import set_up, writing_shell
from tests.clients.client import ClientUnavailable
from tests.clients.running import GATE, end_of, played, run, session, used
from tests.clients.scripts import busy, do, reject, say, wait_until
from tests.clients.workplace import journal, read

#: Tokens of an answer of the scripted server.
INPUT, OUTPUT = 100, 10
#: Seconds of an answer where it matters that a model does not answer at once.
ANSWER_S = 0.5


@pytest.fixture
def agent(stage):
    """Sets the project up, or skips."""

    def make(**options):
        try:
            set_up(stage, **options)
        except ClientUnavailable as why:
            pytest.skip(str(why))
        return stage

    return make


def billed(stage):
    """All that the server was asked: the scripted requests that it answered, and the client's own, such as titles."""
    number = len(stage.server.requests) + len(stage.server.asides)
    return {"input": number * INPUT, "output": number * OUTPUT}


def total(stage):
    attempts = used(stage)
    return {name: sum(each[name] for each in attempts) for name in ("input", "output")}


def the_rest(stage):
    return [say("Summary: planned"), do(stage.kind.write("answer.txt", "42\n")), say("Summary: wrote the answer")]


def iter_steps(stage):
    """The rest, for a script that is a generator."""
    for step in the_rest(stage):
        _request = yield step


def heard(stage):
    """All that the model was ever told."""
    return "\n".join(request.told for request in stage.server.conversation("main"))


def asked(stage):
    """Whether an agent waits for a person."""
    journals = stage.project.glob(".workflow/WFS-*/journal.jsonl")
    return any("question_asked" in journal.read_text() for journal in journals)


def next_minute():
    """Gemini CLI names the record of a conversation by the minute, and loses it if it is loaded in the same one."""
    time.sleep(61 - time.time() % 60)


def test_a_run_with_a_question_and_a_gate_that_fails_once(agent):
    stage = agent()
    looked = read(stage, "answer.txt")

    def mend(request):
        if stage.kind is gemini_cli:
            next_minute()
        return do(stage.kind.write("answer.txt", "42\n")) if GATE in request.told else say("I was told nothing.")

    stage.server.play(
        {
            "main": [
                do(writing_shell(stage, "detent ask 'Which number?'", yield_time_ms=60_000)),
                lambda request: say(f"Summary: the person wants {request.results[-1].text[-40:]!r}"),
                do(stage.kind.write("answer.txt", "41\n")),
                say("Summary: wrote the answer"),
                *([do(looked)] if looked else []),
                mend,
                say("Summary: mended the answer\nDeliverables: answer.txt"),
            ]
        }
    )
    with run(stage) as running:
        if wait_until(lambda: asked(stage), timeout_s=60):
            stage.detent("reply", "forty-two")
        exit_code, output = end_of(running)

    assert exit_code == 0, output
    assert "forty-two" in stage.server.conversation("main")[1].told
    assert session(stage)["status"] == "completed"
    receipts = [event["receipt"]["result"] for event in journal(stage) if event["type"] == "gate_checked"]
    assert receipts == ["failed", "passed"]
    assert (stage.project / "answer.txt").read_text() == "42\n"
    assert total(stage) == billed(stage)
    assert not (stage.project / ".workflow/hook-failures.log").exists()


def test_a_run_that_is_interrupted_cancels_the_turn_and_goes_on_in_the_same_conversation(agent):
    stage = agent()
    work = writing_shell(stage, "touch begun; sleep 600", yield_time_ms=60_000)
    stage.server.play({"main": [do(stage.kind.write("plan.md", "a plan\n")), do(work)]})
    with run(stage) as running:
        assert wait_until((stage.project / "begun").exists, timeout_s=60)
        running.send_signal(signal.SIGINT)
        exit_code, output = end_of(running)
    assert exit_code == 130, output
    assert used(stage)[0] == billed(stage)

    if stage.kind is gemini_cli:
        next_minute()
    stage.server.play({"main": the_rest(stage)})
    before = len(stage.server.requests)
    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert session(stage)["status"] == "completed"
    [first, *_] = stage.server.requests[before:]
    assert "a plan" in str([message.calls for message in first.messages])
    assert total(stage) == billed(stage)


def test_the_guard_is_asked_first_and_the_model_hears_why(agent):
    stage = agent()
    spoil = "echo spoilt >> .workflow/WFS-*/journal.jsonl"

    def script(request):
        request = yield do(writing_shell(stage, spoil))
        while "Detent denied" not in request.told:
            request = yield say("I could not write it.")
        yield from iter_steps(stage)

    stage.server.play({"main": script})

    exit_code, events = played(stage)

    assert exit_code == 0, "\n".join(map(str, events))
    assert "Detent's own record" in heard(stage)
    assert stage.detent("doctor")
    assert total(stage) == billed(stage)


def test_a_call_that_the_settings_do_not_allow_is_refused(agent):
    stage = agent(more='allow = ["edit"]\n')

    def script(request):
        request = yield do(writing_shell(stage, "touch forbidden"))
        while "Detent denied" not in request.told:
            request = yield say("I could not run it.")
        yield from iter_steps(stage)

    stage.server.play({"main": script})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert not (stage.project / "forbidden").exists()
    assert "execute is not allowed" in heard(stage)


def test_the_tokens_of_sub_agents_are_counted(agent):
    """Gemini CLI refuses to start sub-agents under ACP."""
    stage = agent()
    helping = [do(stage.kind.write("help.md", "help\n")), stage.kind.hand_back("Summary: helped")]
    stage.server.play({"main": [*stage.kind.delegate("[[S:sub]] help"), *the_rest(stage)], "sub": helping})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert len(stage.server.conversation("sub")) == (0 if stage.kind is gemini_cli else 2)
    assert total(stage) == billed(stage)


def test_the_tokens_of_a_turn_that_failed_are_counted(agent):
    stage = agent(more="retries = 0\n", top="")
    toml = stage.project / "detent.toml"
    toml.write_text(toml.read_text().replace("[run]\n", "[run]\nattempts = 1\n"))
    refused = []

    def script(_request):
        yield do(stage.kind.write("plan.md", "a plan\n"))
        while True:
            refused.append(1)
            yield reject()

    stage.server.play({"main": script})

    exit_code, events = played(stage)

    assert exit_code == 6, events
    assert [event["kind"] for event in journal(stage) if event["type"] == "escalation_raised"] == ["agent_error"]
    paid = len(stage.server.requests) + len(stage.server.asides) - len(refused)
    assert total(stage) == {"input": paid * INPUT, "output": paid * OUTPUT}


def test_a_busy_service_costs_no_attempt_and_the_conversation_goes_on(agent):
    stage = agent(more="retries = 3\nbackoff_s = 0.01\n")
    if stage.kind is gemini_cli:  # it asks a busy service ten times by itself, for minutes
        path = stage.client.home / gemini_cli.PROJECT_SETTINGS
        known = json.loads(path.read_text())
        path.write_text(json.dumps({**known, "general": {**known["general"], "maxAttempts": 1}}))
    own = 1 if stage.kind is gemini_cli else 2  # the others ask once more by themselves
    stage.server.play({"main": [do(stage.kind.write("plan.md", "a plan\n")), *[busy(1)] * own, *the_rest(stage)]})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert len([event for event in events if event["type"] == "retrying"]) == 1
    assert [(phase["status"], phase["attempt"]) for phase in session(stage)["phases"]] == [("completed", 1)] * 2
    paid = len(stage.server.requests) + len(stage.server.asides) - own
    assert total(stage) == {"input": paid * INPUT, "output": paid * OUTPUT}


def test_the_tokens_of_a_turn_that_was_killed_with_its_run_are_counted(agent):
    stage = agent()
    work = writing_shell(stage, "touch begun; sleep 600", yield_time_ms=60_000)
    stage.server.play({"main": [do(stage.kind.write("plan.md", "a plan\n")), do(work)]})
    with run(stage) as running:
        assert wait_until((stage.project / "begun").exists, timeout_s=60)
        running.send_signal(signal.SIGKILL)
        end_of(running)
    if stage.kind is gemini_cli:
        next_minute()
    stage.server.play({"main": the_rest(stage)})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert total(stage) == billed(stage)


def test_a_budget_of_tokens_stops_a_turn_within_one_request(agent):
    """Claude Code and Codex tell their usage during a turn. Of Gemini CLI its own record is read after each call."""
    stage = agent(top="[budget]\ntokens = 250")

    def script(_request):
        while True:
            time.sleep(ANSWER_S)
            yield do(writing_shell(stage, "echo more"))

    stage.server.play({"main": script})

    exit_code, events = played(stage)

    assert exit_code == 6, events
    assert [event["kind"] for event in journal(stage) if event["type"] == "escalation_raised"] == ["budget_exceeded"]
    # 250 tokens are exceeded with the third answer. One more request may have begun by then.
    assert 3 <= len(stage.server.requests) + len(stage.server.asides) <= 4
    assert total(stage)["input"] >= 300


def test_a_budget_of_cost_stops_a_turn_of_claude_code(agent, kind):
    if kind is not claude_code:
        pytest.skip("only Claude Code tells cost")
    stage = agent(top="[budget]\ncost = 0.002")

    def script(_request):
        while True:
            yield do(writing_shell(stage, "echo more"))

    stage.server.play({"main": script})

    exit_code, events = played(stage)

    assert exit_code == 6, events
    # An answer costs 0.0006: the limit is exceeded with the fourth.
    assert len(stage.server.requests) + len(stage.server.asides) <= 5


@pytest.mark.parametrize("hooked", [False, True], ids=["without hooks", "with hooks"])
def test_written_files_are_noted_with_the_clients_hooks_and_without(agent, hooked):
    stage = agent(hooked=hooked)
    stage.server.play({"main": the_rest(stage)})

    exit_code, events = played(stage)

    assert exit_code == 0, events
    [folder] = stage.project.glob(".workflow/WFS-*")
    # This mark is made after the call: by the client's own hook, or by the adapter in its place.
    assert '+"answer.txt"' in (folder / ".process/written").read_text()
    assert not (stage.project / ".workflow/hook-failures.log").exists()
    assert total(stage) == billed(stage)


@pytest.mark.skipif(shutil.which("bwrap", path=os.defpath) is None, reason="there is no sandbox")
def test_an_agent_in_the_sandbox_may_run_anything_and_spoils_nothing(agent):
    """Codex starts no sandbox of its own in there, and asks for nothing."""
    stage = agent(sandbox="required", more="")
    toml = stage.project / "detent.toml"
    toml.write_text(toml.read_text().replace('allow = ["read", "search", "think", "edit", "execute"]\n', ""))
    before = toml.read_text()
    stage.server.play(
        {
            "main": [
                do(
                    stage.kind.shell("sh -c 'cd .workflow/WFS-*; echo x >> journal.jsonl; echo x >> ../../detent.toml'")
                ),
                do(stage.kind.shell("detent note 'from inside' --kind ideas --name inside")),
                *the_rest(stage),
            ]
        }
    )

    exit_code, events = played(stage)

    assert exit_code == 0, events
    assert toml.read_text() == before
    [folder] = stage.project.glob(".workflow/WFS-*")
    assert (folder / ".brainstorming/inside.md").exists()
    assert stage.detent("doctor")
    assert total(stage) == billed(stage)
