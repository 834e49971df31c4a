import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.task.id import MAX_NUMBER, TaskId, canonical, parent_of, parse_id, sort_key
from detent.errors import Invalid

ENDS = ["", "0", "1.0", "000", "1.", ".1", "1a", "-1", "1000000000", "1.1000000000", "1.-1"]
numbers = st.integers(1, MAX_NUMBER) | st.integers(1, 20)
task_ids = st.builds(TaskId, numbers, st.just(0) | numbers)


@given(task_ids)
def test_an_id_is_read_back_from_its_text(id_):
    assert parse_id(str(id_)) == id_
    assert canonical(str(id_)) == str(id_)


@given(task_ids, st.integers(0, 5), st.booleans())
def test_zeros_and_lower_case_make_no_other_id(id_, zeros, lower):
    number, _, part = str(id_).removeprefix("IMPL-").partition(".")
    text = f"IMPL-{'0' * zeros}{number}" + (f".{'0' * zeros}{part}" if part else "")

    assert canonical(text.lower() if lower else text) == str(id_)


@given(st.lists(task_ids))
def test_ids_are_ordered_as_people_count(ids):
    by_pair = sorted(ids, key=lambda id_: (id_.number, id_.part))

    assert sorted(ids) == by_pair
    assert sorted(map(str, ids), key=sort_key) == [str(id_) for id_ in by_pair]


@given(task_ids)
def test_the_parent_is_the_main_task(id_):
    assert parent_of(str(id_)) == (str(id_.parent) if id_.parent else None)
    assert id_.parent is None or (id_.parent < id_ < TaskId(id_.number + 1) and id_.parent.child(id_.part) == id_)


@pytest.mark.parametrize(
    "text",
    [
        "IMPL",
        *(f"IMPL-{rest}" for rest in ENDS),
        "TASK-1",
        "",
        "IMPL-1 ",
        " IMPL-1",
        "IMPL-1\n",
        "IMPL-\uff11",
        "\u0130MPL-1",
    ],
)
def test_what_is_no_id_is_refused_with_the_form(text):
    with pytest.raises(Invalid) as error:
        parse_id(text)
    assert repr(text) in str(error.value)
    assert "IMPL-N or IMPL-N.M" in str(error.value)


def test_a_third_level_is_refused_as_such():
    with pytest.raises(Invalid, match=r"IMPL-1\.2\.3.*two levels"):
        parse_id("IMPL-1.2.3")
    with pytest.raises(Invalid, match="subtask"):
        TaskId(1, 2).child(1)
