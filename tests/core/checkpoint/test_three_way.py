"""Files of two jobs are joined path by path; a path that both changed differently is a conflict."""

import pytest

from detent.core.checkpoint.manifest import Entry
from detent.core.checkpoint.three_way import join


def files(text: str) -> dict[str, Entry]:
    """`a1 b2`: the path a with the content 1, and b with 2."""
    return {name[0]: Entry("f", name[1], 1) for name in text.split()}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "taken", "conflicts"),
    [
        ("a1 b1", "a1 b1", "a1 b1", "", ""),
        ("a1 b1", "a2 b1", "a1 b2", "b", ""),
        ("a1", "a1", "", "a", ""),
        ("a1", "a1", "a1 b1", "b", ""),
        ("a1", "a2", "a2", "", ""),
        ("a1", "a2", "a3", "", "a"),
        ("a1", "a2", "", "", "a"),
        ("a1", "", "a2", "", "a"),
        ("a1", "", "", "", ""),
        ("", "a1", "a2", "", "a"),
    ],
)
def test_joining(base, ours, theirs, taken, conflicts):
    assert join(files(base), files(ours), files(theirs)) == (tuple(taken), tuple(conflicts))
