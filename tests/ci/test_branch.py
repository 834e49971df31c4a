"""`ci check` as CI calls it: a record that is complete and about this tree, and every way in which it is not."""

import pytest

from tests.support.branch import BROKEN, branch, bundle, publish, record
from tests.support.repository import git


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A branch whose record is published; a test leaves it as it was."""
    tool = branch(tmp_path_factory.mktemp("branch") / "project")
    record(tool)
    return tool


def test_a_complete_record_about_this_tree_passes_and_its_checks_run_again(published, tmp_path):
    summary, quality = tmp_path / "summary.md", tmp_path / "quality.json"

    ran = published("ci", "check", "--base", "base", "--summary", str(summary), "--code-quality", str(quality)).ok()

    assert "holds (completed" in ran.out
    assert "PASS     work tests: passed" in ran.out
    assert "### ✅ WFS-try-it" in summary.read_text()
    assert '"check_name":"detent"' in quality.read_text()
    assert git(published.directory, "status", "--porcelain") == ""


def test_annotations_of_github_never_take_a_command_from_a_record(published):
    ran = published("ci", "check", "--base", "base", "--format", "github", "--no-gates").ok()

    first, *_ = ran.out.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert first != token
    body, _, after = ran.out.partition(f"::{token}::\n")
    assert "WFS-try-it holds" in body
    assert [line for line in after.splitlines() if not line.startswith("::notice file=.detent/")] == []


def test_a_commit_after_the_record_is_another_tree(published):
    here = published.directory
    (here / "calc.py").write_text((here / "calc.py").read_text() + "\n\nSLIPPED = True\n")
    git(here, "commit", "--quiet", "-am", "Slip something in")
    try:
        ran = published("ci", "check", "--base", "base")
        assert ran.code == 1
        shown = " ".join(ran.out.split())
        assert "the tree to merge is" in shown
        assert "are not those of the last checkpoint: calc.py" in shown
    finally:
        git(here, "reset", "--quiet", "--hard", "HEAD~1")


def test_a_record_of_an_open_session_fails(tmp_path):
    tool = branch(tmp_path / "project")
    publish(tool)

    ran = tool("ci", "check", "--base", "base")

    assert (ran.code, bundle(tool).exists()) == (1, True)
    assert "the session is active, not completed" in ran.out


def test_a_check_that_does_not_pass_here_is_exit_code_3(published):
    """The record holds, and the machine of CI lacks what a check needs."""
    mark = published.directory / ".git" / BROKEN
    mark.touch()
    try:
        ran = published("ci", "check", "--base", "base")
    finally:
        mark.unlink()

    assert ran.code == 3
    assert "FAIL     work command: run 1 of 10 failed" in ran.out
