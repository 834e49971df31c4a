import copy
import pickle
from collections.abc import Iterable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.workflow.graph import MAX_PHASES, Phase, Workflow, chain, problems, topological_order
from tests.support.values import diamond, row, workflow

KEYS = [f"p{number}" for number in range(9)]


@st.composite
def acyclic(draw) -> dict[str, tuple[str, ...]]:
    """Needs that point to phases earlier in a hidden order, declared in another order."""
    hidden = draw(st.permutations(KEYS[: draw(st.integers(1, len(KEYS)))]))
    needs = {
        key: tuple(draw(st.lists(st.sampled_from(hidden[:index]), unique=True))) if index else ()
        for index, key in enumerate(hidden)
    }
    return {key: needs[key] for key in draw(st.permutations(hidden))}


@st.composite
def any_graph(draw) -> dict[str, tuple[str, ...]]:
    keys = KEYS[: draw(st.integers(1, 7))]
    return {key: tuple(draw(st.lists(st.sampled_from(keys), unique=True, max_size=3))) for key in keys}


def reachable(edges: dict[str, tuple[str, ...]], key: str) -> set[str]:
    found: set[str] = set()
    waiting = list(edges[key])
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting.extend(edges[other])
    return found


def words(texts: Iterable[str]) -> set[str]:
    return {word.strip(",:") for text in texts for word in text.split()}


@given(acyclic())
def test_the_order_has_every_phase_once_and_behind_all_it_needs(needs):
    order = workflow(needs).order

    assert sorted(order) == sorted(needs)
    assert all(order.index(need) < order.index(key) for key in needs for need in needs[key])


@given(acyclic())
def test_the_order_keeps_to_the_declaration_wherever_needs_allow(needs):
    declared, order = list(needs), workflow(needs).order

    for position, key in enumerate(order):
        done = set(order[:position])
        possible = [other for other in declared if other not in done and set(needs[other]) <= done]
        assert key == possible[0]


@given(acyclic(), st.data())
def test_descendants_are_exactly_the_phases_that_need_it_on_some_path(needs, data):
    key = data.draw(st.sampled_from(list(needs)))

    found = workflow(needs).descendants(key)

    assert set(found) == {other for other in needs if key in reachable(needs, other)}
    assert list(found) == [other for other in workflow(needs).order if other in found]


@given(acyclic(), st.data())
def test_removing_phases_keeps_who_comes_before_whom(needs, data):
    gone = set(data.draw(st.lists(st.sampled_from(list(needs)), unique=True)))
    kept = [key for key in needs if key not in gone]

    left = workflow(needs).without(gone)

    assert [phase.key for phase in left.phases] == kept
    edges = {phase.key: phase.needs for phase in left.phases}
    assert all(reachable(edges, key) == reachable(needs, key) - gone for key in kept)
    assert not kept or problems(left) == []


@given(acyclic())
def test_a_graph_without_circles_has_no_problems(needs):
    assert problems(workflow(needs)) == []


@given(any_graph())
def test_every_phase_that_is_on_a_circle_is_reported(needs):
    on_circle = {key for key in needs if key in reachable(needs, key)}

    found = problems(workflow(needs))

    assert on_circle <= words(found)
    assert bool(found) == bool(on_circle)


@given(any_graph())
def test_every_reported_circle_is_one_in_the_direction_of_the_work(needs):
    circles = [text.split(": ")[1].split(" -> ") for text in problems(workflow(needs)) if "circle" in text]

    for circle in circles:
        assert circle[0] == circle[-1]
        assert len(set(circle)) == len(circle) - 1
        assert all(before in needs[after] for before, after in pairwise(circle))


@given(any_graph())
def test_every_phase_that_can_never_start_is_reported(needs):
    stuck = {key for key in needs if any(other in reachable(needs, other) for other in {key} | reachable(needs, key))}

    assert set(needs) - set(topological_order(workflow(needs).phases)) == stuck
    assert stuck <= words(problems(workflow(needs)))


def test_the_whole_circle_is_told():
    found = problems(workflow({"start": (), "a": ("start", "c"), "b": ("a",), "c": ("b",)}))

    assert found == ["phases need each other in a circle: a -> b -> c -> a"]


def test_a_phase_that_needs_itself_is_a_circle():
    assert problems(workflow({"a": ("a",)})) == ["phases need each other in a circle: a -> a"]


def test_all_problems_are_reported_at_once():
    graph = Workflow(
        name="trial",
        phases=(
            Phase(key="design"),
            Phase(key="build", needs=("desing",)),
            Phase(key="x", needs=("y",)),
            Phase(key="y", needs=("x",)),
            Phase(key="late", needs=("x",)),
            Phase(key="design"),
            Phase(key="no spaces"),
        ),
        sizes={"light": ("biuld",)},
    )

    found = problems(graph)

    assert found == [
        "phase design is declared twice",
        "phase key 'no spaces' must be 1 to 64 letters, digits, '.', '_' or '-'",
        "phase build needs desing, which is not one of its phases (did you mean design?)",
        "phases need each other in a circle: x -> y -> x",
        "phases that can never start: build, late",
        "size light leaves out biuld, which is not one of its phases (did you mean build?)",
    ]


@pytest.mark.parametrize("key", ["", "a" * 65, "a b", "a/b", "ä", "a\n"])
def test_a_key_that_no_file_or_token_could_hold_is_reported(key):
    assert len(problems(Workflow(name="trial", phases=(Phase(key=key),)))) == 1


def test_an_empty_graph_is_no_workflow():
    assert problems(Workflow(name="trial", phases=())) == ["it has no phases"]


def test_removing_a_phase_bridges_its_edges_without_doubling_them():
    left = diamond().without({"b", "c"})

    assert [(phase.key, phase.needs) for phase in left.phases] == [("a", ()), ("d", ("a",))]


def test_removing_a_phase_takes_it_out_of_the_sizes():
    graph = workflow(sizes={"light": ("b", "c"), "standard": ()})

    left = graph.without({"b"})

    assert left.sizes == {"light": ("c",), "standard": ()}
    assert problems(left) == []


def test_removing_many_phases_in_a_row_or_in_a_lattice_ends():
    """There are 2^100 ways through the lattice."""
    long = row(*(f"p{number}" for number in range(5_000)))
    layers = [(f"l{number}", f"r{number}") for number in range(100)]
    needs: dict[str, tuple[str, ...]] = {
        key: layers[index - 1] if index else ("start",) for index, layer in enumerate(layers) for key in layer
    }
    lattice = workflow({"start": (), **needs, "end": layers[-1]})

    assert long.without(long.order[1:-1]).by_key["p4999"].needs == ("p0",)
    assert lattice.without(key for layer in layers for key in layer).by_key["end"].needs == ("start",)


def test_the_largest_graph_is_ordered_and_one_more_phase_is_refused():
    largest = row(*(f"p{number}" for number in range(MAX_PHASES)))

    assert problems(largest) == []
    assert largest.order[-1] == f"p{MAX_PHASES - 1}"

    one_more = Workflow(name="trial", phases=(*largest.phases, Phase(key="more")))
    assert problems(one_more) == [f"it has {MAX_PHASES + 1} phases; the limit is {MAX_PHASES}"]


def test_the_digest_is_of_everything_the_workflow_says():
    plain = workflow()
    others = [
        workflow(name="other"),
        workflow(prefix="REQ"),
        workflow(sizes={"s": ()}),
        plain.without({"c"}),
        diamond(),
    ]

    assert workflow().digest == plain.digest
    assert len({plain.digest, *(other.digest for other in others)}) == 1 + len(others)


def test_the_digest_does_not_depend_on_where_the_workflow_came_from():
    plain = workflow(prefix="REQ", sizes={"light": ("a",)})
    copies = [
        pickle.loads(pickle.dumps(plain)),
        copy.deepcopy(plain),
        msgspec.json.decode(msgspec.json.encode(plain), type=Workflow),
        msgspec.structs.replace(plain, activation="".join(["expl", "icit"])),
    ]

    assert {other.digest for other in copies} == {plain.digest}


def test_a_chain_is_phases_that_follow_one_another():
    made = chain("ad-hoc", [("Plan", "planner"), ("Build", "builder")])

    assert [(phase.key, phase.agent, phase.needs) for phase in made.phases] == [
        ("phase_0", "planner", ()),
        ("phase_1", "builder", ("phase_0",)),
    ]
    assert problems(made) == []
