from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.task.cycle import find_cycles
from detent.core.task.document import kinship
from detent.core.task.row import Row
from tests.support.task_model import Model, calm, some_row, sound_rows


def needs(rows: dict[str, Row]) -> dict[str, set[str]]:
    model = Model(rows)
    return {
        id_: {other for other in model.needs(id_) if other in rows and not kinship(id_, other)}
        | set(model.children(id_))
        for id_ in rows
    }


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting.extend(edges[here])
    return seen


@calm
@given(st.lists(some_row(), max_size=10))
def test_every_task_on_a_circle_is_named_or_its_container_is(listed):
    rows = {row.id: row for row in listed}
    edges = needs(rows)

    named = {id_ for circle in find_cycles(rows) for id_ in circle}

    on_circle = {id_ for id_ in rows if id_ in reachable(edges, id_)}
    assert named <= on_circle
    main = {id_.partition(".")[0] for id_ in named}
    assert {id_.partition(".")[0] for id_ in on_circle} == main


@calm
@given(st.lists(some_row(), max_size=10))
def test_every_circle_is_one_along_what_each_task_depends_on_and_there_once(listed):
    rows = {row.id: row for row in listed}
    edges = needs(rows)

    circles = find_cycles(rows)

    assert len({frozenset(circle) for circle in circles}) == len(circles)
    for circle in circles:
        assert len(set(circle)) == len(circle)
        assert all(after in edges[before] for before, after in pairwise([*circle, circle[0]]))


@calm
@given(sound_rows())
def test_a_sound_plan_has_no_circles(rows):
    assert find_cycles(rows) == []


@pytest.mark.parametrize(
    ("depends_on", "circles"),
    [
        ({"IMPL-1": ["IMPL-2"], "IMPL-2": ["IMPL-1"]}, [("IMPL-1", "IMPL-2")]),
        ({"IMPL-1": ["IMPL-3"], "IMPL-2": ["IMPL-1"], "IMPL-3": ["IMPL-2"]}, [("IMPL-1", "IMPL-3", "IMPL-2")]),
        # a part waits for what its parent waits for
        ({"IMPL-1": ["IMPL-2"], "IMPL-1.1": [], "IMPL-2": ["IMPL-1.1"]}, [("IMPL-1.1", "IMPL-2")]),
        # a container is over when its parts are
        ({"IMPL-1": [], "IMPL-1.1": ["IMPL-2"], "IMPL-2": ["IMPL-1"]}, [("IMPL-1", "IMPL-1.1", "IMPL-2")]),
        # naming the container is enough
        ({"IMPL-1": ["IMPL-2"], "IMPL-1.1": [], "IMPL-1.2": [], "IMPL-2": ["IMPL-1"]}, [("IMPL-1", "IMPL-2")]),
        # mistakes of one document
        ({"IMPL-1": ["IMPL-1"], "IMPL-2": [], "IMPL-2.1": ["IMPL-2"]}, []),
    ],
)
def test_circles_are_readable(depends_on, circles):
    rows = {id_: Row(id=id_, title="x", depends_on=tuple(others)) for id_, others in depends_on.items()}

    assert find_cycles(rows) == circles


def test_very_many_circles_are_cut_short():
    pairs = [(f"IMPL-{at}", f"IMPL-{at + 1}") for at in range(1, 2_001, 2)]
    rows = {a: Row(id=a, title="x", depends_on=(b,)) for pair in pairs for a, b in (pair, pair[::-1])}

    assert len(find_cycles(rows)) == 100
