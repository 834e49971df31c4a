"""Compares a journal with its second copy, and joins every line of the two that verifies. Works on bytes."""

from bisect import bisect_left
from enum import StrEnum
from typing import NamedTuple, assert_never

from detent.errors import Corrupt
from detent.store.line import GENESIS, verified_sum

#: How much of the first damaged line people are shown.
_SHOWN = 60


class Condition(StrEnum):
    SOUND = "sound"
    #: The journal or its directory is gone.
    MISSING = "missing"
    #: Commits that were acknowledged are missing at its end: they were cut off, or an older backup was restored.
    SHORTER = "shorter"
    #: It verifies, but holds other commits than its second copy.
    DIFFERENT = "different"
    #: Lines of it do not verify.
    DAMAGED = "damaged"


class Chain(NamedTuple):
    """The lines at the start of a file that verify, and the bytes behind them."""

    lines: list[bytes]
    sums: list[str]
    rest: bytes

    @property
    def size(self) -> int:
        return sum(map(len, self.lines))


class Examined(NamedTuple):
    """What a journal holds in comparison with its second copy."""

    condition: Condition
    #: Commits of the journal, and of the copy, that verify from the start.
    commits: int
    copied: int
    #: Commits that both have from the start.
    common: int
    #: What stands behind the verified commits of the journal.
    rest: bytes
    #: Bytes behind the verified commits of the copy.
    copy_rest: int
    #: Commits that a repair leads to.
    mended: int

    @property
    def is_held(self) -> bool:
        """Whether the journal holds all that its second copy holds. It may be damaged behind that."""
        return self.condition is Condition.SOUND or (self.condition is Condition.DAMAGED and self.common == self.copied)

    @property
    def describes_rest(self) -> str:
        """What the damaged part of the journal is: its size, its first words, and whether it could be a commit."""
        lines = self.rest.splitlines()
        shown = lines[0][:_SHOWN].decode("utf-8", "replace") if lines else ""
        kinds = {_is_object(line) for line in lines}
        looks = "mixed" if len(kinds) > 1 else "JSON" if kinds == {True} else "no JSON"
        return f"{counted(len(self.rest), 'byte')} in {counted(len(lines), 'line')}, {looks}, beginning {shown!r}"


class Mended(NamedTuple):
    """A repaired journal."""

    journal: bytes
    commits: int
    #: Commits that only the second copy had.
    restored: int
    #: Lines of the old journal that are no part of the repaired one.
    set_aside: bytes


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def verify(data: bytes) -> Chain:
    """The lines of `data` that follow one another from the start. The last newline may be missing."""
    lines, sums, total, position = [], [], GENESIS, 0
    for line in _split(data):
        whole = line if line.endswith(b"\n") else line + b"\n"
        following = verified_sum(whole, total)
        if not following:
            break
        total, position = following, position + len(line)
        lines.append(whole)
        sums.append(total)
    return Chain(lines, sums, data[position:])


def following(data: bytes, total: str) -> bytes:
    """The lines at the start of `data` that follow the line with the sum `total`, each with its newline."""
    lines = []
    for line in _split(data):
        whole = line if line.endswith(b"\n") else line + b"\n"
        total = verified_sum(whole, total)
        if not total:
            break
        lines.append(whole)
    return b"".join(lines)


def examine(journal: bytes | None, copy: bytes | None) -> Examined:
    own, other = verify(journal or b""), verify(copy or b"")
    common = _common(own, other)
    # Good lines may stand behind a damaged one, here or in the copy.
    mended = mend(journal, copy).commits if own.rest or other.rest or common < len(other.lines) else len(own.lines)
    if journal is None:
        condition = Condition.MISSING
    elif common < min(len(own.lines), len(other.lines)):
        condition = Condition.DIFFERENT
    elif b"\n" in own.rest:
        condition = Condition.DAMAGED
    elif len(own.lines) < mended:
        condition = Condition.SHORTER
    elif not own.lines:
        condition = Condition.DAMAGED
    else:
        # Bytes without a newline are an unfinished write. The next append cuts them off.
        condition = Condition.SOUND
    return Examined(condition, len(own.lines), len(other.lines), common, own.rest, len(other.rest), mended)


def mend(journal: bytes | None, copy: bytes | None) -> Mended:
    """The longest journal that the lines of both give. Where they contradict each other, the copy counts."""
    own, other = verify(journal or b""), verify(copy or b"")
    common = _common(own, other)
    start = own if common == len(other.lines) else other
    lines, total = list(start.lines), start.sums[-1] if start.sums else GENESIS
    # A damaged or inserted line hides the good ones behind it: take all that go on from here, from either file.
    pools = [_split(journal or b""), _split(copy or b"")]
    is_growing = True
    while is_growing:
        is_growing = False
        for line in pools[0] + pools[1]:
            following = verified_sum(line, total)
            if following:
                lines.append(line)
                total, is_growing = following, True
    kept = set(lines)
    before = {line if line.endswith(b"\n") else line + b"\n" for line in pools[0]}
    aside = b"".join(line for line in pools[0] if line not in kept and line + b"\n" not in kept)
    return Mended(b"".join(lines), len(lines), sum(line not in before for line in lines), aside)


def _common(own: Chain, other: Chain) -> int:
    """The number of commits that both begin with."""
    # The sums are chained: if two are equal, everything before them is.
    both = range(min(len(own.sums), len(other.sums)))
    return bisect_left(both, 1, key=lambda number: int(own.sums[number] != other.sums[number]))


def _split(data: bytes) -> list[bytes]:
    """The lines with their newlines; only a newline ends a line."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _is_object(line: bytes) -> bool:
    import msgspec  # noqa: PLC0415 - only damage needs it

    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def changed_outside(session: str, examined: Examined) -> Corrupt:
    """The error for a journal that does not hold what its second copy holds."""
    copied = counted(examined.copied, "commit")
    way_out = f"detent doctor --restore {session} puts the second copy back"
    match examined.condition:
        case Condition.MISSING:
            what = f"the journal of {session} is gone; its second copy has {copied}"
        case Condition.SHORTER:
            what = (
                f"the journal of {session} ends at commit {examined.commits}, and its second copy at commit "
                f"{examined.mended}: commits were cut off, or an older backup was restored"
            )
            way_out += f"; detent forget {session} goes on from the journal as it stands"
        case Condition.DIFFERENT:
            what = (
                f"the journal of {session} was rewritten: behind commit {examined.common} it holds other commits than "
                f"its second copy, which ends at commit {examined.copied}"
            )
            way_out += f"; detent forget {session} goes on from the journal as it stands"
        case Condition.DAMAGED | Condition.SOUND:
            what = (
                f"the journal of {session} is damaged behind commit {examined.commits}: {examined.describes_rest}; its "
                f"second copy has {copied}"
            )
            way_out = f"detent doctor --restore {session} keeps what verifies and sets the rest aside"
        case _:
            assert_never(examined.condition)
    return Corrupt(what, way_out=way_out)
