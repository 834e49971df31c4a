"""A problem of a document. A check reports all problems at once."""

from typing import Literal

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    rule: str
    #: The place in the document, such as `context.depends_on[0]`; empty for the whole document.
    path: str
    message: str
    severity: Literal["error", "warning"] = "error"
    file: str | None = None

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.path) if part)
        return f"{place}: {self.message}" if place else self.message
