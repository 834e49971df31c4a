"""`gates --stats` and `policy try` as people type them, over the recorded sessions of a project."""

import pytest

from tests.support.command import Tool
from tests.support.gated import started

POLICY = """
[workflows.short]
phases = [{ key = "work", gates = [{ kind = "command", command = "true" }, %s] }, "after"]
"""


@pytest.fixture
def work(tmp_path):
    """A session whose gate failed once and passed then, and one whose gate was opened by hand."""
    root = tmp_path / "project"
    project, session = started(root, '{ kind = "command", command = "true" }')
    with project:
        session.gates.run("command", phase="work")
        session.finish("done")
        session.cancel("enough")
        other = project.start("short", "another one")
        other.approve("looked at it", gate="command")
        other.finish("done")
        project.flush()
    return Tool(root)


def test_the_figures_of_all_sessions_are_shown(work):
    assert "2 sessions" in work("gates", "--stats").ok().out

    [row] = work("gates", "--stats", "--json").ok().json()["gates"]

    assert (row["phase"], row["gate"], row["kind"]) == ("work", "command", "command")
    assert {name: row[name] for name in ("passages", "opened", "first_try", "by_hand", "checks")} == {
        "passages": 2,
        "opened": 2,
        "first_try": 1,
        "by_hand": 1,
        "checks": 1,
    }
    assert row["first_try_rate"] == 0.5


def test_sessions_before_a_time_are_left_out(work):
    assert work("gates", "--stats", "--since", "2999-01-01", "--json").ok().json()["sessions"] == 0
    assert work("gates", "--stats", "--since", "1h", "--json").ok().json()["sessions"] == 2
    code, message, _ = work("gates", "--stats", "--since", "yesterday").error()
    assert (code, "is no date, time or duration" in message) == (2, True)


def test_a_damaged_session_is_named_and_affects_no_other(work):
    journal = next((work.directory / ".workflow").glob("WFS-another*/journal.jsonl"))
    journal.write_bytes(journal.read_bytes().replace(b"another one", b"another two"))

    ran = work("gates", "--stats", "--json").ok().json()

    assert ran["sessions"] == 1
    assert list(ran["unreadable"]) == [journal.parent.name]


def test_a_policy_is_tried_on_what_is_recorded(work):
    stricter = work.directory / "stricter.toml"
    stricter.write_text(POLICY % '{ kind = "approval", approvers = ["ada"] }')

    ran = work("policy", "try", "stricter.toml").ok()

    assert "2 would have waited for a person" in ran.out
    assert "work approval: 2 waits (for ada)" in ran.out
    record = work("policy", "try", "stricter.toml", "--json").ok().json()
    assert record["sessions"] == {"total": 2, "passed": 0, "refused": 0, "waits": 2, "unknown": 0}
    assert [step["waits_for"] for trial in record["trials"] for step in trial["steps"]] == ["ada", "ada"]


def test_a_policy_that_refuses_is_exit_code_3(work):
    (work.directory / "signed.toml").write_text('[decisions]\nassurance = "signed"\n' + POLICY % "")

    ran = work("policy", "try", "signed.toml")

    assert ran.code == 3
    assert "session cancelled by" in ran.out


def test_the_policy_of_now_changes_nothing(work):
    record = work("policy", "try", "detent.toml", "--json").ok().json()

    assert record["sessions"]["passed"] == 2
    assert [trial["steps"] for trial in record["trials"]] == [[], []]


def test_a_workflow_that_the_policy_does_not_have_is_not_replayed(work):
    (work.directory / "other.toml").write_text("gates = 'strict'\n")

    record = work("policy", "try", "other.toml", "--json").ok().json()

    assert record["sessions"]["unknown"] == 2
    assert "there is no workflow short" in record["trials"][0]["problem"]


def test_a_policy_that_cannot_be_read_is_refused(work):
    (work.directory / "bad.toml").write_text("gates = 'loose'\n")

    for file, reason in (("bad.toml", "bad.toml, line 1: Invalid enum value 'loose'"), ("gone.toml", "gone.toml")):
        code, message, _ = work("policy", "try", file).error()
        assert (code, reason in message) == (1, True), message
