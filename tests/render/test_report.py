"""How a session went, as Markdown. Look at golden_run/report.md when one of these fails."""

import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from detent.core.checkpoint.checkpoint import CheckpointKind, Taken, Tree
from detent.core.gate.evidence import Receipt, Result
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.gate.kinds.delegation import DelegationGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.session.attempts import attempts
from detent.core.session.events import (
    AgentEnded,
    AgentLaunched,
    CheckpointTaken,
    Commit,
    EscalationRaised,
    EscalationsResolved,
    Event,
    GateApproved,
    GateChecked,
    Options,
    PhaseBegun,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReviewed,
    PhaseSkipped,
    QuestionAsked,
    QuestionReplied,
    RolledBack,
    SessionCancelled,
    SessionCompleted,
    SessionStarted,
    TaskWritten,
)
from detent.core.session.evolve import evolve
from detent.core.session.phase_state import Report, Tokens
from detent.core.session.session import Session
from detent.core.workflow.graph import Phase, Workflow
from detent.render.markdown.gantt import MOST_BARS, gantt
from detent.render.markdown.report import report_text
from tests.support import story
from tests.support.golden_file import check_golden
from tests.support.values import NOON, commit, workflow

GOLDEN = Path(__file__).parent / "golden_run" / "report.md"
SECOND = Tokens(input=30_000, output=2_000, cost=1)
TREE = Tree(manifest="0" * 64, files=12, bytes=3400)
GRAPH = Workflow(
    name="trial",
    prefix="REQ",
    phases=(
        Phase(key="plan", gates=(ArtifactsGate(paths=("docs/plan.md",)), ApprovalGate(name="owner"))),
        Phase(key="code", needs=("plan",), gates=(TestsGate(), DelegationGate())),
        Phase(key="docs", needs=("plan",)),
        Phase(key="ship", needs=("code", "docs")),
    ),
)


class Journal:
    def __init__(self, graph: Workflow = GRAPH, task: str = "Add *login* | <b>now</b>") -> None:
        self.at, self.commits = NOON, []
        start = SessionStarted(
            session="WFS-trial", task=task, workflow=graph, number=5, folder="trial", options=Options(gates=True)
        )
        self.commits.append(commit(1, start, at=self.at, by="run"))
        self.session: Session = evolve(None, self.commits[0])

    def add(self, minutes: float, *events: Event, by: str = "run") -> "Journal":
        self.at += timedelta(minutes=minutes)
        made = commit(len(self.commits) + 1, *events, at=self.at, by=by)
        self.commits.append(made)
        self.session = evolve(self.session, made)
        return self

    def report(self) -> str:
        assert self.session is not None
        return report_text(self.session, self.commits)


def checkpoint(phase: str, kind: CheckpointKind, taken: Taken = Taken.SUCCESS) -> CheckpointTaken:
    name = f"{kind}_{phase}_v1"
    return CheckpointTaken(id=name, name=name, phase=phase, kind=kind, attempt=1, taken=taken, tree=TREE)


def checked(result: Result, **fields) -> GateChecked:
    receipt = Receipt(result=result, command="uv run pytest", exit_code=int(result is not Result.PASSED), **fields)
    return GateChecked(phase="code", gate="tests", receipt=receipt)


def written(task: str, title: str) -> TaskWritten:
    meta = {"type": "feature", "agent": "coder"}
    document = {"id": task, "title": title, "status": "pending", "meta": meta, "context": {}, "flow_control": {}}
    return TaskWritten(task=task, document=document)


def whole() -> Journal:
    """Everything that a report can tell of."""
    return (
        Journal()
        .add(
            0,
            PhaseBegun(phase="plan", attempt=1, agent="architect"),
            checkpoint("plan", CheckpointKind.PRE, taken=Taken.STARTED),
        )
        .add(4, QuestionAsked(id="q-1", phase="plan", text="Which\ncolour?"))
        .add(2, QuestionReplied(id="q-1", phase="plan", answer="blue"), by="ada")
        .add(1, GateApproved(phase="plan", gate="owner", reason="read it"), by="ada")
        .add(
            3,
            PhaseFinished(phase="plan", attempt=1, summary="Planned | in 4 steps"),
            checkpoint("plan", CheckpointKind.POST),
        )
        .add(1, PhaseBegun(phase="code", attempt=1, agent="coder"))
        .add(0, PhaseBegun(phase="docs", attempt=1, agent="writer"))
        .add(1, AgentLaunched(phase="code", agent="claude", agent_id="x-1"), written("IMPL-1", "Write `it`"))
        .add(9, checked(Result.FAILED, error="2 failed", tail="FAILED test_a\n```\nassert 1 == 2\n"))
        .add(1, EscalationRaised(kind="circuit_breaker", phase="code", gate="tests", detail="the same failure 3 times"))
        .add(5, EscalationsResolved(action="retry", reason="the server is back"), by="bea")
        .add(2, PhaseFailed(phase="code", attempt=1, error="gave up", tokens=Tokens(input=9000, output=700, cost=0.2)))
        .add(2, PhaseRedone(phase="code", attempt=2, agent="coder"))
        .add(0, AgentLaunched(phase="code", agent="claude", agent_id="x-2"))
        .add(4, AgentEnded(phase="code", agent_id="x-2", succeeded=True, report=Report(summary="Done")))
        .add(1, checked(Result.PASSED, coverage=91.0))
        .add(
            1,
            PhaseFinished(phase="code", attempt=2, summary="Works", tokens=Tokens(input=30_000, output=2_000, cost=1)),
        )
        .add(
            3,
            PhaseFinished(phase="docs", attempt=1, summary="Written"),
            PhaseReviewed(phase="docs", decision="continue"),
            by="ada",
        )
        .add(1, PhaseSkipped(phase="ship", reason="later"), SessionCompleted(), by="ada")
    )


def test_looks_as_it_did():
    check_golden(GOLDEN, whole().report().removesuffix("\n"))


def test_the_same_journal_gives_the_same_report():
    assert whole().report() == whole().report()


def test_every_attempt_is_told_with_how_it_ended():
    told = [(one.phase, one.attempt, one.how, one.minutes(NOON)) for one in attempts(whole().commits)]

    assert told == [
        ("plan", 1, "completed", 10.0),
        ("code", 1, "failed", 18.0),
        ("docs", 1, "completed", 29.0),
        ("code", 2, "completed", 6.0),
    ]


@pytest.mark.parametrize(
    ("event", "how"),
    [
        (PhaseRedone(phase="plan", attempt=2), "redone"),
        (
            RolledBack(id="r", to="x", name="x", safety="y", phases={"plan": story.ended().session.phases["phase_0"]}),
            "rolled back",
        ),
        (SessionCancelled(reason="no"), "left"),
        (PhaseSkipped(phase="plan", reason="no"), "skipped"),
    ],
)
def test_an_attempt_that_something_else_ended_says_so(event, how):
    journal = Journal().add(0, PhaseBegun(phase="plan", attempt=1)).add(7, event)

    first = attempts(journal.commits)[0]
    assert (first.how, first.minutes(NOON)) == (how, 7.0)


def test_an_attempt_that_goes_on_has_no_end():
    journal = Journal().add(0, PhaseBegun(phase="plan", attempt=1))

    (tried,) = attempts(journal.commits)
    assert tried.ended is None
    assert "attempt 1 :active, 2026-02-09T12:00:00, 2026-02-09T12:00:01" in journal.report()


GANTT_LINE = re.compile(
    r"gantt|title [^:#;\n]+|dateFormat YYYY-MM-DDTHH:mm:ss|axisFormat [%a-zA-Z: -]+|section [^:#;\n]+"
    r"|attempt \d+[a-z ]* :(done|active|crit), (?P<begin>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d), (?P<end>[\dT:-]{19})"
)


@pytest.mark.parametrize("title", ["a: b; c #1 %% x", "section\ntitle `x`", "", "把登录 🎉", "x" * 500])
def test_the_chart_is_mermaid_whatever_the_names_are(title):
    journal = whole()

    for line in gantt(title, attempts(journal.commits), journal.at, str).splitlines():
        found = GANTT_LINE.fullmatch(line.strip())
        assert found, line
        assert found["begin"] is None or found["begin"] < found["end"]


def test_phases_at_the_same_time_overlap_in_the_chart_and_a_failed_one_stands_out():
    chart = whole().report().split("```mermaid\n")[1].split("```")[0]

    assert [line.strip() for line in chart.splitlines() if "section" in line] == [
        "section 1 of 3 plan",
        "section 2 of 3 code",
        "section 3 of 3 docs",
    ]
    assert "attempt 1 failed :crit, 2026-02-09T12:11:00, 2026-02-09T12:29:00" in chart
    assert "attempt 1 :done, 2026-02-09T12:11:00, 2026-02-09T12:40:00" in chart


def test_a_chart_of_many_attempts_is_bounded():
    journal = Journal().add(0, PhaseBegun(phase="plan", attempt=1))
    for attempt in range(2, 2 * MOST_BARS):
        journal.add(1, PhaseRedone(phase="plan", attempt=attempt))

    text = journal.report()
    assert text.count("    attempt ") == MOST_BARS
    assert f"The last {MOST_BARS} of {2 * MOST_BARS - 1} attempts." in text
    assert len(text.split("```mermaid")[1].split("```")[0]) < 50_000


def test_a_table_has_as_many_cells_in_every_row():
    rows = [line for line in whole().report().splitlines() if line.startswith("|")]
    cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]

    separators = [at for at, row in enumerate(rows) if set(row) <= {"|", "-"}]
    assert len(separators) == 5
    for first, last in zip(separators, [*separators[1:], len(rows) + 1], strict=True):
        assert len(set(cells[first - 1 : last - 1])) == 1


def test_what_proved_a_gate_and_who_opened_it_is_told():
    text = whole().report()

    assert "| 1 of 3 plan | artifacts | PASS | existed: docs/plan.md |" in text
    assert "| 1 of 3 plan | owner | opened by hand | ada (attended): read it |" in text
    assert "| 2 of 3 code | tests | PASS | uv run pytest, exit code 0, coverage 91 %, run 1 |" not in text
    assert "| 2 of 3 code | tests | PASS | uv run pytest, exit code 0, coverage 91 % |" in text
    assert "| 2 of 3 code | delegation | PASS | claude ran |" in text


def test_nothing_is_said_to_be_proved_that_was_not():
    journal = Journal().add(0, PhaseBegun(phase="plan", attempt=1))

    assert "| 1 of 4 plan | artifacts | PENDING |" in journal.report()
    assert "| 2 of 4 code | tests | not reached |" in journal.report()
    assert "PASS" not in journal.report()


def test_without_gates_that_is_said():
    assert "Gates were off" in report_text(story.half_way().session, story.half_way().commits)


def test_the_evidence_of_a_failure_cannot_leave_its_fence():
    text = whole().report()
    fenced = text.split("    ````text\n")[1].split("    ````\n")[0]

    assert "FAILED test_a" in fenced
    assert "```" in fenced


def test_an_escalation_is_told_with_what_became_of_it():
    text = whole().report()

    assert (
        "- 2 of 3 code: the same failure 3 times (circuit\\_breaker)\n"
        "  - retry (bea, 2026-02-09 12:27): the server is back" in text
    )
    raised = EscalationRaised(kind="stuck", phase="plan", detail="nobody knows")
    assert "  - still open" in Journal().add(0, PhaseBegun(phase="plan", attempt=1)).add(1, raised).report()


def test_a_question_that_nobody_answered_is_told_too():
    asked = QuestionAsked(id="q-9", phase="plan", text="Which?")

    assert (
        "- 1 of 4 plan asked: Which?\n  - not answered"
        in Journal().add(0, PhaseBegun(phase="plan", attempt=1)).add(1, asked).report()
    )


def test_there_is_a_command_for_every_way_back():
    assert "| `PRE_plan_v1` | 2026-02-09 12:00 | started | 12 | `detent rollback PRE_plan_v1` |" in whole().report()


def test_a_session_of_which_nothing_is_known_has_a_report():
    session = msgspec.structs.replace(Journal(workflow()).session)
    commits: list[Commit] = []

    assert report_text(session, commits).startswith("<!-- Generated by Detent")
    assert "## Timeline" not in report_text(session, commits)
