"""`ci commit` as git calls it, and a branch without a record; tests/ci has the rest of `ci check`."""

from tests.support.branch import branch, stage
from tests.support.command import Tool
from tests.support.gated import TEST

TESTS = "tests/test_calc.py"
#: The exit code of a gate that is still closed.
CLOSED = 3


def test_an_agents_commit_that_weakens_a_protected_test_is_refused_until_a_person_accepts_it(tmp_path):
    tool = branch(tmp_path / "project")
    as_agent = Tool(tool.directory)
    as_agent.environment = {**tool.environment, "CLAUDECODE": "1"}
    assert "the record holds" in as_agent("ci", "commit").ok().out

    stage(tool, TESTS, TEST.replace("5)", "6)"))
    refused = as_agent("ci", "commit")

    assert (refused.code, "REFUSED" in refused.out) == (1, True)
    assert f"{TESTS} changes a test that stood" in refused.out
    assert f"detent gate accept tests file:{TESTS} -m WHY" in refused.out
    assert "commits, and no agent" in tool("ci", "commit").ok().out
    assert tool("gate", "accept", "tests", f"file:{TESTS}", "-m", "the sum was wrong").code == CLOSED
    assert as_agent("ci", "commit").code == 0

    stage(tool, "tests/__init__.py", None)
    stage(tool, "conftest.py", "collect_ignore = ['tests']\n")
    refused = as_agent("ci", "commit", "--json").json()
    assert {each["path"] for check in refused["checks"] for each in check["weakened"]} >= {"conftest.py"}


def test_tests_may_change_in_a_phase_that_declares_it(tmp_path):
    tool = branch(tmp_path / "project")
    tool("gate", "run", "--all").ok()
    tool("finish", "-m", "done").ok()
    tool("begin", "rewrite").ok()
    stage(tool, TESTS, TEST.replace("5)", "6)"))

    ran = tool("ci", "commit", CLAUDECODE="1").ok()

    assert "rewrite may rewrite tests" in ran.out


def test_a_commit_is_refused_while_the_record_does_not_hold(tmp_path):
    tool = branch(tmp_path / "project")
    journal = next(tool.state.glob("WFS-*/journal.jsonl"))
    journal.write_bytes(journal.read_bytes().replace(b'"task":"try it"', b'"task":"try me"'))

    code, message, _ = tool("ci", "commit").error()

    assert (code, "is damaged" in message) == (5, True)


def test_a_branch_without_a_record_fails(tmp_path):
    tool = branch(tmp_path / "project")

    ran = tool("ci", "check")

    assert (ran.code, "has no record" in ran.out) == (1, True)


def test_outside_of_a_project_there_is_nothing_to_check(tmp_path):
    assert "nothing to check" in Tool(tmp_path)("ci", "commit").ok().out
