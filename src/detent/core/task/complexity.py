"""The complexity of a session, by the number of its tasks. It rises and never falls."""

from enum import StrEnum

from detent.errors import Refused

_SIMPLE_BELOW, _COMPLEX_ABOVE = 5, 15


class Complexity(StrEnum):
    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"

    @property
    def rank(self) -> int:
        return list(Complexity).index(self)


def complexity(leaves: int, *, has_subtasks: bool = False) -> Complexity:
    """By the number of leaves; a plan with subtasks is medium at least."""
    if leaves > _COMPLEX_ABOVE:
        return Complexity.COMPLEX
    return Complexity.MEDIUM if has_subtasks or leaves >= _SIMPLE_BELOW else Complexity.SIMPLE


def raised(stored: Complexity, *others: Complexity) -> Complexity:
    """The highest of the levels."""
    return max((stored, *others), key=lambda each: each.rank)


def check_override(stored: Complexity, wanted: Complexity) -> Complexity:
    if wanted.rank < stored.rank:
        raise Refused(f"the session is {stored} and can not become {wanted}: complexity only rises")
    return wanted
