"""The hooks of a plugin beside those in the project's settings: each event is answered by one of them."""

import json
import posix

import pytest

from detent.clients import installing
from detent.clients.dialect import OWN_TOOLS
from detent.clients.registry import CLIENTS, dialect
from detent.engine.agents import forward
from detent.hooks import answer
from detent.hooks.plugin import HOOK_TAIL, note_own_hook
from detent.mcp.tools import TOOLS
from tests.support.hooked_project import Place

TALK = "conversation-1"
WRITE = {"tool_name": "Bash", "tool_input": {"command": "echo x > detent.toml"}}
#: An event that only one of the two hooks answers.
SEES = {
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_response": {"stdout": ""},
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    made = Place(tmp_path / "project", settings="gates = 'off'\n", agent=False)
    made.detent("start", "feature", "Add search")
    monkeypatch.chdir(made.root)
    return made


def asked(place, event, *, plugin, talk=TALK, **payload):
    """The answer of the hook of the plugin, or of the one in the settings."""
    given = {"hook_event_name": event, "cwd": str(place.root), "session_id": talk, **payload}
    return answer.main(["claude-code", *(["--plugin"] if plugin else [])], json.dumps(given).encode())


def install(place):
    installing.apply(installing.plan(str(place.root), ["claude-code"]))


def test_without_hooks_of_the_project_those_of_the_plugin_answer(place):
    assert "Detent holds this work" in asked(place, "SessionStart", plugin=True)
    assert "deny" in asked(place, "PreToolUse", plugin=True, **WRITE)


def test_a_plugin_stands_back_where_the_hook_of_the_project_runs(place):
    install(place)
    assert asked(place, "SessionStart", plugin=True) == ""
    assert "Detent holds this work" in asked(place, "SessionStart", plugin=False)

    change_settings(place)
    assert asked(place, "PostToolUse", plugin=True, **SEES) == ""
    assert "detent.toml changed" in asked(place, "PostToolUse", plugin=False, **SEES)


def change_settings(place):
    """The next hook that answers says so, once."""
    with (place.root / "detent.toml").open("a") as file:
        file.write("# changed\n")


def test_a_note_that_an_agent_forged_does_not_switch_the_guard_off(place):
    """The client runs no hooks of the project, and a program of the agent writes what such a hook would have noted."""
    install(place)
    asked(place, "SessionStart", plugin=False, talk="another")
    note = place.root / ".workflow/.own-hooks"
    note.write_text(note.read_text().replace("another", TALK))

    assert "deny" in asked(place, "PreToolUse", plugin=True, **WRITE)
    delegation = {"subagent_type": "code-reviewer", "prompt": "phase id: 08-code-review"}
    assert "deny" in asked(place, "PreToolUse", plugin=True, tool_name="Agent", tool_input=delegation)


def test_a_forged_note_hides_a_change_no_longer_than_a_turn(place):
    """The agent also writes settings that look as if they had the hook."""
    asked(place, "SessionStart", plugin=True)
    place.write(".claude/settings.json", json.dumps({"env": {"A": HOOK_TAIL.decode()}}))
    note_own_hook("claude-code", {"cwd": str(place.root), "session_id": TALK})
    change_settings(place)
    assert asked(place, "PostToolUse", plugin=True, **SEES) == ""

    said = asked(place, "Stop", plugin=True)
    assert "detent.toml, .claude/settings.json changed during the session" in said
    place.disk.edit(place.disk.state() | {"active_workflow": None})
    assert "kept as state.json.rejected-1" in asked(place, "Stop", plugin=True)
    assert asked(place, "Stop", plugin=True) == ""


def test_a_change_is_told_by_one_of_the_hooks_when_a_turn_ends(place):
    install(place)
    asked(place, "SessionStart", plugin=False)
    for first in (True, False):
        change_settings(place)
        assert "detent.toml changed" in asked(place, "Stop", plugin=first)
        assert asked(place, "Stop", plugin=not first) == ""


def test_beside_the_hook_of_the_project_a_plugin_only_judges(place):
    """What a hook writes and says is written and said once."""
    install(place)
    asked(place, "SessionStart", plugin=False)
    before = sorted(place.root.rglob("*"))
    delegation = {"subagent_type": "general-purpose", "prompt": "phase id: 08-code-review"}

    assert "deny" in asked(place, "PreToolUse", plugin=True, tool_name="Agent", tool_input=delegation)
    assert (
        asked(place, "PreToolUse", plugin=True, tool_name="Write", tool_input={"file_path": "a", "content": ""}) == ""
    )
    assert asked(place, "PreToolUse", plugin=True, tool_name="Bash", tool_input={"command": "pytest"}) == ""

    assert sorted(place.root.rglob("*")) == before


def test_a_plugin_answers_in_a_conversation_that_the_hook_of_the_project_has_not_seen(place):
    """A client may skip the hooks of the project without a word."""
    install(place)
    asked(place, "SessionStart", plugin=False)

    change_settings(place)
    assert "changed" in asked(place, "PostToolUse", plugin=True, talk="conversation-2", **SEES)
    asked(place, "UserPromptSubmit", plugin=False, talk="conversation-2", prompt="go")
    change_settings(place)
    assert asked(place, "PostToolUse", plugin=True, talk="conversation-2", **SEES) == ""


def test_a_plugin_answers_again_when_the_settings_have_changed(place):
    """Changed hooks need another approval in some clients, so nothing says that they still run."""
    install(place)
    asked(place, "SessionStart", plugin=False)
    settings = place.root / CLIENTS["claude-code"].settings[0]
    settings.write_text(settings.read_text() + "\n")
    assert "changed" in asked(place, "PostToolUse", plugin=True, **SEES)

    settings.unlink()
    assert "changed" in asked(place, "PostToolUse", plugin=True, **SEES)


def test_of_many_conversations_the_last_ones_are_noted(place):
    install(place)
    for number in range(60):
        asked(place, "UserPromptSubmit", plugin=False, talk=f"talk-{number}\nx", prompt="go")

    noted = (place.root / ".workflow/.own-hooks").read_text().splitlines()
    assert len(noted) == 50
    assert noted[-1].endswith("talk-59 x")
    change_settings(place)
    assert asked(place, "PostToolUse", plugin=True, talk="talk-59\nx", **SEES) == ""


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
def test_what_an_agent_writes_to_the_own_tools_is_not_followed(client, place):
    assert set(OWN_TOOLS) == TOOLS.keys()
    own = dialect(client).OWN_PREFIXES[-1]
    event = "BeforeTool" if client == "gemini" else "PreToolUse"

    def judged(tool, **inputs):
        payload = {"hook_event_name": event, "cwd": str(place.root), "tool_name": tool, "tool_input": inputs}
        return answer.main([client], json.dumps(payload).encode())

    assert judged(f"{own}finish", summary="see detent.toml; a person types: detent approve x") == ""
    assert "deny" in judged(f"{own}finish", summary="x", artifacts=["detent.toml"])
    assert "deny" in judged(f"{own}shell", summary="see detent.toml; a person types: detent approve x")
    assert "deny" in judged(own.replace("detent", "other") + "finish", summary="detent approve x")


def test_in_a_sandbox_the_runner_hears_that_the_event_is_a_plugins(place, monkeypatch):
    """Else it would note that the hook of the project runs, and the plugin would stand back for it."""
    passed = []

    def forwarded(arguments, streams):
        passed.append(arguments)
        raise OSError("there is no runner")

    monkeypatch.setattr(forward, "forward", forwarded)
    monkeypatch.setitem(posix.environ, b"DETENT_SOCKET", b"/nowhere")

    asked(place, "SessionStart", plugin=True)
    asked(place, "SessionStart", plugin=False)

    assert passed == [["hook", "claude-code", "--plugin"], ["hook", "claude-code"]]
