import re
from itertools import product

import pytest

from detent.core.task.lifecycle import (
    TRANSITIONS,
    Action,
    action_for,
    allowed,
    check_start,
    next_status,
    possibly_stale,
)
from detent.core.task.plan import Plan
from detent.core.task.row import Row
from detent.errors import Refused
from tests.support.task_model import S

TABLE = """
            start   done       fail    block    unblock  resume  retry    release  reopen   split      restore  keep
pending     active  .          .       blocked  .        .       .        .        .        container  .        .
active      .       completed  failed  blocked  .        .       .        pending  .        .          .        active
completed   .       .          .       .        .        .       .        .        pending  .          .        .
blocked     .       .          .       .        pending  active  .        .        .        .          .        .
container   .       .          .       .        .        .       .        .        .        .          pending    .
failed      .       .          .       .        .        .       pending  .        .        .          .        .
"""
HEAD, *LINES = (line.split() for line in TABLE.strip().splitlines())
CELLS = {
    (S(status), Action(action)): cell for status, *cells in LINES for action, cell in zip(HEAD, cells, strict=True)
}


def row(id_: str, status=S.PENDING, *depends_on: str) -> Row:
    return Row(id=id_, title="x", status=status, depends_on=depends_on)


def test_the_table_has_every_cell():
    assert set(CELLS) == set(product(S, Action))


@pytest.mark.parametrize(("status", "action"), list(CELLS))
def test_every_cell_leads_where_it_should_or_is_refused_with_what_is_allowed(status, action):
    if CELLS[status, action] != ".":
        assert next_status("IMPL-1", status, action) == CELLS[status, action]
        return
    with pytest.raises(Refused) as error:
        next_status("IMPL-1", status, action)
    assert str(error.value) == f"IMPL-1 is {status}: {action} is not possible; allowed: {', '.join(allowed(status))}"


@pytest.mark.parametrize(("status", "wanted"), list(product(S, S)))
def test_every_change_of_status_has_one_way_or_is_refused_and_none_is_needed_to_stay(status, wanted):
    indirect = (Action.SPLIT, Action.RESTORE, Action.KEEP)
    ways = [action for action in Action if TRANSITIONS.get((status, action)) is wanted and action not in indirect]
    if status is wanted:
        assert action_for("IMPL-1", status, wanted) is None
    elif ways:
        assert [action_for("IMPL-1", status, wanted)] == ways
    else:
        with pytest.raises(Refused, match=f"cannot become {wanted}; allowed: "):
            action_for("IMPL-1", status, wanted)


def test_a_task_starts_only_as_a_leaf_that_waits_for_nothing():
    plan = Plan(
        [row("IMPL-1"), row("IMPL-2", S.CONTAINER), row("IMPL-2.1", S.PENDING, "IMPL-1"), row("IMPL-3", S.ACTIVE)]
    )

    check_start(plan, "IMPL-1")
    for id_, reason in [
        ("IMPL-2", "container"),
        ("IMPL-2.1", "waits for IMPL-1"),
        ("IMPL-3", "is active: start is not possible"),
    ]:
        with pytest.raises(Refused, match=re.escape(reason)):
            check_start(plan, id_)


def test_a_container_without_parts_has_nothing_to_start():
    with pytest.raises(Refused, match="is a container") as error:
        check_start(Plan([row("IMPL-2", S.CONTAINER)]), "IMPL-2")
    assert error.value.way_out is None


def test_completed_work_that_built_on_a_task_may_be_stale():
    plan = Plan(
        [
            row("IMPL-1", S.COMPLETED),
            row("IMPL-2", S.COMPLETED, "IMPL-1"),
            row("IMPL-3", S.PENDING, "IMPL-2"),
            row("IMPL-4", S.COMPLETED, "IMPL-2"),
            row("IMPL-5", S.COMPLETED),
        ]
    )

    assert possibly_stale(plan, "IMPL-1") == ("IMPL-2", "IMPL-4")
