"""The files that differ between two checkpoints, each as a unified diff."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from detent.core.path_text import to_text
from detent.render.terminal.diff import FileDiff

if TYPE_CHECKING:
    from detent.engine.checkpoints.comparison import Comparison


def file_diffs(
    comparison: "Comparison", limit: int, progress: Callable[[int, int], object] | None = None
) -> tuple[list[FileDiff], int]:
    """The files up to `limit` lines in all, 0 being no limit; and how many files are not included in full."""
    files: list[FileDiff] = []
    room, in_full = limit, 0
    changed = comparison.diff.files
    for number, (path, change) in enumerate(changed):
        if limit and not room:
            break
        if progress is not None:
            progress(number, len(changed))
        lines = "\n".join(comparison.text_diff(path) or [_without_lines(path, change)]).split("\n")
        shown = lines[:room] if limit else lines
        room -= len(shown)
        in_full += len(shown) == len(lines)
        files.append(FileDiff(path=path, change=change, lines=shown))
    return files, len(changed) - in_full


def _without_lines(path: str, change: str) -> str:
    return f"{to_text(path)}: " + ("differs only in how its lines end" if change == "modified" else f"{change}, empty")
