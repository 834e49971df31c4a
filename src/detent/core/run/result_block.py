"""Parses the result block: the lines in which an agent reports its result."""

import re
from typing import NamedTuple

MAX_DELIVERABLES = 50
MAX_CONTEXT = 2_000
_NAMES = ("summary", "deliverables", "context for next", "context_for_next", "status", "met")
#: The number of a criterion before the text about it.
_NUMBER = re.compile(r"^\(?[0-9]{1,3}[.):]\s*")


class ResultBlock(NamedTuple):
    #: The text has a line of the block. Without one, the other fields are lines of the text.
    is_given: bool
    summary: str
    deliverables: tuple[str, ...]
    context: str
    failed: bool
    #: A text for each acceptance criterion of a task.
    met: tuple[str, ...] = ()


def result_block(text: str) -> ResultBlock:
    """Parses `Status:`, `Summary:`, `Deliverables:`, `Context for next:` and `Met:`.

    Without them, it uses lines of the text.
    """
    fields: dict[str, list[str]] = {}
    key = ""
    for line in text.splitlines():
        head, colon, rest = line.strip().lstrip("*#- ").partition(":")
        name = head.strip("* ").lower()
        if colon and name in _NAMES:
            key = name.replace("_", " ")
            fields[key] = [rest.strip("* ")] if rest.strip("* ") else []
        elif key and line.strip():
            fields[key].append(line.strip().lstrip("-* "))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    deliverables = [part.strip() for line in fields.get("deliverables", ()) for part in line.split(",") if part.strip()]
    status = " ".join(fields.get("status", ())).lower()
    return ResultBlock(
        is_given=bool(fields),
        summary=" ".join(fields.get("summary", ())) or (lines[0] if lines else ""),
        deliverables=tuple(deliverables[:MAX_DELIVERABLES]),
        context="\n".join(fields.get("context for next", lines[-3:]))[:MAX_CONTEXT],
        failed=status.startswith(("failed", "blocked", "error")),
        met=tuple(_NUMBER.sub("", line) for line in fields.get("met", ()) if line.strip()),
    )
