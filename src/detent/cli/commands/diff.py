"""`diff`: compares two checkpoints, or a checkpoint with the present."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from detent.cli.request import Request, session_of
from detent.cli.verb import checkpoint_or_now, session_option, verb
from detent.core.path_text import to_text
from detent.core.session.phase_name import phase_name

if TYPE_CHECKING:
    from detent.render.terminal.diff import FileDiff

#: Lines of file differences that are shown by default.
_LINES = 2_000


@verb("diff", example="detent diff POST_01-requirements_v1 now --stat")
@click.argument("a", shell_complete=checkpoint_or_now)
@click.argument("b", default="now", shell_complete=checkpoint_or_now)
@click.option("--stat", is_flag=True, help="Only how many lines of each file were added and removed.")
@click.option(
    "-n", "limit", metavar="N", type=click.IntRange(min=0), default=_LINES, help="At most N lines of files; 0 is all."
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if something differs.")
@session_option
def diff_verb(request: Request, a: str, b: str, *, stat: bool, limit: int, exit_code: bool, session: str | None) -> int:
    """Compare two checkpoints, or a checkpoint with the present.

    A and B are names of detent checkpoint list, ids, or now; B is now if it is not given. Shows phases, gates, agents
    and tokens first, then each file as a unified diff.
    """
    from detent.engine.checkpoints.file_diffs import file_diffs
    from detent.render.terminal.diff import diff_text, stat_text

    with request.reading() as project:
        request.watch(project)
        handle = session_of(project, session)
        comparison, named = handle.checkpoints.compare(a, b), partial(phase_name, handle.state)
        diff = comparison.diff
        files, left_out = file_diffs(comparison, 0 if stat else limit, request.progress("comparing files"))
    record: dict[str, Any] = diff.as_record()
    if stat:
        record["stat"] = {to_text(file.path): _counts(file) for file in files}
        request.answer(lambda canvas: stat_text(diff, files, named=named, canvas=canvas), record)
    else:
        record["diffs"] = {to_text(file.path): "\n".join(file.lines) for file in files}
        record["files_left_out"] = left_out
        request.answer(
            lambda canvas: diff_text(diff, files, named=named, left_out=left_out, canvas=canvas, limit=limit), record
        )
    return int(exit_code and not diff.is_empty)


def _counts(file: "FileDiff") -> dict[str, Any]:
    counts = file.counts
    return {
        "change": file.change,
        "lines_added": counts[0] if counts else None,
        "lines_removed": counts[1] if counts else None,
    }
