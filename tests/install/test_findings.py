"""What the doctor is told about an installation."""

import json
import os

import pytest

import detent
from detent.clients.installing import findings, json_text
from tests.support.installed_project import CLIENTS_WITH_HOOKS as CLIENTS
from tests.support.installed_project import FORMS


def told(place, **options):
    return [
        f"{finding.client} {finding.subject}: {finding.message}" for finding in findings(str(place.root), **options)
    ]


def edit(place, path, *, key, value, at=()):
    place.write(path, json_text.insert(place.read(path).decode(), at, value, key=key))


@pytest.fixture
def installed(place):
    place.install(*CLIENTS)
    return place


def test_a_fresh_installation_is_in_order(installed):
    assert told(installed) == []


def test_nothing_is_said_about_clients_that_were_not_asked_for(place):
    place.write(".claude/settings.json", "not json; not ours to judge")
    assert told(place, version_of=lambda _: "0.0.1") == []


def test_an_interpreter_that_is_gone(installed):
    os.unlink(installed.python)

    assert told(installed) == [
        f"{form.client} {form.path}: the interpreter {installed.python} does not exist; the hooks do nothing"
        for form in FORMS.values()
    ]


def test_a_hook_that_is_gone_is_an_error_because_it_blocks(installed):
    os.unlink(installed.hook)

    found = findings(str(installed.root))
    assert [finding.client for finding in found] == list(CLIENTS)
    assert all(finding.severity == "error" and "refuses every tool" in finding.message for finding in found)


def test_hooks_of_another_machine_are_noticed_in_a_clone(installed):
    for path in (installed.root / ".workflow/install").rglob("*.json"):
        path.unlink()
    os.unlink(installed.python)

    assert len(told(installed)) == len(CLIENTS)


@pytest.mark.parametrize("path", [".claude/settings.json", ".claude/settings.local.json"])
def test_all_hooks_switched_off_in_claude_code(installed, path):
    if path.endswith("local.json"):
        installed.write(path, "{}")
    edit(installed, path, key="disableAllHooks", value=True)

    assert told(installed) == [f"claude-code {path}: disableAllHooks switches hooks off"]


@pytest.mark.parametrize(("config", "name"), [({"enabled": False}, "enabled"), ({"disabled": ["detent"]}, "disabled")])
def test_hooks_switched_off_in_gemini(installed, config, name):
    edit(installed, ".gemini/settings.json", key="hooksConfig", value=config)

    assert told(installed) == [f"gemini .gemini/settings.json: hooksConfig.{name} switches hooks off"]


def test_hooks_switched_off_in_codex(installed, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text("[features]\nhooks = false\n")
    installed.write(".codex/config.toml", "features = { hooks = false }")

    said = told(installed, environment={"CODEX_HOME": str(tmp_path / "home")})
    assert "codex .codex/config.toml: features.hooks switches hooks off" in said
    assert f"codex {tmp_path}/home/config.toml: features.hooks switches hooks off" in said


def test_an_entry_that_was_edited_or_taken_out(installed):
    settings = installed.settings("codex")
    settings["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 600
    del settings["hooks"]["SessionEnd"]
    installed.write(".codex/hooks.json", json.dumps(settings))

    assert told(installed) == [
        "codex .codex/hooks.json: the hook for Stop was edited, or is of another version",
        "codex .codex/hooks.json: the hook for SessionEnd is missing",
    ]


def test_settings_that_were_removed_or_cannot_be_read(installed):
    installed.write(".gemini/settings.json", '{"a": 1, // mine\n}')
    os.unlink(installed.root / ".codex/hooks.json")

    said = told(installed)
    assert "gemini .gemini/settings.json: .gemini/settings.json is not plain JSON: it has comments" in said
    assert sum("codex .codex/hooks.json: the hook for" in line for line in said) == len(FORMS["codex"].events)


def test_texts_that_are_missing_damaged_or_old(installed):
    os.unlink(installed.root / "CLAUDE.md")
    installed.write("AGENTS.md", "<!-- detent:begin -->\n")
    installed.write("GEMINI.md", "<!-- detent:begin -->\nold\n<!-- detent:end -->\n")
    os.unlink(installed.root / ".claude/agents/architect.md")
    installed.write(".claude/agents/qa-engineer.md", "a person's own; nothing to report")

    said = told(installed)
    assert [line.partition(":")[0] for line in said] == [
        "claude-code CLAUDE.md",
        "claude-code .claude/agents/architect.md",
        "codex AGENTS.md",
        "gemini GEMINI.md",
    ]
    assert said[-1].endswith("of another version")


def approve(place, home, *, events, enabled=True, path=None):
    path = path or place.root / ".codex/hooks.json"
    home.mkdir(exist_ok=True)
    lines = [f'[hooks.state."{path}:{event}:0:0"]\ntrusted_hash = "sha256:x"\n' for event in events]
    (home / "config.toml").write_text("".join(line + ("" if enabled else "enabled = false\n") for line in lines))


CODEX_EVENTS = [
    "session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "pre_compact", "subagent_start",
    "subagent_stop", "stop", "session_end",
]  # fmt: skip


def test_codex_hooks_that_nobody_approved(installed, tmp_path):
    home = tmp_path / "home"

    assert "no person has approved" in told(installed, environment={"CODEX_HOME": str(home)})[0]
    approve(installed, home, events=CODEX_EVENTS)
    assert told(installed, environment={"CODEX_HOME": str(home)}) == []
    approve(installed, home, events=CODEX_EVENTS[1:])
    assert "silently skips the hooks for SessionStart" in told(installed, environment={"CODEX_HOME": str(home)})[0]
    approve(installed, home, events=CODEX_EVENTS, enabled=False)
    assert "no person has approved" in told(installed, environment={"CODEX_HOME": str(home)})[0]
    approve(installed, home, events=CODEX_EVENTS, path="/elsewhere/hooks.json")
    assert "no person has approved" in told(installed, environment={"CODEX_HOME": str(home)})[0]


def test_no_home_is_looked_at_unless_it_is_named(installed, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home"))
    opened = []
    real = open
    monkeypatch.setattr(
        "builtins.open", lambda path, *rest, **more: opened.append(str(path)) or real(path, *rest, **more)
    )

    findings(str(installed.root))

    assert opened
    ours = (str(installed.root), os.path.dirname(detent.__file__))
    # A number is a file that is open already.
    assert [path for path in opened if not path.startswith(ours) and not path.isdigit()] == []


@pytest.mark.parametrize(
    ("version", "is_old"),
    [
        ("2.1.196 (Claude Code)", True),
        ("2.1.197 (Claude Code)", False),
        ("3.0.0", False),
        ("unknown", False),
        (None, False),
    ],
)
def test_a_client_that_is_older_than_what_was_tried(place, version, is_old):
    place.install("claude-code")

    said = told(place, version_of=lambda program: {"claude": version}[program])
    assert said == (
        ["claude-code Claude Code: Claude Code has version 2.1.196; Detent was tested with 2.1.197 and later"]
        if is_old
        else []
    )


def test_looking_changes_nothing(installed):
    before = installed.tree()
    findings(str(installed.root), environment={"CODEX_HOME": str(installed.root)}, version_of=lambda _: "1.0")
    assert installed.tree() == before


def test_a_damaged_manifest_is_a_finding(installed):
    installed.write(".workflow/install/manifest.json", "{")
    assert [line for line in told(installed) if "cannot be read" in line]
