"""A run as people see it while it goes on. Look at the files in golden_run/ when one of these fails."""

from pathlib import Path

import msgspec
import pytest

from detent.core.gate.evidence import Verdict
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.run.agent_event import Finished
from detent.core.run.run_event import End, Need, RunEnded
from detent.core.run.run_view import RunView
from detent.core.session.commands import Ask
from detent.core.session.events import VoteCast
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.live import live_lines, open_needs
from tests.support import run_story
from tests.support.golden_file import check_golden
from tests.support.run_story import at, did, judged, needed, started, turn, view
from tests.support.values import after, diamond, opened, session_at

GOLDEN = Path(__file__).parent / "golden_run"
PAPER, ASCII, COLOUR = Canvas(width=80), Canvas(width=80, encoding="ascii"), Canvas(width=80, colour=True)
NOW = at(112)


def shown(session, events, *, canvas: Canvas = PAPER, height: int = 50, usual=None) -> list[str]:
    return live_lines(session, view(*events), now=NOW, canvas=canvas, height=height, usual=usual or {})


def chain(canvas: Canvas = PAPER, height: int = 50) -> list[str]:
    session = run_story.at_third_phase().session
    usual = dict.fromkeys(session.workflow.order, 5.0)
    return shown(session, run_story.chain_run(), canvas=canvas, height=height, usual=usual)


def branches(canvas: Canvas = PAPER, height: int = 50) -> list[str]:
    return shown(run_story.both_branches().session, run_story.parallel_run(), canvas=canvas, height=height)


SHOWN = {
    "live-chain": chain,
    "live-chain-ascii": lambda: chain(ASCII),
    "live-chain-colour": lambda: chain(COLOUR),
    "live-chain-low": lambda: chain(height=12),
    "live-branches": branches,
    "live-branches-ascii": lambda: branches(ASCII),
    "live-branches-low": lambda: branches(height=14),
    "live-branches-narrow": lambda: branches(Canvas(width=40)),
    "live-tasks": lambda: shown(run_story.at_third_phase().session, run_story.task_run()),
    "live-ended": lambda: shown(
        run_story.at_third_phase().session,
        [*run_story.chain_run(), RunEnded(at=at(130), end=End.PAUSED, said="interrupted")],
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_looks_as_it_did(name):
    check_golden(GOLDEN / f"{name}.txt", "\n".join(SHOWN[name]()))


@pytest.mark.parametrize("height", [1, 3, 4, 5, 7, 10, 13, 24, 60])
@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_it_fits_whatever_happens(width, height, encoding):
    canvas, events = Canvas(width=width, encoding=encoding), run_story.whole_run()
    sessions = [run_story.at_third_phase().session, run_story.both_branches().session]

    for session in sessions:
        for count in range(len(events)):
            lines = shown(session, events[:count], canvas=canvas, height=height)
            assert len(lines) <= max(height, 3)
            assert max(map(columns_of, lines)) <= width
            assert "".join(lines).encode(encoding).decode(encoding).isprintable()


def test_a_command_longer_than_a_line_fits_too():
    session = session_at({"a": Status.IN_PROGRESS})

    lines = shown(session, [needed(1, "a", way_out="detent approve \x1b[2J " + "x" * 300)])
    assert any("detent approve" in line for line in lines)
    assert max(map(columns_of, lines)) <= 80
    assert "\x1b" not in "".join(lines)


def test_the_command_that_a_person_must_type_is_the_last_to_be_cut():
    for height in range(3, 30):
        assert "    detent approve data --gate approval -m WHY" in branches(height=height)


def test_what_is_being_worked_on_outlasts_what_is_done_and_what_is_to_come():
    lines = chain(height=8)

    assert any("03-architecture" in line for line in lines)
    assert any("uv run pytest" in line for line in lines)
    assert not any("01-requirements" in line for line in lines)


def test_phases_that_are_left_out_are_counted():
    every = len(run_story.at_third_phase().session.workflow.order)

    for height in range(4, 16):
        lines = chain(height=height)
        rows = sum(line[2:4] in ("✓ ", "▸ ", "○ ") for line in lines)
        more = next((int(line.split()[1]) for line in lines if line.startswith("  … ")), 0)
        assert rows + more == every


def test_the_estimate_is_shown_only_when_it_is_known():
    session = run_story.at_third_phase().session
    usual = dict.fromkeys(session.workflow.order, 5.0)

    assert any("min left" in line for line in shown(session, run_story.chain_run(), usual=usual))
    del usual["08-code-review"]
    assert not any("min left" in line for line in shown(session, run_story.chain_run(), usual=usual))


def test_without_colour_nothing_is_painted():
    assert "\x1b" not in "".join(branches())
    assert "\x1b[" in "".join(branches(COLOUR))


def test_a_pause_counts_down():
    (line,) = [line for line in branches() if "retries in" in line]

    assert line.endswith("retries in 9s, try 2 of 3: 429 too many requests")


def test_a_failing_gate_says_why_and_a_passed_one_need_not():
    session = session_at({"a": Status.IN_PROGRESS})
    events = [
        turn(0, "a"),
        judged(1, "a", "tests", Verdict.FAIL, "2 failed"),
        judged(1, "a", "lint", Verdict.PASS, "ok"),
    ]
    text = "\n".join(shown(session, events))

    assert "gate tests: FAIL, 2 failed" in text
    assert "gate lint: PASS\n" in text + "\n"


def test_a_question_that_the_journal_holds_answered_is_not_shown():
    told = run_story.both_branches()
    told.then(1, Ask(id="q-1", phase="data", text="Which?"))
    asked = view(needed(1, "data", need=Need.ANSWER, about="q-1"), needed(1, "data", need=Need.ANSWER, about="q-2"))

    assert [one.about for one in open_needs(told.session, asked)] == ["q-1"]


@pytest.mark.parametrize("need", [Need.REVIEW, Need.DECISION])
def test_what_the_journal_holds_settled_is_not_shown(need):
    asked = view(needed(1, "a", need=need, about=""))

    assert open_needs(opened(), asked) == []


def test_a_request_for_a_vote_ends_with_the_vote_and_another_one_stays():
    gates = (ApprovalGate(), ApprovalGate(name="second"))
    session = opened(Workflow(name="w", phases=(Phase(key="a", gates=gates),)))
    asked = view(needed(1, "a"), needed(1, "a", about="second"))
    assert [one.about for one in open_needs(session, asked)] == ["approval", "second"]

    voted = after(session, [VoteCast(phase="a", gate="approval", approver="ada", approve=True)])
    assert [one.about for one in open_needs(voted, asked)] == ["second"]


def test_an_approval_stands_until_the_gate_is_judged_or_the_phase_is_over():
    asked = view(needed(1, "a"))

    assert len(open_needs(opened(), asked)) == 1
    assert open_needs(session_at({"a": Status.COMPLETED}), asked) == []


def test_of_a_phase_that_the_journal_holds_completed_nothing_goes_on():
    text = "\n".join(shown(session_at({"a": Status.COMPLETED}), [started(), turn(1, "a")]))

    assert "✓ 1 a" in text
    assert "claude" not in text


def test_work_that_is_over_and_held_by_a_gate_waits_for_a_person():
    session, over = session_at({"a": Status.IN_PROGRESS}), [turn(0, "a"), did(1, "a", Finished())]

    assert not any("waits for a person" in line for line in shown(session, over))
    assert any("waits for a person" in line for line in shown(session, [*over, needed(2, "a")]))


def test_a_run_that_told_nothing_yet_can_be_shown():
    lines = live_lines(opened(diamond()), RunView(), now=NOW, canvas=PAPER, height=24, usual={})

    assert lines[0] == "WFS-trial · trial"


def test_a_large_graph_fits_too():
    phases = tuple(Phase(key=f"p{at}", needs=(f"p{at - 1}",) if at else ()) for at in range(2000))
    session = opened(Workflow(name="large", phases=phases))

    lines = live_lines(session, view(started(), turn(1, "p0")), now=NOW, canvas=PAPER, height=24, usual={})
    assert len(lines) == 24
    assert any(line.startswith("  ▸    1 p0") for line in lines)


def test_a_phase_that_failed_says_why():
    session = session_at({"a": Status.FAILED})

    assert any("attempt 1 failed: a broke" in line for line in shown(session, [started()]))


def test_what_was_used_is_that_of_the_whole_session():
    session = session_at({"a": Status.COMPLETED, "b": Status.IN_PROGRESS})
    spent = msgspec.structs.replace(session.phases["a"], tokens=run_story.FIRST_TURN)
    session = msgspec.structs.replace(session, phases=session.phases.replaced("a", spent))

    assert any("1 of 3 phases · 9.7k tokens, $0.20" in line for line in shown(session, [started()]))
