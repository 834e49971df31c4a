"""The hooks of a plugin beside those in the project's settings: each event is answered by one of them."""

import json
import posix

import pytest

from detent.clients import installing
from detent.clients.dialect import OWN_TOOLS
from detent.clients.registry import CLIENTS, dialect
from detent.engine.agents import forward
from detent.hooks import answer
from detent.mcp.tools import TOOLS
from tests.support.hooked_project import Place

TALK = "conversation-1"
WRITE = {"tool_name": "Bash", "tool_input": {"command": "echo x > detent.toml"}}


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

    assert asked(place, "PreToolUse", plugin=True, **WRITE) == ""
    assert "deny" in asked(place, "PreToolUse", plugin=False, **WRITE)


def test_a_plugin_answers_in_a_conversation_that_the_hook_of_the_project_has_not_seen(place):
    """A client may skip the hooks of the project without a word."""
    install(place)
    asked(place, "SessionStart", plugin=False)

    assert "deny" in asked(place, "PreToolUse", plugin=True, talk="conversation-2", **WRITE)
    asked(place, "UserPromptSubmit", plugin=False, talk="conversation-2", prompt="go")
    assert asked(place, "PreToolUse", plugin=True, talk="conversation-2", **WRITE) == ""


def test_a_plugin_answers_again_when_the_settings_have_changed(place):
    """Changed hooks need another approval in some clients, so nothing says that they still run."""
    install(place)
    asked(place, "SessionStart", plugin=False)
    settings = place.root / CLIENTS["claude-code"].settings[0]
    settings.write_text(settings.read_text() + "\n")
    assert "deny" in asked(place, "PreToolUse", plugin=True, **WRITE)

    settings.unlink()
    assert "deny" in asked(place, "PreToolUse", plugin=True, **WRITE)


def test_of_many_conversations_the_last_ones_are_noted(place):
    install(place)
    for number in range(60):
        asked(place, "UserPromptSubmit", plugin=False, talk=f"talk-{number}\nx", prompt="go")

    noted = (place.root / ".workflow/.own-hooks").read_text().splitlines()
    assert len(noted) == 50
    assert noted[-1].endswith("talk-59 x")
    assert asked(place, "PreToolUse", plugin=True, talk="talk-59\nx", **WRITE) == ""


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
