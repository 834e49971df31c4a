"""Places that are given without working all of them out again: each story is one where that is easily done wrong."""

import pytest

from detent.core.task.order import execution_order
from detent.core.task.plan import Plan
from detent.core.task.row import Row

STORIES = {
    "a part that waits for a container, then one that waits for nothing": "1; 2; 2.1; 3; 10; 10.1 < 2; 10.2; 11",
    "a lower part after a higher one": "1; 5; 5.2; 5.1; 6",
    "a part of a task that others wait for": "1 < 5; 5; 5.1; 5.2; 6; 7 < 5",
    "a part that waits for what comes later": "1; 3 < 9; 9; 3.1 < 9; 3.2",
    "a part that waits for a container with late parts": "1 < 9; 2; 9; 9.1 < 1; 10; 2.1 < 9; 2.2",
    "a last part of a container that others wait for": "1 < 9; 9; 9.1; 9.2",
    "a task that was waited for before it was there": "1 < 4; 2; 4; 3",
    "a parent that comes after its part": "2.1; 3; 1; 2 < 3; 4",
    "behind a circle": "1 < 2; 2 < 1; 3 < 2; 3.1; 4",
    "a circle that is opened by a removal": "1; 2; 2.1 < 3; 3 < 2; -2.1; -3; 4; -4",
    "a part of a circle that no task waits for": "1; 1.1 < 1; 1.2; -1.1; 2",
    "the last part leaves a task that had no turn of its own": "1; 3; 1.1 < 3; -1.1; 4",
    "the last part leaves": "1; 1.1; 2; -1.1; 3; -3",
    "one of several parts leaves": "1 < 2; 2; 2.1; 2.2 < 3; 3; -2.2; 4",
    "a dependency that changes": "1; 2; 3; 1 < 3; 1 < 2; 1",
    "numbers come back": "1; 2; 3; -3; 3 < 1; -2; 2 < 3",
}


def change(text: str) -> Row | str:
    head, _, needed = text.strip().partition(" < ")
    if head.startswith("-"):
        return f"IMPL-{head[1:]}"
    return Row(id=f"IMPL-{head}", title="x", depends_on=(f"IMPL-{needed}",) if needed else ())


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_places_are_those_that_all_tasks_together_would_get(story):
    plan = Plan()
    for text in story.split(";"):
        made = change(text)
        plan = plan.with_row(made) if isinstance(made, Row) else plan.without(made)
        fresh = Plan(plan)

        assert (plan.order, plan.unordered) == execution_order(plan)
        assert (plan.ready, plan.next_ready()) == (fresh.ready, fresh.next_ready())
