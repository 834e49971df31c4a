"""The pre-commit hook with real pre-commit, and the script of the action, each as a user runs it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.branch import BROKEN, branch, record, stage
from tests.support.command import DETENT, Tool
from tests.support.gated import TEST
from tests.support.repository import ENVIRONMENT, git

ROOT = Path(__file__).parents[2]
TESTS = "tests/test_calc.py"
RUN_S_MAX = 300


def run(*command: str | Path, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


@pytest.fixture(scope="session")
def released(tmp_path_factory) -> Path:
    """This checkout as a repository that others name in their configuration."""
    directory = tmp_path_factory.mktemp("released") / "detent"
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in listed:
        if name.startswith(("src/", "ci/")) or "/" not in name:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "-m", "Release")
    return directory


def test_the_hook_of_pre_commit_refuses_an_agents_commit_until_a_person_accepts_it(tmp_path, python, released):
    tool = branch(tmp_path / "project")
    here = tool.directory
    rev = git(released, "rev-parse", "HEAD")
    (here / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {released}\n  rev: {rev}\n  hooks:\n  - id: detent\n"
    )
    environment = {
        "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
        "XDG_STATE_HOME": tool.environment["XDG_STATE_HOME"],
    }
    installed = run(python, "-m", "pre_commit", "install", cwd=here, **environment)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    git(here, "add", "--all")

    harmless = run("git", "commit", "-m", "Use pre-commit", cwd=here, CLAUDECODE="1", **environment)
    assert harmless.returncode == 0, harmless.stdout + harmless.stderr

    stage(tool, TESTS, None)
    refused = run("git", "commit", "-m", "Tidy up", cwd=here, CLAUDECODE="1", **environment)
    assert refused.returncode == 1
    assert f"{TESTS} is deleted" in refused.stdout + refused.stderr
    stage(tool, TESTS, TEST.replace("    def test_add", '    @unittest.skip("later")\n    def test_add'))
    skipped = run("git", "commit", "-m", "Tidy up", cwd=here, CLAUDECODE="1", **environment)
    assert (skipped.returncode, "leaves a test out" in skipped.stdout + skipped.stderr) == (1, True)

    tool("gate", "accept", "tests", f"file:{TESTS}", "-m", "it needs another machine")
    accepted = run("git", "commit", "-m", "Tidy up", cwd=here, CLAUDECODE="1", **environment)
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr


def action(tool: Tool, script: Path, summary: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the script as a runner of GitHub does, in a shallow clone of the branch."""
    clone = summary.parent / "clone"
    if not clone.exists():
        run("git", "clone", "--quiet", "--depth=1", f"file://{tool.directory}", clone, cwd=summary.parent)
    return run(
        "bash",
        script,
        cwd=clone,
        GITHUB_ACTIONS="true",
        GITHUB_ACTION_PATH=str(script.parents[1]),
        GITHUB_STEP_SUMMARY=str(summary),
        RUNNER_TEMP=str(summary.parent),
        DETENT_BASE="base",
        DETENT_TREE="HEAD",
        XDG_STATE_HOME=tool.environment["XDG_STATE_HOME"],
        **environment,
    )


def test_the_script_of_the_action_checks_a_shallow_clone(tmp_path, python, released):
    tool = branch(tmp_path / "project")
    record(tool)
    summary = tmp_path / "summary.md"

    ran = action(tool, released / "ci" / "action.sh", summary)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "WFS-try-it holds (completed" in ran.stdout
    assert "### ✅ WFS-try-it" in summary.read_text()
    assert "::notice file=.detent/" in ran.stdout

    (tmp_path / "clone" / ".git" / BROKEN).touch()
    closed = action(tool, released / "ci" / "action.sh", summary, DETENT_PROGRAM=DETENT)
    assert closed.returncode == 3
    assert (
        "::error file=.detent/WFS-try-it.bundle,title=WFS-try-it%3A gate command of work is FAIL here::"
        in closed.stdout
    )

    (tmp_path / "clone" / "calc.py").write_text("def add(a, b):\n    return 5\n")
    changed = action(tool, released / "ci" / "action.sh", summary, DETENT_PROGRAM=DETENT)
    assert changed.returncode == 1


def test_the_action_passes_its_inputs_to_the_script():
    """Every variable of the script that a user may set is an input of the action."""
    script = (ROOT / "ci" / "action.sh").read_text()
    for name in ("DETENT_BASE", "DETENT_TREE", "DETENT_ASSURANCE", "DETENT_GATES", "DETENT_DIRECTORY"):
        assert f"{name}: ${{{{ inputs.{name.removeprefix('DETENT_').lower()} }}}}" in (ROOT / "action.yml").read_text()
        assert f"${{{name}:-" in script
