"""`tasks --watch`: redraws the list after every change, or prints a line per change."""

import os
import sys
import time
from typing import TYPE_CHECKING

from detent.cli.commands.task.list import ListOptions, rows_for
from detent.cli.request import Request, canvas, local_now

if TYPE_CHECKING:
    from detent.core.session.events import Commit
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

_POLL_S = 0.5
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
_LINES = 24


def watch_tasks(request: Request, project: "Project", handle: "SessionHandle", options: ListOptions) -> None:
    """Show changes until Ctrl-C."""
    request.print_notices()
    try:
        if sys.stdout.isatty() and not request.json:
            _redraw(project, handle, options)
        else:
            _follow(request, project, handle)
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            sys.stdout.write("\n")


def _redraw(project: "Project", handle: "SessionHandle", options: ListOptions) -> None:
    shown = -1
    while True:
        if (version := handle.state.version) != shown:
            shown = version
            clear = _CLEAR if os.environ.get("TERM", "dumb") != "dumb" else "\n"
            sys.stdout.write(clear + "\n".join(_screen(project, handle, options)) + "\n")
            sys.stdout.flush()
        time.sleep(_POLL_S)


def _screen(project: "Project", handle: "SessionHandle", options: ListOptions) -> list[str]:
    from detent.render.terminal.tasks import counts_line, list_lines

    sheet, state, now = canvas(), handle.state, local_now(project)
    rows, left_out = rows_for(state, options)
    room = max(_height() - 5, 3)
    more = left_out + max(0, len(rows) - room)
    tree = options["tree"] and not options["ready"]
    return [
        sheet.paint(sheet.cut(f"{state.id}  {now:%H:%M:%S}", sheet.width), "bold"),
        counts_line(state.tasks, sheet),
        "",
        *list_lines(state, rows[:room], now=now, canvas=sheet, tree=tree),
        *([f"and {more} more"] if more else []),
    ]


def _follow(request: Request, project: "Project", handle: "SessionHandle") -> None:
    from detent.render.terminal.tasks import counts_text, tally

    state, end = handle.state, project.journal(handle.id).end
    if request.json:
        import msgspec

        _print_line(msgspec.json.encode({"session": state.id, "counts": tally(state.tasks)}).decode())
    else:
        _print_line(counts_text(state.tasks))
    while True:
        commits, end, _, more = project.store.read(handle.id, end)
        for commit in commits:
            _print_commit(request, commit)
        if not more:
            time.sleep(_POLL_S)


def _print_commit(request: Request, commit: "Commit") -> None:
    from detent.core.session.describe import event_lines

    if request.json:
        import msgspec

        from detent.render.terminal.log import commit_record

        _print_line(msgspec.json.encode(commit_record(commit)).decode())
        return
    sheet = canvas()
    for line in event_lines(commit.events):
        _print_line(sheet.cut(f"{commit.at.astimezone():%H:%M:%S}  {commit.by}  {line}", sheet.width))


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _height() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or _LINES
    except OSError:
        return _LINES
