"""Every table names a phase by its position, its title and the key that people type."""

import re

import pytest

from detent.core.run.run_view import RunView
from detent.core.session.listed import Listed
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.graph import graph_text, statuses
from detent.render.terminal.live import live_lines
from detent.render.terminal.phase_names import phase_rows
from detent.render.terminal.run_line import run_lines
from detent.render.terminal.sessions import sessions_text
from detent.render.terminal.status import status_text
from detent.render.terminal.workflows import workflows_text
from tests.support import story
from tests.support.run_story import turn
from tests.support.values import opened, session_at

LONG = "a-phase-of-this-team-with-a-key-that-is-as-long-as-a-key-may-be"


def own(*titles: tuple[str, str]) -> Session:
    """A session of a workflow whose phases have these keys and titles, one after the other."""
    keys = [key for key, _ in titles]
    return opened(
        Workflow(
            name="own",
            phases=tuple(
                Phase(key=key, title=title, agent="worker", needs=tuple(keys[at - 1 : at]) if at else ())
                for at, (key, title) in enumerate(titles)
            ),
        )
    )


def tables(session: Session, canvas: Canvas) -> dict[str, str]:
    names = {"w": session.workflow.name}
    changes = dict.fromkeys(session.workflow.order, (Status.PENDING, "completed → pending"))
    return {
        "status": status_text(session, now=story.NOW, canvas=canvas),
        "graph": graph_text(session.workflow, statuses(session), canvas=canvas),
        "workflows": workflows_text(names, {"w": session.workflow}, {}, canvas=canvas),
        "rows": "\n".join(phase_rows(session, changes, canvas=canvas, indent="  ")),
    }


@pytest.mark.parametrize("width", [40, 50, 60, 80, 120, 200])
@pytest.mark.parametrize(
    "session",
    [
        story.half_way().session,
        story.in_parallel().session,
        own(("one", ""), (LONG, ""), ("three", "The third of the phases")),
        own(("01-a", "A title that is so long that it hardly fits on a line of a terminal"), (LONG, "A title 登录")),
    ],
    ids=["feature", "canonical", "keys", "titles"],
)
def test_every_key_is_on_the_screen_and_no_line_is_too_wide(session, width):
    for name, text in tables(session, Canvas(width=width)).items():
        assert all(columns_of(line) <= width for line in text.splitlines()), name
        letters = re.sub(r"[\s│├]", "", text)
        assert [key for key in session.workflow.order if key not in letters] == [], name


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_live_screen_has_the_keys_too(width):
    session = story.half_way().session
    lines = live_lines(session, RunView(), now=story.NOW, canvas=Canvas(width=width), height=40, usual={})

    assert all(key in "\n".join(lines) for key in session.workflow.order)


def test_a_title_that_is_the_key_in_other_letters_is_said_once():
    session = own(("PLAN", "Plan"), ("quality-loop", "Quality loop"), ("last", ""))

    assert [phase_name(session, key) for key in session.workflow.order] == [
        "1 of 3 PLAN",
        "2 of 3 quality-loop",
        "3 of 3 last",
    ]
    for text in tables(session, Canvas()).values():
        assert "Plan" not in text
        assert "Quality" not in text


def test_a_title_of_its_own_stands_before_the_key():
    session = own(("06-implementation", "Implementation"), ("review", "Final review"))

    assert phase_name(session, "review") == "2 of 2 Final review (review)"
    shown = tables(session, Canvas())
    assert "▸ 1 Implementation  06-implementation  in progress" in shown["status"]
    assert "○ 2 Final review    review  " in shown["graph"]
    assert "1 Implementation (06-implementation), 2 Final review (review)." in shown["workflows"]


def test_a_skipped_phase_has_no_position():
    session = session_at({"a": Status.COMPLETED, "b": Status.SKIPPED, "c": Status.PENDING})

    text = status_text(session, now=story.NOW, canvas=Canvas())
    assert [line.split()[:2] for line in text.splitlines() if line.startswith(("  ✓", "  ⊘", "  ○"))] == [
        ["✓", "1"],
        ["⊘", "b"],
        ["○", "2"],
    ]


def test_keys_are_dim():
    session = own(("02-tracing", "Tracing"))

    for name, text in tables(session, Canvas(colour=True)).items():
        assert re.search(r"Tracing +\x1b\[2m\(?02-tracing\)?\x1b\[0m", text), name


def test_who_worked_is_below_a_phase_if_it_has_no_room_beside():
    wide, narrow = (status_text(story.half_way().session, now=story.NOW, canvas=Canvas(width=w)) for w in (120, 80))

    assert re.search(r"✓ 2 Impact analysis .* attempt 2 · impact-analysis-orchestrator$", wide, re.MULTILINE)
    assert "│   attempt 2 · impact-analysis-orchestrator · Touches 3 modules" in narrow


def test_lines_of_a_run_have_the_title_and_a_turn_has_the_key():
    session = story.half_way().session
    (line, *_) = run_lines(turn(1, "03-architecture"), canvas=Canvas(), session=session)
    assert "  3 Architecture      03-architecture, attempt 1, turn 1: claude" in line

    (line, *_) = run_lines(turn(1, "b"), canvas=Canvas(), session=own(("a", ""), ("b", "B")))
    assert "  2 b                 attempt 1, turn 1: claude" in line


def test_lines_of_a_run_have_the_keys_if_a_title_is_too_long_for_the_margin():
    session = own(("find", "Find it"), ("reproduce", "Reproduce the bug of the cart"), (LONG, ""))
    first, second, third = (
        " ".join(" ".join(run_lines(turn(1, key), canvas=Canvas(), session=session)).split())
        for key in ("find", "reproduce", LONG)
    )

    assert " 1 find Find it, attempt 1, turn 1: claude" in first
    assert " 2 reproduce Reproduce the bug of the cart, attempt 1, turn 1: claude" in second
    assert f" {LONG}, attempt 1, turn 1: claude" in third.replace(f"{LONG[:50]} ", LONG[:50])


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_list_of_sessions_cuts_neither_a_name_nor_a_phase(width):
    name, where = "WFS-the-answer-has-a-wrong-status-code-and-the", "2 of 8 Impact analysis (02-impact-analysis)"
    entry = Listed(id=name, status="active", where=where, tasks=3, last_activity=story.NOW, task="Do it", workflow="w")
    text = sessions_text([(1, entry)], hidden=0, now=story.NOW, canvas=Canvas(width=width))

    assert all(columns_of(line) <= width for line in text.splitlines())
    letters = re.sub(r"\s", "", text)
    assert name in letters
    assert f"active·{where}·0of3tasks".replace(" ", "") in letters


def test_one_phase_is_no_plural():
    session = own(("only", ""))

    assert "0 of 1 phase\n" in status_text(session, now=story.NOW, canvas=Canvas())
    assert "0 of 1 phase" in live_lines(session, RunView(), now=story.NOW, canvas=Canvas(), height=9, usual={})[2]
