"""Titles on one line of Markdown."""

import pytest

from detent.core.task.title import escaped, one_line

UNSEEN = [0x061C, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]


@pytest.mark.parametrize("unseen", [*map(chr, UNSEEN)])
def test_characters_that_turn_the_direction_are_left_out(unseen):
    assert escaped(f"fix {unseen}gnp.exe{unseen} now") == "fix gnp.exe now"
    assert one_line(f"a{unseen}b") == "ab"
