"""Detent as a plugin: installed by the client's own command, it guards, serves its tools, and leaves nothing behind."""

import json

import pytest

from tests.clients import claude_code, gemini_cli
from tests.clients.plugins import install_plugin, remains, remove_plugin, tool, validate_plugin
from tests.clients.scripts import do, say
from tests.clients.workplace import delegate, play, results, statuses


@pytest.fixture(autouse=True)
def _own_catalogues(stage):
    """With plugins, clients look for catalogues of their own. The server refuses that, and it is not Detent's doing."""
    yield
    assert not any("detent" in place for place in stage.server.outward)
    stage.server.outward.clear()


def hold(stage, *start, toml=""):
    """A project without hooks of its own: the plugin is all that there is."""
    if toml:
        (stage.project / "detent.toml").write_text(toml)
    stage.detent("init")
    stage.detent("start", *start)


def test_it_is_valid_guards_the_order_of_phases_and_leaves_nothing(stage):
    assert "fail" not in validate_plugin(stage).lower()
    install_plugin(stage)
    hold(stage, "plan-implement-review", "Add login")

    play(
        stage,
        "[[S:main]] go",
        {"main": [delegate(stage, "IMPLEMENT", "code-developer", "[[S:sub]] build it")[0], say("held back")]},
    )

    [denied] = results(stage)
    assert "phase IMPLEMENT, which is pending" in denied.text
    assert "Detent holds this work to the workflow" in stage.server.told("main")
    assert stage.server.conversation("sub") == []
    assert remains(stage)

    remove_plugin(stage)
    assert remains(stage) == set()


def test_its_tools_work_on_a_phase_and_a_person_decides(stage):
    gated = '[workflows.release]\nphases = [{ key = "build" }, { key = "release", gates = [{ kind = "approval" }] }]\n'
    install_plugin(stage)
    hold(stage, "release", "Ship it", toml=gated)

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                do(tool(stage, "status")),
                do(tool(stage, "finish", summary="built detent.toml, then detent approve", phase="build")),
                do(tool(stage, "begin", phase="release")),
                do(tool(stage, "finish", summary="shipped", phase="release")),
                say("a person decides"),
            ]
        },
    )

    told = [result.text for result in results(stage)]
    assert '"status":"in_progress"' in told[0].replace('\\"', '"').replace('": "', '":"'), told[0]
    assert "pending" in told[3], told
    assert "detent approve release" in told[3]
    assert statuses(stage) == {"build": "completed", "release": "in_progress"}
    by = [commit for commit in stage.detent("log", "-n", "0", "--json").splitlines() if '"channel": "mcp"' in commit]
    assert len(by) == 2


def test_with_hooks_of_the_project_everything_is_done_once(stage):
    install_plugin(stage)
    stage.detent("init", "--agent", stage.kind.NAME)
    stage.detent("start", "plan-implement-review", "Add login")

    play(
        stage,
        "[[S:main]] go",
        {
            "main": [
                do(stage.kind.shell("echo x > detent.toml")),
                *delegate(stage, "PLAN", "planning-agent", "[[S:sub]] plan it"),
                say("done"),
            ],
            "sub": [stage.kind.hand_back("Summary: planned")],
        },
    )

    told = stage.server.conversation("main")[-1].told
    assert told.count("Detent holds this work to the workflow") == 1
    # Both hooks judge a call, and Gemini CLI tells the reasons of both.
    reasons = results(stage)[0].text.count("configuration of Detent or of its hooks")
    assert reasons == (2 if stage.kind is gemini_cli else 1)
    activity = (stage.project / ".workflow/hook-activity.log").read_text().splitlines()
    assert len(activity) == 1, activity  # one decision about one delegation


def test_without_the_approval_of_a_person_only_the_plugin_answers(stage):
    """The project has hooks in its settings that the client does not run: the plugin does not stand back for them."""
    install_plugin(stage, scope="user")
    stage.detent("init", "--agent", stage.kind.NAME)
    stage.detent("start", "plan-implement-review", "Add login")
    settings = stage.project / stage.kind.PROJECT_SETTINGS
    # As hooks that are skipped: the text is there, and the events are not the client's.
    settings.write_text(settings.read_text().replace('"hooks":', '"skipped":', 1))

    play(stage, "[[S:main]] go", {"main": [do(stage.kind.shell("echo x > detent.toml")), say("held back")]})

    assert "configuration of Detent or of its hooks" in results(stage)[0].text
    assert not (stage.project / "detent.toml").exists()


def test_an_elicitation_hook_that_accepts_opens_nothing(stage):
    gated = '[workflows.release]\nphases = [{ key = "release", gates = [{ kind = "approval" }] }]\n'
    install_plugin(stage)
    hold(stage, "release", "Ship it", toml=gated)
    if stage.kind is claude_code:
        path = stage.project / ".claude/settings.json"
        settings = json.loads(path.read_text())
        accept = {"hookEventName": "Elicitation", "action": "accept", "content": {"approve": True}}
        hook = {"type": "command", "command": f"echo '{json.dumps({'hookSpecificOutput': accept})}'"}
        settings["hooks"] = {"Elicitation": [{"hooks": [hook]}]}
        path.write_text(json.dumps(settings))

    play(
        stage,
        "[[S:main]] go",
        {"main": [do(tool(stage, "finish", summary="shipped")), do(tool(stage, "status")), say("waits")]},
    )

    assert "pending" in results(stage)[0].text
    assert statuses(stage) == {"release": "in_progress"}
