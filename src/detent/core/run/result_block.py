"""The lines by which an agent says at the end of its work what it did."""

from typing import NamedTuple

MAX_DELIVERABLES = 50
MAX_CONTEXT = 2_000
_NAMES = ("summary", "deliverables", "context for next", "context_for_next", "status")


class ResultBlock(NamedTuple):
    summary: str
    deliverables: tuple[str, ...]
    context: str
    failed: bool


def result_block(text: str) -> ResultBlock:
    """`Status:`, `Summary:`, `Deliverables:` and `Context for next:` lines; without them the last lines serve."""
    found: dict[str, list[str]] = {}
    key = ""
    for line in text.splitlines():
        head, colon, rest = line.strip().lstrip("*#- ").partition(":")
        name = head.strip("* ").lower()
        if colon and name in _NAMES:
            key = name.replace("_", " ")
            found[key] = [rest.strip("* ")] if rest.strip("* ") else []
        elif key and line.strip():
            found[key].append(line.strip().lstrip("-* "))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    deliverables = [part.strip() for line in found.get("deliverables", ()) for part in line.split(",") if part.strip()]
    status = " ".join(found.get("status", ())).lower()
    return ResultBlock(
        summary=" ".join(found.get("summary", ())) or (lines[0] if lines else ""),
        deliverables=tuple(deliverables[:MAX_DELIVERABLES]),
        context="\n".join(found.get("context for next", lines[-3:]))[:MAX_CONTEXT],
        failed=status.startswith(("failed", "blocked", "error")),
    )
