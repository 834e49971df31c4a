"""A journal and its second copy, compared and joined: what each kind of damage is called, and what survives it."""

import random

import pytest

from detent.store.line import GENESIS, encode_line
from detent.store.recovery import Condition, examine, following, mend, verify
from tests.support.values import actor, journal


def lines(count, *, name="tester"):
    encoded, total = [], GENESIS
    for commit in journal(count):
        line, total = encode_line(commit if name == "tester" else replaced(commit, name), total)
        encoded.append(line)
    return encoded


def replaced(commit, name):
    import msgspec

    return msgspec.structs.replace(commit, actor=actor(name))


LINES = lines(6)
WHOLE = b"".join(LINES)
OTHER = b"".join(lines(6, name="nobody"))
FLIPPED = LINES[2].replace(b"once more", b"once mora")


@pytest.mark.parametrize(
    ("own", "copy", "condition", "mended"),
    [
        (WHOLE, WHOLE, Condition.SOUND, 6),
        (WHOLE, None, Condition.SOUND, 6),
        (WHOLE, b"".join(LINES[:4]), Condition.SOUND, 6),
        (WHOLE + b"half a line", WHOLE, Condition.SOUND, 6),
        (WHOLE[:-1], WHOLE, Condition.SOUND, 6),
        (WHOLE, b"".join(LINES[:4]) + b"half", Condition.SOUND, 6),
        (None, WHOLE, Condition.MISSING, 6),
        (b"", WHOLE, Condition.SHORTER, 6),
        (b"", None, Condition.DAMAGED, 0),
        (b"".join(LINES[:4]), WHOLE, Condition.SHORTER, 6),
        (b"".join(LINES[:4]) + LINES[4][:50], WHOLE, Condition.SHORTER, 6),
        (OTHER, WHOLE, Condition.DIFFERENT, 6),
        (OTHER, b"".join(LINES[:4]), Condition.DIFFERENT, 4),
        (WHOLE + b"oops\n", WHOLE, Condition.DAMAGED, 6),
        (WHOLE + b"oops\n", None, Condition.DAMAGED, 6),
        (b"".join([*LINES[:2], FLIPPED, *LINES[3:]]), WHOLE, Condition.DAMAGED, 6),
        (b"".join([*LINES[:2], FLIPPED, *LINES[3:]]), None, Condition.DAMAGED, 2),
    ],
)
def test_every_damage_has_a_name_and_a_repair(own, copy, condition, mended):
    examined = examine(own, copy)

    assert (examined.condition, examined.mended) == (condition, mended)
    assert condition is Condition.SOUND or mend(own, copy).commits == mended


def test_good_lines_behind_a_damaged_one_are_found_in_either_file():
    own = b"".join([*LINES[:2], FLIPPED, *LINES[3:]])

    mended = mend(own, b"".join(LINES[:3]))

    assert mended.journal == WHOLE
    assert mended.restored == 1
    assert mended.set_aside == FLIPPED


def test_a_line_that_was_put_in_between_is_taken_out_without_any_copy():
    mended = mend(b"".join([*LINES[:2], b"oops\n", *LINES[2:]]), None)

    assert (mended.journal, mended.set_aside, mended.restored) == (WHOLE, b"oops\n", 0)


def test_a_cut_journal_is_shorter_even_if_its_copy_is_damaged_in_the_middle():
    copy = b"".join([*LINES[:2], FLIPPED, *LINES[3:]])

    examined = examine(b"".join(LINES[:4]), copy)

    assert (examined.condition, examined.mended, examined.is_held) == (Condition.SHORTER, 6, False)


def test_a_rewritten_journal_is_set_aside_and_the_copy_counts():
    mended = mend(OTHER, WHOLE)

    assert (mended.journal, mended.set_aside, mended.restored) == (WHOLE, OTHER, 6)


def test_a_person_is_shown_what_the_damaged_part_is():
    shown = examine(WHOLE + b"oops\nagain\n", WHOLE).describes_rest
    mixed = examine(WHOLE + b'oops\n{"version":7}\n', WHOLE).describes_rest

    assert shown == "11 bytes in 2 lines, no JSON, beginning 'oops'"
    assert mixed == "19 bytes in 2 lines, mixed, beginning 'oops'"


def test_only_lines_that_verify_go_into_a_copy():
    total = verify(b"".join(LINES[:2])).sums[-1]

    assert following(b"".join(LINES[2:]) + b"oops\n", total) == b"".join(LINES[2:])
    assert following(b"".join(LINES[3:]), total) == b""


@pytest.mark.parametrize("seed", range(200))
def test_the_longest_run_of_lines_that_either_file_holds_survives(seed):
    chance = random.Random(seed)
    files = []
    for _ in range(2):
        kept = list(LINES)
        for _ in range(chance.randrange(4)):
            position = chance.randrange(len(kept)) if kept else 0
            match chance.randrange(3):
                case 0:
                    kept = kept[:position]
                case 1:
                    kept.insert(position, b"oops\n")
                case _ if kept:
                    kept[position] = kept[position][:-20] + b"x" + kept[position][-19:]
        files.append(b"".join(kept))
    held = {line + b"\n" for data in files for line in data.split(b"\n")}
    longest = next((count for count, line in enumerate(LINES) if line not in held), len(LINES))

    assert mend(*files).journal == b"".join(LINES[:longest])
