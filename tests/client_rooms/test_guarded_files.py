"""The hook process denies writes to the files that hold a client's hooks, in the project and in the account."""

import json
import subprocess
import sys

import pytest

from tests.support.hooked_project import FAST, KEPT, RUN_S_MAX, Place


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("guarded") / "project", agent=False)


def denied(project, path, **environment):
    return asked(project, "Write", {"file_path": path, "content": "x"}, **environment)


def asked(project, tool, inputs, client="claude-code", cwd="", **environment):
    """Whether the hook denies a call. It is started in the directory of the session."""
    call = {"tool_name": tool, "tool_input": inputs}
    event = "BeforeTool" if client == "gemini" else "PreToolUse"
    payload = {"hook_event_name": event, "cwd": cwd or str(project.root), "session_id": "s", **call}
    ran = subprocess.run(
        [sys.executable, "-I", "-S", str(FAST), client],
        input=json.dumps(payload).encode(),
        capture_output=True,
        cwd=project.root,
        env={**KEPT, "HOME": "/home/me", **environment},
        timeout=RUN_S_MAX,
        check=True,
    )
    return b'"deny"' in ran.stdout


@pytest.mark.parametrize(
    "path",
    [
        ".mcp.json",
        ".claude/settings.local.json",
        "/home/me/.claude/settings.json",
        "/home/me/.claude/plugins/cache/detent/detent/1/launch.sh",
        "/home/me/.claude.json",
        "/home/me/.codex/config.toml",
        "/home/me/.gemini/extensions/detent/hooks/hooks.json",
    ],
)
def test_a_file_that_holds_hooks_or_starts_programs_is_not_for_agents(project, path):
    assert denied(project, path)


def test_a_name_behind_a_thousand_others_is_found(project):
    files = [f"f{number}" for number in range(2_000)]

    assert not asked(project, "mcp__files__write_many", {"files": files})
    assert asked(project, "mcp__files__write_many", {"files": [*files, f"{project.root}/.workflow/x"]})


@pytest.mark.parametrize("directory", ["/tmp", "/", ".."])
def test_the_directory_of_a_call_in_codex_does_not_lead_out_of_the_project(project, directory):
    write = {"command": f"echo x >> {project.root}/detent.toml"}

    assert asked(project, "Bash", write, client="codex", cwd=directory)
    assert not asked(project, "Bash", {"command": "echo x >> detent.toml"}, client="codex", cwd=directory)


@pytest.mark.parametrize(("directory", "expected"), [(".gemini", True), ("src", False)])
def test_a_command_is_judged_in_the_directory_of_its_call(project, directory, expected):
    call = {"command": "echo x > settings.json", "dir_path": directory}

    assert asked(project, "run_shell_command", call, client="gemini") is expected
    place = str(project.root / directory)
    assert asked(project, "Bash", {"command": "echo x > settings.json"}, client="codex", cwd=place) is expected


def test_the_directory_of_the_client_may_be_another_one(project):
    assert denied(project, "/opt/claude/settings.json", CLAUDE_CONFIG_DIR="/opt/claude")
    assert not denied(project, "/home/me/.claude/settings.json", CLAUDE_CONFIG_DIR="/opt/claude")


@pytest.mark.parametrize("path", ["/home/me/.claude/plans/a.md", "AGENTS.md", "src/settings.json"])
def test_other_files_are_free(project, path):
    assert not denied(project, path)
