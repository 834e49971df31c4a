"""Compares a journal with its second copy, and joins every line of the two that verifies. Works on bytes."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, assert_never

from detent.core.counted import counted
from detent.errors import Corrupt, UnknownFormat
from detent.store.journal_tail import SUM_TAIL, sum_at_end
from detent.store.line import GENESIS, decode_line, verified_sum

#: How much of the first damaged line people are shown.
_SHOWN = 60
_VERSION = re.compile(rb'\{(?:"format":\d+,)?"version":(\d{1,18}),')


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
    #: It verifies, but a commit of it cannot be decoded, or cannot follow those before it.
    UNREADABLE = "unreadable"


class Chain(NamedTuple):
    """The lines at the start of a file that verify, and the bytes behind them."""

    lines: list[bytes]
    sums: list[str]
    rest: bytes

    @property
    def size(self) -> int:
        return sum(map(len, self.lines))


class Examined(NamedTuple):
    """The content of a journal in comparison with its second copy."""

    condition: Condition
    #: Commits of the journal, and of the copy, that verify from the start.
    commits: int
    copied: int
    #: Commits that the journal and the repaired one begin with.
    common: int
    #: What stands behind the verified commits of the journal.
    rest: bytes
    #: Bytes behind the verified commits of the copy.
    copy_rest: int
    #: Lines of the copy that no longer verify, and are no damaged form of a commit that is known.
    unknown: int
    #: Commits that a repair leads to.
    mended: int

    @property
    def is_held(self) -> bool:
        """Whether the journal holds all that its second copy holds. It may be damaged behind that."""
        is_damaged_behind = self.condition is Condition.DAMAGED and self.copied <= self.commits and not self.unknown
        return self.condition is Condition.SOUND or is_damaged_behind

    @property
    def describes_rest(self) -> str:
        """Describe the damaged part of the journal: its size, its first words, and whether it could be a commit."""
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
    #: Lines of the old journal and of its copy that are no part of the repaired one.
    set_aside: bytes


def verify(data: bytes) -> Chain:
    """The lines of `data` that follow one another from the start. The last newline may be missing."""
    lines, sums, total, position = [], [], GENESIS, 0
    for line in _split(data):
        whole = _whole(line)
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
        whole = _whole(line)
        total = verified_sum(whole, total)
        if not total:
            break
        lines.append(whole)
    return b"".join(lines)


def examine(journal: bytes | None, copy: bytes | None, *, follow: bool = False) -> Examined:
    """Compare the journal with its copy; with `follow` also check that each commit can follow those before it."""
    own, other = verify(journal or b""), verify(copy or b"")
    common, best, unknown = _common(own, other), own, 0
    if own.rest or other.rest or common < len(other.lines):
        # Good lines may stand behind a damaged one, here or in the copy.
        best = _joined(_split(journal or b""), _split(copy or b""))
        unknown = len(_unknown(_split(other.rest), best))
    common = common if unknown else _common(own, best)
    mended = followed(best.lines) if follow or best is not own else len(best.lines)
    if journal is None:
        condition = Condition.MISSING
    elif common < len(own.lines) and (common < mended or unknown):
        condition = Condition.DIFFERENT
    elif b"\n" in own.rest:
        condition = Condition.DAMAGED
    elif len(own.lines) < mended or unknown:
        condition = Condition.SHORTER
    elif not own.lines:
        condition = Condition.DAMAGED
    elif mended < len(own.lines):
        condition = Condition.UNREADABLE
    else:
        # Bytes without a newline are an unfinished write. The next append cuts them off.
        condition = Condition.SOUND
    return Examined(condition, len(own.lines), len(other.lines), common, own.rest, len(other.rest), unknown, mended)


def mend(journal: bytes | None, copy: bytes | None) -> Mended:
    """The journal with the most commits of the copy; among several, the longest. What is no part of it is set aside."""
    own, other = _split(journal or b""), _split(copy or b"")
    lines = _joined(own, other).lines
    del lines[followed(lines) :]
    kept, before = set(lines), set(map(_whole, own))
    aside = dict.fromkeys(line for line in (*own, *other) if _whole(line) not in kept)
    return Mended(b"".join(lines), len(lines), sum(line not in before for line in lines), b"".join(map(_whole, aside)))


def followed(lines: Iterable[bytes]) -> int:
    """The number of commits from the first on that can be decoded, and follow those before them."""
    from detent.core.session.evolve import evolve  # noqa: PLC0415 - only damage needs it

    session, total, count = None, GENESIS, 0
    for line in lines:
        try:
            commit, total = decode_line(line, total, count + 1, "")
            session = evolve(session, commit)
        except UnknownFormat:
            raise
        except Corrupt:
            break
        count += 1
    return count


class _Node(NamedTuple):
    """A line, and the best lines before it."""

    line: bytes
    sum: str
    before: "_Node | None"
    #: The number of lines up to this one that the copy holds, and the number of all.
    copied: int
    number: int


def _joined(journal: list[bytes], copy: list[bytes]) -> Chain:
    """The lines of both that follow one another: those with the most lines of the copy; among them, the most lines.

    A damaged line of one file hides the good ones behind it, and a rewritten journal still holds good ones before the
    first that was changed. So every way through the lines of both is followed.
    """
    held = set(map(_whole, copy))
    numbered: dict[int, list[bytes]] = {}
    for line in dict.fromkeys(map(_whole, (*copy, *journal))):
        numbered.setdefault(_stated_version(line), []).append(line)
    best = root = _Node(b"", GENESIS, None, 0, 0)
    last = [root]
    while last:
        last = [
            _Node(line, total, node, node.copied + (line in held), node.number + 1)
            for node in last
            for line in numbered.get(node.number + 1, ())
            if (total := verified_sum(line, node.sum))
        ]
        best = max((best, *last), key=lambda node: (node.copied, node.number))
    lines, sums, node = [], [], best
    while node.before is not None:
        lines.append(node.line)
        sums.append(node.sum)
        node = node.before
    return Chain(lines[::-1], sums[::-1], b"")


def _unknown(lines: list[bytes], chain: Chain) -> list[bytes]:
    """The lines that end like a commit, and share neither the sum nor the rest with a line of the chain."""
    sums, bodies = set(chain.sums), {line[:-SUM_TAIL] for line in chain.lines}
    return [line for line in lines if sum_at_end(line) not in {"", *sums} and line[:-SUM_TAIL] not in bodies]


def _common(own: Chain, other: Chain) -> int:
    """The number of commits that both begin with."""
    # The sums are chained: if two are equal, everything before them is.
    both = range(min(len(own.sums), len(other.sums)))
    return bisect_left(both, 1, key=lambda number: int(own.sums[number] != other.sums[number]))


def _stated_version(line: bytes) -> int:
    """The number of the commit that the line says it is, unverified; 0 if it does not say."""
    version = _VERSION.match(line)
    return int(version[1]) if version else 0


def _whole(line: bytes) -> bytes:
    """The line with its newline, which may be missing at the end of a file."""
    return line if line.endswith(b"\n") else line + b"\n"


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
    as_it_stands = f"; detent forget {session} goes on from the journal as it stands"
    unknown = f"{counted(examined.unknown, 'line')} of its second copy can no longer be verified"
    if examined.unknown:
        way_out = f"detent doctor --restore {session} keeps what verifies and sets the rest aside"
    match examined.condition:
        case Condition.MISSING:
            what = f"the journal of {session} is gone; its second copy has {copied}"
        case Condition.SHORTER:
            copy_ends = f"its second copy at commit {examined.mended}"
            what = (
                f"the journal of {session} ends at commit {examined.commits}, and "
                f"{unknown if examined.unknown else copy_ends}: commits were cut off, or an older backup was restored"
            )
            way_out += as_it_stands
        case Condition.DIFFERENT:
            copy_ends = (
                f"which ends at commit {examined.copied}"
                if examined.copied > examined.common
                else "which is damaged there"
            )
            what = (
                f"the journal of {session} was rewritten: behind commit {examined.common} it holds other commits than "
                f"its second copy, {copy_ends}"
            )
            way_out += as_it_stands
        case Condition.UNREADABLE:
            what = (
                f"the journal of {session} goes on behind commit {examined.mended} with a commit that cannot follow: "
                "a newer Detent or another program wrote it"
            )
            way_out = f"upgrade, or detent doctor --restore {session} sets it aside, and all commits behind it"
        case Condition.DAMAGED | Condition.SOUND:
            what = (
                f"the journal of {session} is damaged behind commit {examined.commits}: {examined.describes_rest}; its "
                f"second copy has {copied}"
            )
            way_out = f"detent doctor --restore {session} keeps what verifies and sets the rest aside"
        case _:
            assert_never(examined.condition)
    return Corrupt(what, way_out=way_out)
