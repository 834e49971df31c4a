"""What people see, at 80 columns. Look at the files in golden/ when one of these fails."""

from pathlib import Path

import pytest

from detent.core.session.handover import handover
from detent.core.session.obstacle import obstacles
from detent.core.session.open_decision import View, open_decisions
from detent.core.session.status import Status
from detent.documents.state import history_entry
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.graph import graph_text, mermaid, statuses
from detent.render.terminal.history import history_text
from detent.render.terminal.log import log_text
from detent.render.terminal.outcome import begun_text, ended_text, moved_text
from detent.render.terminal.status import idle_text, status_text
from detent.render.terminal.why import why_text
from detent.render.terminal.workflows import workflows_text
from tests.support import story
from tests.support.golden_file import check_golden

GOLDEN = Path(__file__).parent / "golden"
PAPER = Canvas(width=80)
ASCII = Canvas(width=80, encoding="ascii")


def status(told: story.Story, canvas: Canvas = PAPER, *, active: bool = True) -> str:
    view = View(active=active)
    decisions = open_decisions(told.session, view=view)
    return status_text(told.session, now=story.NOW, canvas=canvas, view=view, decisions=decisions)


def begun(told: story.Story, canvas: Canvas = PAPER) -> str:
    (phase,) = told.session.with_status(Status.IN_PROGRESS)
    given = handover(told.session, phase, now=story.NOW, exists=frozenset())
    return begun_text(told.session, told.session.token(phase), given, canvas=canvas)


def finished(told: story.Story, phase: str, warnings: tuple[str, ...] = ()) -> str:
    return ended_text(told.session, phase, canvas=PAPER, warnings=warnings)


def why(told: story.Story, phase: str | None = None) -> str:
    found = [each for each in obstacles(told.session) if phase in (None, each.phase)]
    return why_text(told.session, found, phase=phase, canvas=PAPER)


def log(told: story.Story) -> str:
    return log_text(told.session, told.commits, left_out=3, now=story.NOW, canvas=PAPER)


SHOWN = {
    "status-half-way": lambda: status(story.half_way()),
    "status-half-way-ascii": lambda: status(story.half_way(), ASCII),
    "status-parallel": lambda: status(story.in_parallel()),
    "status-parallel-ascii": lambda: status(story.in_parallel(), ASCII),
    "status-parallel-wide": lambda: status(story.in_parallel(), Canvas(width=120)),
    "status-parallel-narrow": lambda: status(story.in_parallel(), Canvas(width=40)),
    "status-failed": lambda: status(story.failed()),
    "status-ended": lambda: status(story.ended()),
    "status-paused": lambda: status(story.half_way(), active=False),
    "status-colour": lambda: status(story.half_way(), Canvas(colour=True)),
    "idle": lambda: idle_text("/home/ada/shop", canvas=PAPER),
    "begin": lambda: begun(story.half_way()),
    "finish": lambda: finished(story.half_way(), "02-impact-analysis", ("artifact docs/impact.md is not there",)),
    "finish-last": lambda: finished(story.ended(), "phase_1"),
    "fail": lambda: finished(story.failed(), "02-tracing"),
    "skip": lambda: moved_text(
        story.half_way().session, [(Status.SKIPPED, "skipped 04-design: it is small")], canvas=PAPER
    ),
    "why": lambda: why(story.half_way()),
    "why-phase": lambda: why(story.half_way(), "16-quality-loop"),
    "why-failed": lambda: why(story.failed()),
    "log": lambda: log(story.half_way()),
    "log-hostile": lambda: log(story.failed()),
    "graph-chain": lambda: graph_text(story.shipped("feature"), {}, canvas=PAPER),
    "graph-parallel": lambda: graph_text(
        story.in_parallel().session.workflow, statuses(story.in_parallel().session), canvas=PAPER
    ),
    "graph-mermaid": lambda: mermaid(story.in_parallel().session.workflow, statuses(story.in_parallel().session)),
    "history": lambda: history_text(
        [history_entry(story.ended().session), history_entry(story.cancelled().session)], left_out=0, canvas=PAPER
    ),
    "workflows": lambda: workflows_text(
        {"fix": "A bug fix", "odd": "Odd", "mend": "The same"},
        {"fix": story.shipped("fix"), "odd": "it has no phases", "mend": story.shipped("fix")},
        {"mend": "like fix, without 08-code-review"},
        canvas=PAPER,
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_looks_as_it_did(name):
    check_golden(GOLDEN / f"{name}.txt", SHOWN[name]())


def test_there_is_no_golden_file_that_nothing_shows():
    assert {path.stem for path in GOLDEN.iterdir()} == set(SHOWN)


def test_the_history_names_a_long_session_whole():
    name = "WFS-the-sum-of-two-numbers-is-wrong-if-one-of-them-is-negative"
    entry = {**history_entry(story.ended().session), "session_id": name}

    text = history_text([entry], left_out=0, canvas=PAPER)
    assert f"\n  {name}\n" in text
    assert all(len(line) <= 80 for line in text.splitlines())
