"""Task ids: `IMPL-N`, or `IMPL-N.M` for a part of it. Case and leading zeros do not matter: `impl-001` is `IMPL-1`."""

import re
from collections.abc import Iterable
from sys import intern

import msgspec

from detent.errors import Invalid

PREFIX = "IMPL-"
MAX_NUMBER = 999_999_999
FORM = "IMPL-N or IMPL-N.M with N and M from 1 to 999999999"
_ID = re.compile(r"IMPL-0*([1-9][0-9]{0,8})(?:\.0*([1-9][0-9]{0,8}))?", re.ASCII | re.IGNORECASE)
_CANONICAL = re.compile(r"IMPL-[1-9][0-9]{0,8}(?:\.[1-9][0-9]{0,8})?", re.ASCII)
_TOO_DEEP = re.compile(r"IMPL-[0-9]+(?:\.[0-9]+){2,}", re.ASCII | re.IGNORECASE)
_PART_BITS = 32


class TaskId(msgspec.Struct, frozen=True, order=True, gc=False):
    """Ordered as people count: IMPL-2 before IMPL-10, a task before its parts. `part` is 0 for a main task."""

    number: int
    part: int = 0

    def __str__(self) -> str:
        return f"{PREFIX}{self.number}.{self.part}" if self.part else f"{PREFIX}{self.number}"

    @property
    def is_subtask(self) -> bool:
        return self.part > 0

    @property
    def parent(self) -> "TaskId | None":
        return TaskId(self.number) if self.part else None

    def child(self, part: int) -> "TaskId":
        if self.part:
            raise Invalid(f"{self} is a subtask and cannot have parts", way_out="add a main task instead")
        return TaskId(self.number, part)


def parse_id(text: str) -> TaskId:
    """The id that `text` spells; `Invalid` if it spells none."""
    id_ = read_id(text)
    if id_ is None:
        raise Invalid(f"{str(text)[:80]!r} is not a task id: {id_problem(str(text))}")
    return id_


def read_id(text: object) -> TaskId | None:
    match = _ID.fullmatch(text) if isinstance(text, str) else None
    return TaskId(int(match[1]), int(match[2] or 0)) if match else None


def is_too_deep(text: str) -> bool:
    return _TOO_DEEP.fullmatch(text) is not None


def id_problem(text: str) -> str:
    """Why `text` is no id."""
    if is_too_deep(text):
        return "there are two levels at most, IMPL-N and IMPL-N.M"
    return f"it must be {FORM}"


def canonical(text: str) -> str:
    """The spelling under which tasks are looked up, as one interned object per id."""
    if isinstance(text, str) and _CANONICAL.fullmatch(text):
        return intern(text)
    return intern(str(parse_id(text)))


def sort_key(canonical_id: str) -> int:
    """A number that orders canonical ids as `TaskId` does, for sorting many of them."""
    number, _, part = canonical_id[len(PREFIX) :].partition(".")
    return int(number) << _PART_BITS | int(part) if part else int(number) << _PART_BITS


def parent_of(canonical_id: str) -> str | None:
    return canonical_id.partition(".")[0] if "." in canonical_id else None


def children_of(canonical_ids: Iterable[str]) -> dict[str, set[str]]:
    """The ids of the parts, by their container."""
    children: dict[str, set[str]] = {}
    for id_ in canonical_ids:
        if "." in id_:
            children.setdefault(id_.partition(".")[0], set()).add(id_)
    return children
