from hypothesis import given
from hypothesis import strategies as st

from detent.core.task.row import Row
from detent.core.task.rules import plan_problems
from tests.support.task_model import S, calm, some_row, sound_rows


def row(id_: str, status=S.PENDING, *depends_on: str) -> Row:
    return Row(id=id_, title="x", status=status, depends_on=depends_on)


def test_everything_is_reported_at_once():
    rows = [
        row("IMPL-1"),
        row("IMPL-1"),
        row("IMPL-2.1"),
        row("IMPL-3", S.CONTAINER),
        row("IMPL-4"),
        row("IMPL-4.1", S.CONTAINER, "IMPL-9", "IMPL-4"),
        row("IMPL-5", S.PENDING, "IMPL-6"),
        row("IMPL-6", S.PENDING, "IMPL-5", "IMPL-6"),
    ]
    files = [f"{at}.json" for at in range(8)]

    found = {(problem.rule, problem.path, problem.file) for problem in plan_problems(rows, files)}

    assert found == {
        ("unique-id", "id", "1.json"),
        ("parent-exists", "context.parent", "2.json"),
        ("container", "status", "3.json"),
        ("container", "status", "4.json"),
        ("depth", "status", "5.json"),
        ("depends-on", "context.depends_on[0]", "5.json"),
        ("depends-on", "context.depends_on[1]", "5.json"),
        ("depends-on", "context.depends_on[1]", "7.json"),
        ("cycle", "context.depends_on", "6.json"),
    }
    assert any(problem.message.endswith("IMPL-5 -> IMPL-6 -> IMPL-5") for problem in plan_problems(rows))
    assert any("also in 0.json" in problem.message for problem in plan_problems(rows, files))


def test_a_task_that_cannot_be_read_is_not_missing():
    rows = [row("IMPL-1.1", S.PENDING, "IMPL-7")]

    assert plan_problems(rows, unreadable=["IMPL-1", "IMPL-7"]) == []
    assert len(plan_problems(rows)) == 2


@calm
@given(sound_rows())
def test_a_sound_plan_has_no_problems(rows):
    assert plan_problems(list(rows.values())) == []


@calm
@given(st.lists(some_row(), max_size=12))
def test_broken_rows_do_not_stop_the_report(rows):
    assert all(problem.rule and problem.message for problem in plan_problems(rows))
