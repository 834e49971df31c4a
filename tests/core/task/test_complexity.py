import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.task.complexity import Complexity, check_override, complexity, raised
from detent.errors import Refused


@pytest.mark.parametrize(
    ("leaves", "parts", "expected"),
    [
        (0, 0, "simple"),
        (4, 0, "simple"),
        (5, 0, "medium"),
        (15, 0, "medium"),
        (16, 0, "complex"),
        (2, 1, "medium"),
        (16, 1, "complex"),
    ],
)
def test_complexity_follows_the_number_of_leaves(leaves, parts, expected):
    assert complexity(leaves, has_subtasks=bool(parts)) == expected


@given(st.lists(st.sampled_from(Complexity), min_size=1))
def test_complexity_never_falls(seen):
    stored = seen[0]
    for other in seen:
        assert raised(stored, other).rank >= stored.rank
        stored = raised(stored, other)
    assert stored.rank == max(each.rank for each in seen)


def test_lowering_is_refused():
    assert check_override(Complexity.SIMPLE, Complexity.COMPLEX) is Complexity.COMPLEX
    with pytest.raises(Refused, match="only rises"):
        check_override(Complexity.MEDIUM, Complexity.SIMPLE)
