"""Drawings of graphs: every edge can be followed along its rail."""

from hypothesis import given
from hypothesis import strategies as st

from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow, chain
from detent.render.next_commands import next_commands
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.graph import graph_text, mermaid
from detent.render.terminal.graph_lanes import LaneRow, drawn_followers, graph_lanes
from detent.render.terminal.status import status_text
from tests.support.values import NOON, session_at, workflow

DOWN = "│├┼┬╮"
UP = "│├┼┴╯"
RIGHT = "─├┼┬┴"
LEFT = "─┼┬┴╮╯"


@st.composite
def graphs(draw) -> Workflow:
    count = draw(st.integers(1, 9))
    needs = {
        f"p{index}": tuple(f"p{need}" for need in draw(st.sets(st.integers(0, index - 1), max_size=3)) if index)
        if index
        else ()
        for index in range(count)
    }
    return workflow(needs)


def _rows(drawn: list[LaneRow]) -> list[tuple[str, str | None]]:
    rows: list[tuple[str, str | None]] = []
    for rail in drawn:
        rows += [(rail.above, None)] if rail.above else []
        rows.append((rail.left + "*" + rail.right, rail.phase))
        rows += [(rail.below, None)] if rail.below else []
    return rows


def _reached(rows: list[tuple[str, str | None]], start: int) -> set[str]:
    """The phases that lines lead to from the phase on row `start`, going down and sideways only."""
    found: set[str] = set()
    waiting = [(start, rows[start][0].index("*"), "down")]
    seen = set()
    while waiting:
        row, column, way = waiting.pop()
        if (row, column, way) in seen:
            continue
        seen.add((row, column, way))
        row, column = (row + 1, column) if way == "down" else (row, column + (1 if way == "right" else -1))
        text = rows[row][0] if row < len(rows) else ""
        cell = text[column] if 0 <= column < len(text) else " "
        if cell == "*" and way == "down":
            found.add(str(rows[row][1]))
            continue
        joins = "┴" in text or "╯" in text
        if way == "down" and cell in UP:
            waiting += [(row, column, "down")] if cell in DOWN else []
            waiting += [(row, column, "left")] if joins and cell in "┴╯" else []
            waiting += [(row, column, "right")] if not joins and cell == "├" else []
        elif way == "left" and cell in RIGHT:
            waiting.append((row, column, "down" if cell == "├" else "left"))
        elif way == "right" and cell in LEFT:
            waiting += [(row, column, "down")] if cell in "┬╮" else []
            waiting += [(row, column, "right")] if cell != "╮" else []
    return found


@given(graphs())
def test_each_line_leads_from_a_phase_to_those_that_need_it(graph):
    rows = _rows(graph_lanes(graph, 99))
    for number, (_, phase) in enumerate(rows):
        if phase is not None:
            assert _reached(rows, number) == set(drawn_followers(graph)[phase]), "\n".join(text for text, _ in rows)


def test_a_chain_has_no_rails():
    assert graph_lanes(workflow(), 9) == [
        LaneRow(phase="a", beside="│"),
        LaneRow(phase="b", beside="│"),
        LaneRow(phase="c", beside=" "),
    ]


def test_a_graph_with_too_many_lanes_says_what_each_phase_needs():
    wide = workflow({"root": (), **{f"leaf{i:02}": ("root",) for i in range(30)}})
    text = graph_text(wide, {}, canvas=Canvas())
    assert "├" not in text
    assert text.count("after root") == 30


def test_nothing_in_a_title_is_taken_for_mermaid():
    graph = chain("adhoc", [('x"]; click p0 "javascript:alert(1)" <b>\n  p9', "a`b|c")])
    text = mermaid(graph, {})
    assert text.count("\n") == 1
    assert not set('`|<>;"') & set(text.split('["')[1].removesuffix('"]').replace("<br/>", "").replace("#", "")) - {";"}


def test_mermaid_has_every_edge_once():
    graph = Workflow(name="g", phases=(Phase(key="a"), Phase(key="b", needs=("a",)), Phase(key="c", needs=("a", "b"))))
    edges = [line.strip() for line in mermaid(graph, {}).split("\n") if "-->" in line]
    assert edges == ["p0 --> p1", "p0 --> p2", "p1 --> p2"]


def test_a_need_that_other_lines_already_show_gets_no_line_of_its_own():
    graph = workflow({"a": (), "b": ("a",), "c": ("a", "b")})
    assert drawn_followers(graph) == {"a": ["b"], "b": ["c"], "c": []}


def test_of_many_phases_that_could_begin_only_some_are_told():
    graph = workflow({"root": (), **{f"leaf{i:02}": ("root",) for i in range(30)}})
    session = session_at({"root": Status.COMPLETED}, graph=graph)
    assert status_text(session, now=NOON, canvas=Canvas()).count("detent begin") == 6
    assert "and 24 more" in status_text(session, now=NOON, canvas=Canvas())
    assert len(next_commands(session)) == 30
