"""The lines that changed, by number."""

import pytest

from detent.core.reports.changed_lines import MAX_COMPARED, changed_lines, ranges


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (None, b"a\nb\n", {1, 2}),
        (b"a\nb\n", b"a\nb\n", set()),
        (b"a\nb\n", b"a\nx\nb\n", {2}),
        (b"a\nb\nc\n", b"a\nB\nc\n", {2}),
        (b"a\nb\nc\n", b"a\nc\n", set()),
        (b"a\nb\n", b"a\n\n\nb\n", set()),
        (b"a\nb\nc\nd\n", b"x\na\nb\ny\nd\n", {1, 4}),
        (b"", b"\0binary", set()),
    ],
)
def test_lines_that_were_added_or_changed(before, now, changed):
    assert changed_lines(before, now) == changed


def test_beyond_the_limit_all_lines_between_the_first_and_the_last_difference_count():
    many = [b"%d" % number for number in range(MAX_COMPARED)]
    now = [b"first", *(b"x" + line if number % 2 else line for number, line in enumerate(many)), b"last"]

    changed = changed_lines(b"\n".join([b"first", *many, b"last"]), b"\n".join(now))

    assert changed == set(range(3, MAX_COMPARED + 2))


def test_ranges_of_lines():
    assert ranges({5, 3, 4, 9}) == "3-5, 9"
