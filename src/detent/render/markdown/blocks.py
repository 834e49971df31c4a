"""Blocks of Markdown: tables, fenced text, times."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from detent.core.task.title import without_sequences

_TAIL_LINES, _TAIL_COLUMNS = 8, 160


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table without its empty columns; nothing if there are no rows."""
    lines = list(rows)
    used = [at for at in range(len(head)) if any(row[at] for row in lines)]
    if not used:
        return
    yield f"| {' | '.join(head[at] for at in used)} |"
    yield f"|{'---|' * len(used)}"
    yield from (f"| {' | '.join(row[at] for at in used)} |" for row in lines)


def fenced(text: str, indent: str) -> Iterator[str]:
    """The first lines, in a fence that is longer than any in them."""
    plain = without_sequences(text)
    lines = [line.rstrip()[:_TAIL_COLUMNS] for line in plain.splitlines() if line.strip()][:_TAIL_LINES]
    if not lines:
        return
    fence = "`" * max(3, 1 + max(_longest_run(line) for line in lines))
    yield ""
    yield f"{indent}{fence}text"
    yield from (indent + "".join(c if c.isprintable() else " " for c in line) for line in lines)
    yield f"{indent}{fence}"
    yield ""


def _longest_run(line: str) -> int:
    longest = run = 0
    for character in line:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
