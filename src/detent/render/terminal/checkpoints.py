"""Checkpoints, for people: the list, and one checkpoint in full."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from detent.core.checkpoint.manifest import Manifest
from detent.core.counted import counted
from detent.core.path_text import to_text
from detent.core.session.events import CheckpointTaken
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.render.elapsed import moment
from detent.render.size import size_text
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.phase_names import phase_rows

_OUTCOME, _FILES, _SIZE, _LABEL = 8, 6, 7, 13
_MARK, _NO_MARK = "* ", "  "
_MAX_SHOWN = 20
#: Digits of a hash in text; JSON has all of them.
_DIGITS = 12
_KINDS = {"f": "file", "x": "executable", "l": "link"}


class Taken(NamedTuple):
    """A checkpoint, when it was taken and by whom."""

    event: CheckpointTaken
    at: datetime
    by: str


class Reached(NamedTuple):
    """The target of the last rollback, and its time."""

    id: str
    at: datetime


def list_text(
    rows: Sequence[Taken], *, left_out: int, reached: Reached | None, now: datetime, canvas: Canvas, undo: str
) -> str:
    """Oldest first; `left_out` is the number of earlier checkpoints, `undo` the command to undo a rollback."""
    lines = [f"{left_out} earlier left out; detent checkpoint list -n 0 shows all"] if left_out else []
    times = [moment(row.at, now) for row in rows]
    when = max(map(len, times))
    name = max(columns_of(canvas.clean(row.event.name)) for row in rows)
    fits = 2 + when + 2 + name + 2 + _OUTCOME + 2 + _FILES + 2 + _SIZE <= canvas.width
    head = f"  {'when':<{when}}  {'name':<{name}}  {'outcome':<{_OUTCOME}}  {'files':>{_FILES}}  {'size':>{_SIZE}}"
    lines += [canvas.paint(head, "dim")] if fits else []
    for row, time in zip(rows, times, strict=True):
        event = row.event
        is_reached = reached is not None and event.id == reached.id
        front = f"{_MARK if is_reached else _NO_MARK}{time:<{when}}  "
        margin = " " * len(front)
        facts = f"{event.taken.value:<{_OUTCOME}}  {event.tree.files:>{_FILES}}  {size_text(event.tree.bytes):>{_SIZE}}"
        if fits:
            lines.append(f"{front}{canvas.pad(event.name, name)}  {facts}")
        else:
            lines += [*canvas.whole(event.name, margin, front), margin + facts]
        lines += canvas.wrap(event.note, margin) if event.note else []
    if reached is not None:
        lines += ["", *canvas.wrap(f"* is the target of the rollback at {moment(reached.at, now)}; {undo} undoes it")]
    return "\n".join(lines)


def show_text(
    taken: Taken,
    then: Session,
    left_out: Mapping[str, str],
    *,
    parent: str | None,
    files: Manifest | None,
    now: datetime,
    canvas: Canvas,
) -> str:
    """One checkpoint, with the session at that time, and its files if they are given."""
    event = taken.event
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    local = taken.at.astimezone(now.tzinfo)
    lines = [
        canvas.paint(canvas.cut(event.name, canvas.width), "bold"),
        canvas.labelled("  id", event.id, _LABEL),
        canvas.labelled("  taken", f"{local:%Y-%m-%d %H:%M:%S} by {taken.by}", _LABEL),
        canvas.labelled(
            "  what", f"{event.taken.value}, {event.kind.value} of {phase_name(then, event.phase)}{again}", _LABEL
        ),
        canvas.labelled("  follows", parent or "nothing", _LABEL),
        *([canvas.labelled("  note", event.note, _LABEL)] if event.note else []),
        canvas.labelled("  files", f"{counted(event.tree.files, 'file')}, {size_text(event.tree.bytes)}", _LABEL),
        *_phase_lines(then, canvas),
        *_left_out_lines(left_out, canvas, everything=files is not None),
    ]
    if files is not None:
        lines += ["", *_file_lines(files, canvas)]
    return "\n".join(lines)


def _phase_lines(then: Session, canvas: Canvas) -> Iterator[str]:
    tried = {key: then.phases[key].status for key in then.workflow.order if then.phases[key].attempt}
    texts = {key: (status, status.replace("_", " ")) for key, status in tried.items()}
    for number, line in enumerate(phase_rows(then, texts, canvas=canvas, indent=" " * _LABEL)):
        yield line if number else f"{'  phases':<{_LABEL}}{line[_LABEL:]}"
    waiting = len(then.with_status(Status.PENDING))
    if waiting:
        yield f"{'':<{_LABEL}}{canvas.glyph(Status.PENDING)} {waiting} pending"


def _left_out_lines(left_out: Mapping[str, str], canvas: Canvas, *, everything: bool) -> Iterator[str]:
    if not left_out:
        return
    yield ""
    yield f"  left out: {counted(len(left_out), 'file')}"
    for number, (path, reason) in enumerate(sorted(left_out.items())):
        if number == _MAX_SHOWN and not everything:
            yield f"    and {len(left_out) - _MAX_SHOWN} more; --files lists all"
            return
        yield from (canvas.paint(line, "yellow") for line in canvas.whole(f"{to_text(path)}: {reason}", "    "))


def _file_lines(files: Manifest, canvas: Canvas) -> Iterator[str]:
    """A line per file; the path is last and never cut."""
    for path, entry in sorted(files.items()):
        facts = f"{entry.digest[:_DIGITS]}  {_KINDS[entry.kind]:<10}  {size_text(entry.size):>{_SIZE}}"
        yield f"{facts}  {canvas.clean(to_text(path))}"
