"""Which hooks each client gets, and how an older installation becomes the present one."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from detent.clients.installing.hook_settings import own_invocation
from detent.clients.registry import with_hooks
from detent.errors import Invalid, NotFound
from tests.support.installed_project import INSTALLATIONS, Place

CLAUDE_EVENTS = [
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart",
    "SubagentStop", "TaskCreated", "TaskCompleted", "PreCompact", "Stop", "SessionEnd",
]  # fmt: skip


def handlers(place, client):
    hooks = place.settings(client)["hooks"]
    return [(event, handler) for event, groups in hooks.items() for group in groups for handler in group["hooks"]]


def argv_of(handler):
    return [handler["command"], *handler["args"]] if "args" in handler else shlex.split(handler["command"])


def test_claude_code_gets_one_shell_that_becomes_the_interpreter(place):
    place.install("claude-code")

    assert list(place.settings("claude-code")["hooks"]) == CLAUDE_EVENTS
    for event, handler in handlers(place, "claude-code"):
        assert handler["command"] == "/bin/sh"
        assert handler["args"][2:] == [place.python, place.hook, "claude-code"]
        assert handler["timeout"] == (5 if event == "SessionEnd" else 10)


def test_reading_costs_no_hook_in_claude_code(place):
    place.install("claude-code")

    hooks = place.settings("claude-code")["hooks"]
    matchers = [group["matcher"] for event in ("PreToolUse", "PostToolUse") for group in hooks[event]]
    named = {word for matcher in matchers for word in matcher.split("|")}
    assert not named & {"Read", "Glob", "Grep", "*", ""}
    assert {"Task", "Agent", "Bash", "Write", "Edit", "MultiEdit", "NotebookEdit", "Skill", "mcp__.*"} <= named


def test_codex_counts_in_seconds_and_ends_within_three(place):
    place.install("codex")

    events = dict(handlers(place, "codex"))
    assert set(events) == {
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "SubagentStart", "SubagentStop",
        "Stop", "SessionEnd",
    }  # fmt: skip
    assert events["SessionEnd"]["timeout"] == 3
    assert argv_of(events["Stop"])[3:] == [place.python, place.hook, "codex"]
    assert events["Stop"]["timeout"] == 10


def test_gemini_has_its_own_events_and_counts_in_milliseconds(place):
    place.install("gemini")

    events = dict(handlers(place, "gemini"))
    assert set(events) == {
        "SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd",
    }  # fmt: skip
    assert events["BeforeTool"]["timeout"] == 10_000
    assert events["BeforeTool"]["name"] == "detent"


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_a_shell_starts_what_was_meant_whatever_the_path_looks_like(tmp_path, client):
    directory = tmp_path / "it's a $HOME; `x`"
    directory.mkdir()
    place = Place(directory)
    with open(place.hook, "w") as hook:
        hook.write("import sys; print(sys.argv[1], sys.flags.isolated, sys.flags.no_site, sys.stdin.read())")

    place.install(client, python=sys.executable)

    command = handlers(place, client)[0][1]["command"]
    ran = subprocess.run(["sh", "-c", command], input="{}", capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [client, "1", "1", "{}"]


@pytest.mark.parametrize("client", with_hooks())
@pytest.mark.parametrize("gone", ["hook", "python"])
def test_a_hook_never_blocks_its_client_because_detent_is_gone(place, client, gone):
    place.install(client)
    Path(getattr(place, gone)).unlink()

    for event, handler in handlers(place, client):
        ran = subprocess.run(argv_of(handler), input="{}", capture_output=True, text=True, check=False)

        assert (ran.returncode, ran.stderr) == (0, "")
        told = json.loads(ran.stdout)["systemMessage"] if ran.stdout else ""
        assert ("Detent is gone" in told) == (event in ("SessionStart", "UserPromptSubmit", "BeforeAgent"))


def test_the_status_line_is_set_only_where_there_is_none(place):
    place.install("claude-code")
    status_line = place.settings("claude-code")["statusLine"]
    assert status_line["type"] == "command"
    assert argv_of(status_line)[3:] == [place.python, place.hook, "statusline"]


def test_a_status_line_of_somebody_else_stays(place):
    theirs = {"type": "command", "command": "mine.sh"}
    place.write(".claude/settings.json", json.dumps({"statusLine": theirs}))

    made = place.install("claude-code")

    assert place.settings("claude-code")["statusLine"] == theirs
    assert "the status line is already set and was not changed" in made.notes


@pytest.mark.parametrize("client", with_hooks())
def test_an_older_installation_is_replaced_and_not_doubled(place, client):
    place.install(client)
    old = place.settings(client)
    moved = Place.made(place.root.parent / "new" / "detent" / "hooks" / "fast.py")

    place.install(client, hook=moved)

    new = place.settings(client)
    assert json.dumps(new) == json.dumps(old).replace(place.hook, moved)
    assert all(own_invocation(handler).hook == moved for _, handler in handlers(place, client))


def test_an_event_that_we_no_longer_want_goes(place):
    place.install("gemini")
    settings = place.settings("gemini")
    settings["hooks"]["Notification"] = settings["hooks"]["SessionStart"]
    place.write(".gemini/settings.json", json.dumps(settings, indent=2))

    place.install("gemini")

    assert "Notification" not in place.settings("gemini")["hooks"]


def test_a_handler_of_ours_in_a_group_of_somebody_else_is_taken_out_alone(place):
    place.install("codex")
    settings = place.settings("codex")
    theirs = {"type": "command", "command": "theirs.sh"}
    settings["hooks"]["Stop"][0]["hooks"].insert(0, theirs)
    place.write(".codex/hooks.json", json.dumps(settings))

    place.uninstall("codex")

    assert place.settings("codex") == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_a_hook_of_ours_that_stands_right_is_not_moved(place):
    """Codex approves a hook by its position: moving one would take the approval away."""
    place.install("codex")
    settings = place.settings("codex")
    settings["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs.sh"}]})
    place.write(".codex/hooks.json", json.dumps(settings))

    assert place.plan("codex").is_empty


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ('{"a": 1, // why not\n}', "it has comments"),
        ('{"hooks": []}', "hooks in .claude/settings.json is not an object"),
        ('{"hooks": null}', "hooks in .claude/settings.json is not an object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop in .claude/settings.json is not a list"),
        (b'{"a": "\xff"}', "not UTF-8"),
    ],
)
def test_settings_that_cannot_be_edited_change_nothing_anywhere(place, settings, why):
    place.write(".claude/settings.json", settings)
    before = place.tree()

    with pytest.raises(Invalid, match=why):
        place.install("codex", "claude-code", "gemini")

    assert place.tree() == before


@pytest.mark.parametrize("content", ["", " \n", "{}", "{ }\n", "\ufeff{}"])
def test_empty_settings_are_settings(place, content):
    place.write(".claude/settings.json", content)

    place.install("claude-code")

    assert (
        list(json.loads(place.read(".claude/settings.json").decode().removeprefix("\ufeff"))["hooks"]) == CLAUDE_EVENTS
    )
    place.uninstall("claude-code")
    assert place.read(".claude/settings.json") == content.encode()


def test_a_hook_that_could_not_start_is_not_installed(place):
    """Python ends with code 2 when it does not find the script, and 2 means `deny` to a client."""
    with pytest.raises(NotFound, match=r"the hook .* does not exist"):
        place.plan("claude-code", hook="/nowhere/detent/hooks/fast.py")
    with pytest.raises(NotFound, match=r"the interpreter .* does not exist"):
        place.plan("claude-code", python="")


def test_a_hook_that_would_not_be_recognised_again_is_refused(place):
    with pytest.raises(Invalid, match="could not recognise it later"):
        place.plan("claude-code", hook=Place.made(place.root.parent / "other.py"))


def test_an_unknown_client_is_named(place):
    with pytest.raises(NotFound, match="there is no client cursor"):
        place.plan("cursor")


def test_every_client_of_the_table_has_its_own_files():
    paths = [path for each in INSTALLATIONS.values() for path in (each.hooks.path, each.instructions)]
    assert len(set(paths)) == len(paths)
