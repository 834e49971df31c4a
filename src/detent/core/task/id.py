"""Task ids: `IMPL-N`, or `IMPL-N.M` for a part of it. They are numbers: `impl-001` and `IMPL-1` are the same id."""

import re
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
    """Lower case and leading zeros are fine; anything else but the form is refused."""
    found = read_id(text)
    if found is None:
        raise Invalid(f"{str(text)[:80]!r} is not a task id: {id_problem(str(text))}")
    return found


def read_id(text: object) -> TaskId | None:
    found = _ID.fullmatch(text) if isinstance(text, str) else None
    return TaskId(int(found[1]), int(found[2] or 0)) if found else None


def is_too_deep(text: str) -> bool:
    return _TOO_DEEP.fullmatch(text) is not None


def id_problem(text: str) -> str:
    """Why `text` is no id."""
    if is_too_deep(text):
        return "there are two levels at most, IMPL-N and IMPL-N.M"
    return f"it must be {FORM}"


def canonical(text: str) -> str:
    """The one spelling by which tasks are looked up; one object per id, however often it is named."""
    if isinstance(text, str) and _CANONICAL.fullmatch(text):
        return intern(text)
    return intern(str(parse_id(text)))


def sort_key(canonical_id: str) -> int:
    """A number that orders canonical ids as `TaskId` does, for sorting many of them."""
    number, _, part = canonical_id[len(PREFIX) :].partition(".")
    return int(number) << _PART_BITS | int(part) if part else int(number) << _PART_BITS


def parent_of(canonical_id: str) -> str | None:
    return canonical_id.partition(".")[0] if "." in canonical_id else None
