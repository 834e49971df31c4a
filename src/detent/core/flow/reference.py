"""References to values, such as `[focus_paths]` or `[shared_context.strategy]`, in commands and in prose.

Brackets mean much else to a shell, so only a name that the task declares makes a reference: `[ -n "$x" ]`, `[a-z]`,
`arr[i]` and `.[]` stay as they are. An odd number of backslashes before the bracket escapes it.
"""

import re
from collections.abc import Collection, Iterator

import msgspec

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\[([A-Za-z_][A-Za-z0-9_]*(?:\.(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+))*)\]")

#: Names that every task has, whether or not its document gives them a value.
CONTEXT_FIELDS = ("requirements", "focus_paths", "acceptance", "parent", "depends_on", "inherited", "shared_context")
TOP_FIELDS = ("id", "title", "status")
META_FIELDS = ("type", "agent")
GIVEN = ("session", "dependency_summaries")


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence. `start` and `end` include the brackets."""

    name: str
    start: int
    end: int

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))

    @property
    def first(self) -> str:
        return self.path[0]


class Match(msgspec.Struct, frozen=True, kw_only=True):
    reference: Reference
    escaped: bool


def reference_at(text: str, position: int, declared: Collection[str]) -> Reference | None:
    """The reference that starts at `position`, if there is one."""
    match = _REFERENCE.match(text, position)
    if match is None or match[1].split(".")[0] not in declared:
        return None
    return Reference(name=match[1], start=match.start(), end=match.end())


def find(text: str, declared: Collection[str], start: int = 0, stop: int | None = None) -> Iterator[Match]:
    """Every text with the form and the name of a reference, escaped or not."""
    for match in _REFERENCE.finditer(text, start, len(text) if stop is None else stop):
        if match[1].split(".")[0] in declared:
            reference = Reference(name=match[1], start=match.start(), end=match.end())
            yield Match(reference=reference, escaped=_is_escaped(text, match.start(), start))


def _is_escaped(text: str, position: int, start: int) -> bool:
    at = position
    while at > start and text[at - 1] == "\\":
        at -= 1
    return (position - at) % 2 == 1


def references(text: str, declared: Collection[str]) -> tuple[Reference, ...]:
    return tuple(match.reference for match in find(text, declared) if not match.escaped)


def task_properties(document: object) -> frozenset[str]:
    """The names that every task declares, and those of its own document; outputs of steps are not among them."""
    names = {*CONTEXT_FIELDS, *TOP_FIELDS, *META_FIELDS, *GIVEN, "meta", "context"}
    if isinstance(document, dict):
        for part in (document.get("context"), document.get("meta")):
            if isinstance(part, dict):
                names.update(key for key in part if isinstance(key, str) and IDENTIFIER.fullmatch(key))
    return frozenset(names)
