"""The files that a session has changed, with the number of lines added and removed."""

from typing import TYPE_CHECKING

from detent.core.path_text import to_text
from detent.errors import DetentError
from detent.render.report_facts import MOST_FILES, Changes, FileChange
from detent.render.terminal.diff import FileDiff

if TYPE_CHECKING:
    from detent.engine.checkpoints.comparison import Comparison
    from detent.engine.session import SessionHandle


def changes_of(handle: "SessionHandle") -> Changes | None:
    """The files that differ between the first checkpoint and the last one, or the present of a session that goes on.

    None if there is no checkpoint, or one that cannot be read: the rest of a report is written without them.
    """
    positions = handle.checkpoints.all()
    if not positions:
        return None
    is_over = handle.state.has_ended
    try:
        comparison = handle.checkpoints.compare(positions[0].event.id, positions[-1].event.id if is_over else "now")
        return Changes(since=comparison.diff.a, until=comparison.diff.b, files=tuple(_files(comparison)))
    except (DetentError, OSError):
        return None


def _files(comparison: "Comparison") -> list[FileChange]:
    files = []
    for number, (path, change) in enumerate(comparison.diff.files):
        # Only so many are shown, and counting lines takes long.
        lines = "\n".join(comparison.text_diff(path)).split("\n") if number < MOST_FILES else []
        counts = FileDiff(path=path, change=change, lines=lines).counts
        added, removed = counts if counts is not None else (None, None)
        files.append(FileChange(path=to_text(path), change=change, added=added, removed=removed))
    return files
