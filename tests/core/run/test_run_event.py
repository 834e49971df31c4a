"""What a run tells about people: the same need has the same key, however it is said."""

from itertools import combinations

import msgspec
import pytest

from detent.core.run.run_event import Need, PersonNeeded
from tests.support.values import NOON

NEEDED = PersonNeeded(
    at=NOON, need=Need.APPROVAL, phase="a", text="0 of 2 approvals", way_out="detent approve", about="approval"
)


def changed(**fields):
    return msgspec.structs.replace(NEEDED, **fields)


@pytest.mark.parametrize(
    "fields", [{"text": "1 of 2 approvals"}, {"way_out": "detent approve a"}, {"choices": ("y", "n")}]
)
def test_what_is_said_about_a_thing_may_change_and_it_is_still_the_same_thing(fields):
    assert changed(**fields).key == NEEDED.key


def test_needs_about_different_things_have_different_keys():
    others = [
        NEEDED,
        changed(need=Need.ANSWER),
        changed(phase="b"),
        changed(about="consensus"),
        changed(about="", text="one"),
        changed(about="", text="another"),
    ]

    assert all(one.key != other.key for one, other in combinations(others, 2))


def test_the_key_is_not_told_since_everybody_can_work_it_out():
    assert set(msgspec.to_builtins(NEEDED)) == {"type", "at", "need", "phase", "text", "way_out", "about"}
