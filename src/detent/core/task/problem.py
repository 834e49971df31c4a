"""What is wrong with a task or a set of them: one line of a report that always lists everything."""

from typing import Literal

import msgspec

#: The rules by name; the number is the one that the integrity rules of the task format have.
RULES: dict[str, int | None] = {
    "unique-id": 1,
    "id-form": 2,
    "parent-exists": 3,
    "depth": 4,
    "status": 5,
    "required-keys": 6,
    "focus-paths": 7,
    "pre-analysis": 8,
    "depends-on": 9,
    "agent": None,
    "approach": None,
    "bookkeeping": None,
    "container": None,
    "cycle": None,
    "file-name": None,
    "inherited": None,
    "lists": None,
    "parent": None,
    "target-files": None,
    "title": None,
    "type": None,
}


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    #: One of `RULES`.
    rule: str
    #: Where in the document, such as `context.depends_on[0]`; empty for the document as a whole.
    path: str
    message: str
    severity: Literal["error", "warning"] = "error"
    file: str | None = None

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.path) if part)
        return f"{place}: {self.message}" if place else self.message
