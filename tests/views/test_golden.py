"""What people see, at 80 columns. Look at the files in golden/ when one of these fails."""

from pathlib import Path

import pytest

from detent.core.handover import handover
from detent.core.obstacle import obstacles
from detent.core.status import Status
from detent.documents.state.entry import history_entry
from detent.views.footer import idle_text
from detent.views.graph import graph_text, mermaid, statuses
from detent.views.history import history_text
from detent.views.log import log_text
from detent.views.outcome import begun_text, ended_text, moved_text
from detent.views.paper import Paper
from detent.views.status import status_text
from detent.views.why import why_text
from detent.views.workflows import workflows_text
from tests.views import story
from tests.views.golden_file import check_golden

GOLDEN = Path(__file__).parent / "golden"
PAPER = Paper(width=80)
ASCII = Paper(width=80, encoding="ascii")


def status(told: story.Story, paper: Paper = PAPER, *, active: bool = True) -> str:
    return status_text(told.session, now=story.NOW, paper=paper, active=active)


def begun(told: story.Story, paper: Paper = PAPER) -> str:
    (phase,) = told.session.with_status(Status.IN_PROGRESS)
    given = handover(told.session, phase, now=story.NOW, exists=frozenset())
    return begun_text(told.session.token(phase), given, paper=paper)


def finished(told: story.Story, phase: str, warnings: tuple[str, ...] = ()) -> str:
    return ended_text(told.session, phase, paper=PAPER, warnings=warnings)


def why(told: story.Story, phase: str | None = None) -> str:
    found = [each for each in obstacles(told.session) if phase in (None, each.phase)]
    return why_text(told.session, found, phase=phase, paper=PAPER)


def log(told: story.Story) -> str:
    return log_text(told.commits, left_out=3, now=story.NOW, paper=PAPER)


SHOWN = {
    "status-half-way": lambda: status(story.half_way()),
    "status-half-way-ascii": lambda: status(story.half_way(), ASCII),
    "status-parallel": lambda: status(story.in_parallel()),
    "status-parallel-ascii": lambda: status(story.in_parallel(), ASCII),
    "status-parallel-wide": lambda: status(story.in_parallel(), Paper(width=120)),
    "status-parallel-narrow": lambda: status(story.in_parallel(), Paper(width=40)),
    "status-failed": lambda: status(story.failed()),
    "status-ended": lambda: status(story.ended()),
    "status-paused": lambda: status(story.half_way(), active=False),
    "status-colour": lambda: status(story.half_way(), Paper(colour=True)),
    "idle": lambda: idle_text("/home/ada/shop", paper=PAPER),
    "begin": lambda: begun(story.half_way()),
    "finish": lambda: finished(story.half_way(), "02-impact-analysis", ("artifact docs/impact.md is not there",)),
    "finish-last": lambda: finished(story.ended(), "phase_1"),
    "fail": lambda: finished(story.failed(), "02-tracing"),
    "skip": lambda: moved_text(
        story.half_way().session, [(Status.SKIPPED, "skipped 04-design: it is small")], paper=PAPER
    ),
    "why": lambda: why(story.half_way()),
    "why-phase": lambda: why(story.half_way(), "16-quality-loop"),
    "why-failed": lambda: why(story.failed()),
    "log": lambda: log(story.half_way()),
    "log-hostile": lambda: log(story.failed()),
    "graph-chain": lambda: graph_text(story.shipped("feature"), {}, paper=PAPER),
    "graph-parallel": lambda: graph_text(
        story.in_parallel().session.workflow, statuses(story.in_parallel().session), paper=PAPER
    ),
    "graph-mermaid": lambda: mermaid(story.in_parallel().session.workflow, statuses(story.in_parallel().session)),
    "history": lambda: history_text(
        [history_entry(story.ended().session), history_entry(story.cancelled().session)], left_out=0, paper=PAPER
    ),
    "workflows": lambda: workflows_text(
        {"fix": "A bug fix", "odd": "Odd"}, {"fix": story.shipped("fix"), "odd": "it has no phases"}, paper=PAPER
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_looks_as_it_did(name):
    check_golden(GOLDEN / f"{name}.txt", SHOWN[name]())


def test_there_is_no_golden_file_that_nothing_shows():
    assert {path.stem for path in GOLDEN.iterdir()} == set(SHOWN)
