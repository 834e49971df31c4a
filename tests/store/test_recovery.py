"""A journal and its second copy, compared and joined: what each kind of damage is called, and what survives it."""

import random

import msgspec
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


def rewritten(lines_kept):
    """The lines of `SHORT` with another author behind the first ones, and sums that verify."""
    encoded, total = [], GENESIS
    for number, commit in enumerate(journal(len(SHORT))):
        line, total = encode_line(commit if number < lines_kept else replaced(commit, "nobody"), total)
        encoded.append(line)
    return b"".join(encoded)


def appended(**changes):
    """`SHORT` and one more line, whose sum is right."""
    *_, total = verify(b"".join(SHORT)).sums
    more = journal(len(SHORT) + 1)[-1]
    return b"".join([*SHORT, encode_line(msgspec.structs.replace(more, **changes), total)[0]])


SHORT = lines(4)


def damaged_files():
    """Every kind of damage to a file of four commits, at each of its lines."""
    whole = b"".join(SHORT)
    yield "whole", whole
    yield "gone", None
    yield "garbage at its end", whole + b"oops\n"
    yield "another commit at its end", appended()
    yield "a commit of another number at its end", appended(version=9)
    yield "a commit that cannot follow at its end", appended(events=journal(1)[0].events)
    for number, line in enumerate(SHORT):
        before, behind = b"".join(SHORT[:number]), b"".join(SHORT[number + 1 :])
        yield f"cut before {number}", before
        yield f"cut in {number}", before + line[:30]
        yield f"cut before the newline of {number}", before + line[:-1]
        yield f"flipped in {number}", before + line[:20] + b"\x00" + line[21:] + behind
        yield f"flipped in the sum of {number}", before + line[:-10] + b"x" + line[-9:] + behind
        yield f"flipped in both of {number}", before + line[:20] + b"\x00" + line[21:-10] + b"x" + line[-9:] + behind
        yield f"flipped newline of {number}", before + line[:-1] + b"\x0b" + behind
        yield f"inserted before {number}", before + b"oops\n" + line + behind
        yield f"without {number}", before + behind
        yield f"twice {number}", before + line + line + behind
        yield f"rewritten from {number}", rewritten(number)


DAMAGED = dict(damaged_files())


@pytest.mark.parametrize("of_copy", DAMAGED)
def test_no_damage_to_a_journal_and_its_copy_loses_a_line_that_either_holds(of_copy):
    copy = DAMAGED[of_copy]
    for of_journal, own in DAMAGED.items():
        label = f"the journal: {of_journal}, the copy: {of_copy}"
        examined, mended = examine(own, copy, follow=True), mend(own, copy)

        result = mended.journal.splitlines(keepends=True)
        kept = {*result, *mended.set_aside.split(b"\n"), *mended.set_aside.splitlines(keepends=True)}
        files = [data for data in (own, copy) if data]
        assert {line for data in files for line in data.split(b"\n") if line and line + b"\n" not in kept} <= kept, (
            label
        )
        # The commits that were acknowledged, as far as the lines of both give them.
        held = {line + b"\n" for data in files for line in data.split(b"\n")}
        count = next((number for number, line in enumerate(SHORT) if line not in held), len(SHORT))
        assert "rewritten" in of_copy or result[:count] == SHORT[:count], label
        assert examined.mended == mended.commits == len(result), label
        assert examine(mended.journal, mended.journal, follow=True).condition is Condition.SOUND or not result, label
        # A journal that passes holds the result, and every commit that the copy shows.
        if examined.condition is Condition.SOUND:
            assert verify(own).lines == result, label
            assert "flipped in both" in of_copy or (held & set(SHORT)) <= set(result), label


@pytest.mark.parametrize("damaged", range(5))
def test_a_copy_with_a_damaged_line_still_shows_that_the_journal_was_rewritten(damaged):
    copy = b"".join([*LINES[:damaged], LINES[damaged][:-20] + b"x" + LINES[damaged][-19:], *LINES[damaged + 1 :]])
    other = lines(6, name="nobody")
    for kept in range(6):
        own = b"".join(LINES[:kept]) + b"".join(continued(LINES[:kept], other[kept:]))

        examined, mended = examine(own, copy), mend(own, copy)

        assert examined.condition is Condition.DIFFERENT
        assert mended.journal.startswith(b"".join(LINES if kept > damaged else LINES[:damaged]))


def continued(before, behind):
    """The commits of the lines `behind`, with sums that follow those of `before`."""
    total = verify(b"".join(before)).sums[-1] if before else GENESIS
    for commit in journal(len(before) + len(behind))[len(before) :]:
        line, total = encode_line(replaced(commit, "nobody"), total)
        yield line


def test_a_commit_that_cannot_follow_is_set_aside_although_its_sum_is_right():
    own = appended(events=journal(1)[0].events, version=9)

    assert examine(own, own).condition is Condition.SOUND
    assert examine(own, own, follow=True).condition is Condition.UNREADABLE
    assert mend(own, own).journal == b"".join(SHORT)
    assert mend(own, own).set_aside == own.removeprefix(b"".join(SHORT))
