"""A run in plain lines. Look at golden_run/lines.txt when one of these fails."""

from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import get_args

import pytest

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import AgentEvent, Finished, Said, ToolStarted, Used
from detent.core.run.run_event import AgentDid, GateJudged, PersonNeeded, PhaseEnded, RunEvent, RunStarted
from detent.core.session.phase_state import Report, Tokens
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.run_line import run_lines
from tests.support.golden_file import check_golden
from tests.support.run_story import did, needed, turn, whole_run
from tests.support.story import NOW

GOLDEN = Path(__file__).parent / "golden_run"


PAPER = Canvas()


def lines_of(canvas: Canvas = PAPER) -> list[str]:
    return [line for event in whole_run() for line in run_lines(event, canvas=canvas, zone=UTC)]


def test_looks_as_it_did():
    check_golden(GOLDEN / "lines.txt", "\n".join(lines_of()))


def test_the_story_has_one_of_everything():
    told = whole_run()

    assert {type(event) for event in told} == set(get_args(RunEvent))
    assert {type(event.did) for event in told if isinstance(event, AgentDid)} == set(get_args(AgentEvent))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_paper(width, encoding):
    canvas = Canvas(width=width, encoding=encoding)

    for line in lines_of(canvas):
        assert columns_of(line) <= width
        assert line.isprintable()
        line.encode(encoding)


def test_every_event_but_what_was_used_and_begun_tools_has_a_line_with_its_time():
    for event in whole_run():
        lines = run_lines(event, canvas=Canvas(), zone=UTC)
        if isinstance(event, AgentDid) and isinstance(event.did, ToolStarted | Used):
            assert lines == []
        else:
            assert lines[0].startswith(f"{event.at:%H:%M:%S}  ")


def test_the_time_is_that_of_the_zone():
    east = timezone(timedelta(hours=2))

    assert run_lines(turn(0, "a"), canvas=Canvas(), zone=east)[0].startswith("14:40:00")


def test_the_command_that_a_person_must_type_is_told_whole():
    event = needed(1, "a", way_out="detent approve 06-implementation --gate approval -m WHY --session WFS-of-long-name")
    assert isinstance(event, PersonNeeded)

    _, *rest = run_lines(event, canvas=Canvas(width=60), zone=UTC)
    typed = " ".join(line.strip().removesuffix("\\").strip() for line in rest if "PENDING" not in line)
    assert event.way_out in typed


def test_colour_is_only_where_it_is_asked_for():
    assert "\x1b" not in "".join(lines_of())
    assert "\x1b[" in "".join(lines_of(Canvas(colour=True)))


def test_of_several_lines_the_first_is_told():
    (line,) = run_lines(did(1, "a", Said(text="\n\n  first\nsecond")), canvas=Canvas(), zone=UTC)

    assert line.endswith("first")


def test_what_a_turn_used_is_told_when_it_is_over():
    report = Report(summary="Done", tokens=Tokens(input=1200, output=300, cost=0.004))
    (line,) = run_lines(did(1, "a", Finished(report=report)), canvas=Canvas(), zone=UTC)

    assert line.endswith("is done (1.5k tokens, $0.0040): Done")


def test_a_verdict_a_result_and_the_start_of_a_run_are_told_whole():
    long = "a reason that is longer than the line " * 2
    events: list[RunEvent] = [
        RunStarted(at=NOW, run="run-1a2b3c4d", session=f"WFS-{'long-' * 12}name"),
        GateJudged(at=NOW, phase="a", gate="tests", verdict=Verdict.PASS, reason=long),
        PhaseEnded(at=NOW, phase="a", status="completed", attempt=1, said=long),
    ]
    texts = ["".join(line.strip() for line in run_lines(event, canvas=PAPER, zone=UTC)) for event in events]

    assert texts[0].endswith("-name started")
    assert all(text.count("longer than") == 2 for text in texts[1:])
