"""What the real clients do with hooks, proved by a hook that only records and replies as it is told."""

import json

import pytest

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.recorder import Recorder
from tests.clients.scripts import do, say, wait_until
from tests.clients.stage import Stage

ONLY = {
    kind.NAME: pytest.mark.parametrize("kind", [kind], ids=[kind.NAME]) for kind in (claude_code, codex, gemini_cli)
}
WITH_SUBAGENT_EVENTS = pytest.mark.parametrize("kind", [claude_code, codex], ids=lambda kind: kind.NAME)


def test_a_denied_write_does_not_happen_and_the_model_is_told_why(stage):
    stage.record()
    stage.reply("PreToolUse", stage.kind.deny("not before the plan"), containing="denied.txt")

    run = stage.play(
        "[[S:main]] go",
        {"main": [do(stage.kind.write("denied.txt", "x\n")), do(stage.kind.write("ok.txt", "x\n")), say("done")]},
    )

    assert run.exit_code == 0
    assert not (stage.project / "denied.txt").exists()
    assert (stage.project / "ok.txt").read_text() == "x\n"
    assert "not before the plan" in stage.server.conversation("main")[1].results[0].text
    assert len(stage.events("PreToolUse")) == 2
    assert len(stage.events("PostToolUse")) == 1


def test_a_denied_command_does_not_run_and_the_model_is_told_why(stage):
    stage.record()
    stage.reply("PreToolUse", stage.kind.deny("not before the plan"))

    stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("touch ran")), say("done")]})

    assert not (stage.project / "ran").exists()
    assert "not before the plan" in stage.server.told("main")
    assert stage.events("PostToolUse") == []


def test_the_output_of_a_command_reaches_the_hook_and_the_model(stage):
    stage.record()

    stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("expr 40 + 2 | tr 4 X")), say("done")]})

    [after] = stage.events("PostToolUse")
    assert "X2" in json.dumps(after["tool_response"])
    assert "X2" in stage.server.conversation("main")[1].results[0].text


def test_calls_of_one_turn_each_have_their_hooks(stage):
    stage.record()
    calls = [stage.kind.shell(f"echo number-{number}") for number in range(3)]

    stage.play("[[S:main]] go", {"main": [do(*calls), say("done")]})

    assert len(stage.events("PreToolUse")) == len(stage.events("PostToolUse")) == 3
    assert all(f"number-{number}" in stage.server.told("main") for number in range(3))


def test_a_blocked_stop_goes_on_and_the_model_is_told_why(stage):
    stage.record()
    stage.reply("Stop", stage.kind.block("the tests have not run"))

    run = stage.play("[[S:main]] go", {"main": [say("done"), say("really done")]})

    assert run.exit_code == 0
    assert "the tests have not run" not in stage.server.conversation("main")[0].told
    assert "the tests have not run" in stage.server.conversation("main")[1].told
    assert [stop["stop_hook_active"] for stop in stage.events("Stop")] == [False, True]


def test_only_gemini_forgets_a_blocked_stop_once_a_tool_has_run(stage):
    """A hook that must not block for ever cannot count on `stop_hook_active`."""
    stage.record()
    stage.reply("Stop", stage.kind.block("the tests have not run"))

    stage.play("[[S:main]] go", {"main": [say("done"), do(stage.kind.shell("echo tests")), say("now done")]})

    assert [stop["stop_hook_active"] for stop in stage.events("Stop")] == [False, stage.kind is not gemini_cli]


def test_a_session_begins_and_ends_once(stage):
    stage.record()

    run = stage.play("[[S:main]] go", {"main": [say("done")]})

    assert [start["source"] for start in stage.events("SessionStart")] == ["startup"]
    assert [start["session_id"] for start in stage.events("SessionStart")] == [run.session_id]
    assert [end["session_id"] for end in stage.events("SessionEnd")] == [run.session_id]
    assert "[[S:main]] go" in stage.events("UserPromptSubmit")[0]["prompt"]


def test_a_second_session_in_the_project_is_new(stage):
    stage.record()

    first = stage.play("[[S:one]] go", {"one": [say("one is done")]})
    second = stage.play("[[S:two]] go", {"two": [say("two is done")]})

    assert first.session_id != second.session_id
    assert [start["session_id"] for start in stage.events("SessionStart")] == [first.session_id, second.session_id]
    assert not any(message.text == "one is done" for message in stage.server.conversation("two")[0].messages)


def test_a_resumed_session_keeps_its_id_and_its_history(stage):
    stage.record()

    first = stage.play("[[S:one]] go", {"one": [say("one is done")]})
    second = stage.play("[[S:two]] go on", {"two": [say("two is done")]}, resume=first.session_id)

    assert second.exit_code == 0
    assert second.session_id == first.session_id
    assert [start["source"] for start in stage.events("SessionStart")] == ["startup", "resume"]
    assert any(message.text == "one is done" for message in stage.server.conversation("two")[0].messages)


def test_a_hook_of_the_user_fires_too(stage):
    stage.record(user=True)

    stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("echo hello")), say("done")]})

    assert len(stage.events("PreToolUse")) == 1


def test_hooks_of_the_user_and_of_the_project_both_fire(stage, tmp_path):
    stage.record(user=True)
    other = Stage(stage.client, stage.project, stage.server, Recorder(tmp_path / "other"))
    other.record()

    stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("echo hello")), say("done")]})

    assert len(stage.events("PreToolUse")) == len(other.events("PreToolUse")) == 1


def test_a_sub_agent_plays_its_own_script_and_its_tools_have_hooks(stage):
    stage.record()

    run = stage.play(
        "[[S:main]] go",
        {
            "main": [*stage.kind.delegate("[[S:sub]] look into it"), say("done")],
            "sub": [do(stage.kind.shell("echo sub-work")), stage.kind.hand_back("sub is done")],
        },
    )

    assert run.exit_code == 0
    assert "sub is done" in stage.server.told("main")
    assert len([call for call in stage.events("PreToolUse") if "sub-work" in json.dumps(call)]) == 1


@WITH_SUBAGENT_EVENTS
def test_the_end_of_a_sub_agent_names_the_agent(stage):
    stage.record()

    run = stage.play(
        "[[S:main]] go",
        {
            "main": [*stage.kind.delegate("[[S:sub]] look into it"), say("done")],
            "sub": [do(stage.kind.shell("echo sub-work")), stage.kind.hand_back("sub is done")],
        },
    )

    [started], [ended] = stage.events("SubagentStart"), stage.events("SubagentStop")
    [work] = [call for call in stage.events("PreToolUse") if "sub-work" in json.dumps(call["tool_input"])]
    assert started["agent_id"] == ended["agent_id"] == work["agent_id"]
    assert ended["session_id"] == work["session_id"] == run.session_id
    assert ended["last_assistant_message"] == "sub is done"


@WITH_SUBAGENT_EVENTS
def test_a_sub_agent_can_be_kept_from_ending(stage):
    stage.record()
    stage.reply("SubagentStop", stage.kind.block("say what you found"))

    stage.play(
        "[[S:main]] go",
        {
            "main": [*stage.kind.delegate("[[S:sub]] look into it"), say("done")],
            "sub": [stage.kind.hand_back("nothing"), stage.kind.hand_back("a bug")],
        },
    )

    assert "say what you found" in stage.server.told("sub")
    assert "a bug" in stage.server.told("main")
    assert [stop["stop_hook_active"] for stop in stage.events("SubagentStop")] == [False, True]


@WITH_SUBAGENT_EVENTS
def test_a_denied_sub_agent_does_not_start(stage):
    stage.record()
    stage.reply("PreToolUse", stage.kind.deny("no help for this phase"))

    stage.play("[[S:main]] go", {"main": [stage.kind.delegate("[[S:sub]] go")[0], say("done")]})

    assert stage.events("SubagentStart") == []
    assert stage.server.conversation("sub") == []
    assert "no help for this phase" in stage.server.told("main")


@ONLY["claude-code"]
def test_a_background_sub_agent_ends_after_the_main_stop_and_the_session_goes_on(stage):
    stage.record()

    def after_the_main_stop(request):
        assert wait_until(lambda: stage.events("Stop") != [])
        return do(stage.kind.shell("echo sub-work"))

    run = stage.play(
        "[[S:main]] go",
        {
            "main": [*stage.kind.delegate("[[S:sub]] go", background=True), say("waiting"), say("all done")],
            "sub": [after_the_main_stop, stage.kind.hand_back("sub is done")],
        },
    )

    names = [event["hook_event_name"] for event in stage.hook.events()]
    [launched] = stage.events("PostToolUse", tool_name="Agent")
    [ended] = stage.events("SubagentStop")
    stops = stage.events("Stop")
    assert run.exit_code == 0
    assert launched["tool_response"]["status"] == "async_launched"
    assert launched["tool_response"]["agentId"] == ended["agent_id"]
    assert names.index("Stop") < names.index("SubagentStop")
    assert [bool(stop["background_tasks"]) for stop in stops] == [True, False]
    assert "<task-notification>" in stage.events("UserPromptSubmit")[1]["prompt"]
    assert "sub is done" in stage.server.told("main")


@ONLY["codex"]
def test_the_end_of_the_session_ends_a_sub_agent_without_an_event(stage):
    stage.record()

    def never(request):
        wait_until(lambda: stage.events("SessionEnd") != [], timeout_s=10)
        return say("too late")

    stage.play(
        "[[S:main]] go",
        {"main": [*stage.kind.delegate("[[S:sub]] go", background=True), _once_asked(stage)], "sub": [never]},
    )

    assert len(stage.events("SubagentStart")) == 1
    assert stage.events("SubagentStop") == []


@ONLY["codex"]
def test_codex_runs_no_hook_of_a_project_it_does_not_trust(stage):
    stage.record()
    stage.kind.prepare(stage.client.home, stage.server.url)
    with (stage.client.home / ".codex/config.toml").open("a") as config:
        config.write(f'\n[projects."{stage.project}"]\ntrust_level = "untrusted"\n')

    run = stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("echo hello")), say("done")]})

    assert run.exit_code == 0
    assert stage.hook.events() == []


@ONLY["gemini"]
def test_gemini_does_not_say_whose_tool_call_it_is(stage):
    stage.record()

    stage.play(
        "[[S:main]] go",
        {
            "main": [*stage.kind.delegate("[[S:sub]] go"), say("done")],
            "sub": [do(stage.kind.shell("echo sub-work")), stage.kind.hand_back("sub is done")],
        },
    )

    assert {key for event in stage.hook.events() for key in event} & {"agent_id", "agent_type", "tool_use_id"} == set()


def test_only_gemini_announces_a_compression_before_every_request(stage):
    stage.record()

    run = stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("echo hello")), say("done")]})

    assert len(stage.events("PreCompact")) == (len(run.requests) if stage.kind is gemini_cli else 0)


def test_a_client_sees_a_clean_environment_and_its_own_home(stage, monkeypatch):
    monkeypatch.setenv("DETENT_TEST_CANARY", "of-this-account")

    stage.play("[[S:main]] go", {"main": [do(stage.kind.shell("env; echo home=$HOME")), say("done")]})

    told = stage.server.conversation("main")[1].results[0].text
    assert "of-this-account" not in told
    assert f"home={stage.client.home}" in told


def _once_asked(stage):
    def done(request):
        assert wait_until(lambda: stage.server.conversation("sub") != [])
        return say("done")

    return done
