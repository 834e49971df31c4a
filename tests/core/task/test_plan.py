import sys
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.task.order import execution_order
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus
from detent.errors import NotFound
from tests.support.task_model import IDS, Model, S, calm, number, some_row, sound_rows

changes = st.lists(some_row() | st.sampled_from(IDS), max_size=25)


def plan_of(*rows: Row) -> Plan:
    return Plan(rows)


def row(id_: str, status: TaskStatus = S.PENDING, *depends_on: str) -> Row:
    return Row(id=id_, title=id_, status=status, depends_on=depends_on)


def assert_agrees(plan: Plan, rows: dict[str, Row]) -> None:
    model = Model(rows)
    order = model.order()
    ready = model.ready()
    assert {each.id: each for each in plan} == rows
    assert plan.ids == tuple(sorted(rows, key=number))
    assert plan.order == tuple(order)
    assert plan.next_ready() == next(iter(plan.ready), None)
    assert set(plan.ready) == ready
    assert [id_ for id_ in plan.ready if id_ in order] == [id_ for id_ in order if id_ in ready]
    assert {id_: set(waits) for id_, waits in plan.waiting.items()} == model.waiting()
    assert plan.leaves == tuple(id_ for id_ in plan.ids if model.is_leaf(id_))
    assert plan.leaf_count == len(plan.leaves)
    assert plan.counts == {s: sum(rows[id_].status is s for id_ in plan.leaves) for s in S}
    assert plan.missing == {
        id_: tuple(sorted({other for other in rows[id_].depends_on if other not in rows}, key=number))
        for id_ in plan.ids
        if any(other not in rows for other in rows[id_].depends_on)
    }
    for id_ in rows:
        assert plan.derived_state(id_) is model.derived(id_)
        assert plan.is_done(id_) == model.is_done(id_)
        assert plan.children(id_) == tuple(model.children(id_))
        assert set(plan.dependants(id_)) == {other for other in rows if id_ in rows[other].depends_on}
    for status in S:
        assert set(plan.with_status(status)) == {id_ for id_ in rows if rows[id_].status is status}


def after(plan: Plan, change: Row | str) -> Plan:
    if isinstance(change, Row):
        return plan.with_row(change)
    return plan.without(change) if change in plan else plan


def applied(rows: dict[str, Row], change: Row | str) -> dict[str, Row]:
    if isinstance(change, Row):
        return {**rows, change.id: change}
    return {id_: each for id_, each in rows.items() if id_ != change}


@calm
@given(changes)
def test_a_plan_says_after_every_change_what_its_rows_say(made):
    plan, rows = Plan(), {}
    for change in made:
        plan, rows = after(plan, change), applied(rows, change)
        assert_agrees(plan, rows)


@calm
@given(st.lists(some_row(), max_size=12))
def test_a_plan_built_at_once_is_the_one_built_row_by_row(rows):
    assert_agrees(Plan(rows), {each.id: each for each in rows})


@calm
@given(sound_rows(), st.data())
def test_status_changes_in_a_sound_plan(rows, data):
    plan = Plan(rows.values())
    for _ in range(data.draw(st.integers(1, 10))):
        changed = rows[data.draw(st.sampled_from(sorted(rows)))]
        if changed.status is S.CONTAINER:
            continue
        status = data.draw(st.sampled_from([each for each in S if each is not S.CONTAINER]))
        rows = {**rows, changed.id: msgspec.structs.replace(changed, status=status)}
        plan = plan.with_row(rows[changed.id])
        assert_agrees(plan, rows)


@calm
@given(sound_rows())
def test_every_leaf_of_a_sound_plan_has_its_place(rows):
    plan = Plan(rows.values())

    assert sorted(plan.order) == sorted(plan.leaves)
    assert plan.unordered == ()
    assert execution_order(rows.values()) == (plan.order, ())


@calm
@given(sound_rows(), st.permutations(range(40)))
def test_tasks_added_in_any_order_get_the_places_that_all_at_once_would_get(rows, shuffle):
    plan = Plan()
    added: dict[str, Row] = {}
    for _, each in sorted(zip(shuffle, rows.values(), strict=False), key=lambda pair: pair[0]):
        plan, added[each.id] = plan.with_row(each), each
        assert plan.next_ready() == next(iter(plan.ready), None)
        assert plan.order == execution_order(added.values())[0]


@calm
@given(changes)
def test_an_older_plan_stays_what_it_was(made):
    plans, states = [Plan()], [{}]
    for change in made:
        plans.append(after(plans[-1], change))
        states.append(applied(states[-1], change))

    for plan, rows in [*zip(plans, states, strict=True)][::3]:
        assert_agrees(plan, rows)
    assert_agrees(plans[-1], states[-1])


@calm
@given(changes, some_row(), some_row())
def test_two_plans_that_went_on_from_one_do_not_touch_each_other(made, left, right):
    plan, rows = Plan(), {}
    for change in made:
        plan, rows = after(plan, change), applied(rows, change)

    one, other = plan.with_row(left), plan.with_row(right)

    assert_agrees(one, applied(rows, left))
    assert_agrees(other, applied(rows, right))
    assert_agrees(plan, rows)


@calm
@given(changes)
def test_plans_with_the_same_rows_are_equal(made):
    plan, rows = Plan(), {}
    for change in made:
        plan, rows = after(plan, change), applied(rows, change)

    assert plan == Plan(rows.values())
    assert plan.with_row(row("IMPL-99")) != plan


@pytest.mark.parametrize(
    ("states", "derived"),
    [
        ([S.COMPLETED, S.COMPLETED], S.COMPLETED),
        ([S.COMPLETED, S.FAILED], S.FAILED),
        ([S.ACTIVE, S.FAILED], S.FAILED),
        ([S.ACTIVE, S.BLOCKED], S.ACTIVE),
        ([S.COMPLETED, S.PENDING], S.ACTIVE),
        ([S.COMPLETED, S.BLOCKED], S.ACTIVE),
        ([S.BLOCKED, S.BLOCKED], S.BLOCKED),
        ([S.BLOCKED, S.PENDING], S.PENDING),
        ([S.PENDING, S.PENDING], S.PENDING),
        ([], S.PENDING),
    ],
)
def test_a_container_stands_where_its_parts_put_it(states, derived):
    parts = [row(f"IMPL-1.{part}", state) for part, state in enumerate(states, 1)]

    assert plan_of(row("IMPL-1", S.CONTAINER), *parts).derived_state("IMPL-1") is derived


def test_a_subtask_waits_for_what_its_parent_waits_for():
    plan = plan_of(row("IMPL-1"), row("IMPL-2", S.CONTAINER, "IMPL-1"), row("IMPL-2.1"))

    assert plan.ready == ("IMPL-1",)
    assert plan.waiting == {"IMPL-2.1": ("IMPL-1",)}
    assert plan.with_row(row("IMPL-1", S.COMPLETED)).ready == ("IMPL-2.1",)


def test_a_container_is_waited_for_until_its_last_part_is_completed():
    plan = plan_of(
        row("IMPL-1", S.CONTAINER), row("IMPL-1.1", S.COMPLETED), row("IMPL-1.2"), row("IMPL-2", S.PENDING, "IMPL-1")
    )

    assert plan.waiting_for("IMPL-2") == ("IMPL-1",)
    assert plan.with_row(row("IMPL-1.2", S.COMPLETED)).next_ready() == "IMPL-2"


def test_a_container_without_parts_is_neither_ready_nor_done():
    plan = plan_of(row("IMPL-1", S.CONTAINER), row("IMPL-2", S.PENDING, "IMPL-1"))

    assert plan.next_ready() is None
    assert plan.order == ("IMPL-2",)


def test_the_next_task_is_the_first_in_the_order_not_the_lowest():
    plan = plan_of(row("IMPL-1", S.PENDING, "IMPL-5"), row("IMPL-3"), row("IMPL-5", S.COMPLETED))

    assert plan.order == ("IMPL-3", "IMPL-5", "IMPL-1")
    assert plan.ready == ("IMPL-3", "IMPL-1")
    assert plan.next_ready() == "IMPL-3"


def test_descendants_are_all_that_wait_on_some_path():
    plan = plan_of(
        row("IMPL-1", S.CONTAINER),
        row("IMPL-1.1", S.FAILED),
        row("IMPL-2", S.CONTAINER, "IMPL-1"),
        row("IMPL-2.1"),
        row("IMPL-3", S.PENDING, "IMPL-2", "IMPL-4"),
        row("IMPL-4", S.FAILED),
        row("IMPL-5"),
    )

    assert plan.descendants("IMPL-1.1") == ("IMPL-2", "IMPL-2.1", "IMPL-3")


def test_a_plan_is_completed_when_every_leaf_is():
    plan = plan_of(row("IMPL-1", S.CONTAINER), row("IMPL-1.1", S.COMPLETED), row("IMPL-2"))

    assert not Plan().is_completed
    assert not plan.is_completed
    assert plan.with_row(row("IMPL-2", S.COMPLETED)).is_completed


def test_a_task_that_is_not_there_is_not_found():
    with pytest.raises(NotFound, match="IMPL-7"):
        Plan().without("IMPL-7")
    with pytest.raises(NotFound, match="IMPL-7"):
        Plan()["IMPL-7"]


def test_a_change_of_status_does_not_touch_the_rest_of_a_large_plan(monkeypatch):
    plan = Plan(row(f"IMPL-{at}", S.PENDING, *([f"IMPL-{at - 1}"] if at % 3 else [])) for at in range(1, 2_001))
    assert plan.next_ready() == "IMPL-1" or plan.next_ready()
    monkeypatch.setattr("detent.core.task.order.turns", None)

    for _ in range(1_000):
        started = plan.next_ready()
        assert started
        plan = plan.with_row(row(started, S.COMPLETED, *plan[started].depends_on))
    plan = plan.with_row(row("IMPL-2001")).with_row(row("IMPL-2000.1")).without("IMPL-2001")

    assert plan.next_ready()
    assert len(plan.with_status(S.COMPLETED)) == 1_000


def test_threads_may_ask_and_change_the_plans_of_a_line():
    """A thread asks an older plan while another continues the line: each plan keeps its value."""
    first = plan_of(*(row(f"IMPL-{n}") for n in range(1, 41)))
    stop, wrong = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            if first.next_ready() != "IMPL-1" or first.ready_count != 40 or first.with_status(S.ACTIVE):
                wrong.append(first)
                return

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(25):
            plan = first
            for number_ in range(1, 41):
                assert plan.next_ready() == f"IMPL-{number_}"
                plan = plan.with_row(row(f"IMPL-{number_}", S.ACTIVE))
            assert plan.next_ready() is None
    finally:
        stop.set()
        asking.join()
        sys.setswitchinterval(interval)
    assert not wrong
