"""What is wrong with a document: one line of a report that always lists everything."""

from typing import Literal

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    rule: str
    #: Where in the document, such as `context.depends_on[0]`; empty for the document as a whole.
    path: str
    message: str
    severity: Literal["error", "warning"] = "error"
    file: str | None = None

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.path) if part)
        return f"{place}: {self.message}" if place else self.message
