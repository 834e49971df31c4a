"""A review gate in the shells of agents: the author cannot review its own work, another client can."""

import pytest

from detent.core.gate.evidence import Verdict
from detent.engine.project import open_project
from detent.errors import Refused
from tests.support.agent_shell import AgentShell
from tests.support.project import write

GATES = '{ kind = "review" }, { kind = "approval" }'
REPORT = "detent gate report review --compliant -m 'read the diff'"
CLAUDE, CODEX = "CLAUDECODE", "CODEX_THREAD_ID"


@pytest.fixture
def shell(tmp_path):
    shell = AgentShell(tmp_path, GATES)
    # Both clients are there from the beginning, so that starting one is no change of the files.
    shell.run("true", mark=CODEX)
    shell.run("true", mark=CLAUDE)
    return shell


def verdicts(shell):
    with open_project(shell.root) as project:
        judged = project.session(shell.session).gates.judgements("work")["work"]
        return {judgement.gate: (judgement.verdict, judgement.reason) for judgement in judged}


def test_without_a_known_author_nothing_can_be_reviewed(shell):
    ran = shell.run(REPORT, mark=CODEX)

    assert ran.returncode
    assert "no agent is recorded as the author of the work" in shell.said(ran)


def test_another_client_reviews_these_very_files_and_no_person_is_replaced(shell):
    assert shell.run("detent redo work -m again", mark=CLAUDE).returncode == 0

    ran = shell.run(REPORT, mark=CODEX)

    assert ran.returncode == 0, shell.said(ran)
    judged = verdicts(shell)
    assert judged["review"] == (Verdict.PASS, "codex reviewed the work of claude-code: read the diff")
    assert judged["approval"][0] is Verdict.PENDING
    write(shell.root, "calc.py", "changed = 1\n")
    assert verdicts(shell)["review"][0] is Verdict.STALE


@pytest.mark.parametrize(
    "command",
    [
        REPORT,
        f"DETENT_ACTOR=codex {REPORT}",
        f"CODEX_THREAD_ID=1 {REPORT}",
        f"env -u CLAUDECODE CODEX_THREAD_ID=1 {REPORT}",
        f"env -u CLAUDECODE {REPORT}",
    ],
    ids=["itself", "another name", "another mark", "only the other mark", "no mark"],
)
def test_the_author_cannot_review_its_own_work(shell, command):
    assert shell.run("detent redo work -m again", mark=CLAUDE).returncode == 0

    ran = shell.run(command, mark=CLAUDE)

    assert ran.returncode
    assert "claude-code did the work itself" in shell.said(ran)
    assert verdicts(shell)["review"][0] is Verdict.PENDING


def test_a_person_approves_and_does_not_report(shell):
    assert shell.run("detent redo work -m again", mark=CLAUDE).returncode == 0

    with open_project(shell.root, actor="tester") as project, pytest.raises(Refused, match="this is a person"):
        project.session(shell.session).gates.report("review", compliant=True, note="fine")


def test_a_review_that_finds_something_closes_the_gate_with_its_text(shell):
    assert shell.run("detent redo work -m again", mark=CLAUDE).returncode == 0

    shell.run("detent gate report review --not-compliant -m 'add loses a digit'", mark=CODEX)

    verdict, reason = verdicts(shell)["review"]
    assert (verdict, "codex: add loses a digit" in reason) == (Verdict.FAIL, True)
