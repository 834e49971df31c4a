"""A rollback, for people: its plan, and its result."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from detent.core.counted import counted
from detent.core.path_text import to_text
from detent.core.session.open_decision import View
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.render.elapsed import moment
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.outcome import moved_lines
from detent.render.terminal.phase_names import phase_rows

_MAX_SHOWN = 20
_SIGNS = {"restored": ("~", "yellow"), "removed": ("-", "red"), "added": ("+", "green")}


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a rollback. `files` has the paths by change: restored, removed or added."""

    #: As it is before the rollback.
    session: Session
    name: str
    taken: str
    at: datetime
    files: Mapping[str, tuple[str, ...]]
    statuses: Mapping[str, tuple[Status, Status]]
    paths: tuple[str, ...] = ()
    phase_only: bool = False
    is_undo: bool = False
    kept: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rollback."""

    planned: Planned
    session: Session
    #: The checkpoint that was taken before the rollback.
    safety: str
    view: View
    #: The session had ended, and is open again.
    reopened: bool = False


def plan_text(planned: Planned, *, now: datetime, canvas: Canvas) -> str:
    when = moment(planned.at, now)
    about = f"roll back to {planned.name} ({planned.taken}, {when})"
    if planned.is_undo:
        about = f"undo the last rollback, back to {planned.name} ({when})"
    return "\n".join(
        [
            *(canvas.paint(line, "bold") for line in canvas.wrap(about)),
            "",
            *_phase_lines(planned, canvas),
            "",
            *_file_lines(planned, canvas),
            *_kept_lines(planned.kept, "that parallel phases declared since", canvas),
            *_kept_lines(planned.unknown, "that the session is not known to have made (--remove-unknown)", canvas),
            *_warning_lines(planned, canvas),
        ]
    )


def rolled_back_text(done: RolledBack, *, canvas: Canvas) -> str:
    planned = done.planned
    done_word = "undid the rollback, back" if planned.is_undo else "rolled back"
    named = "" if done.view.active else f" --session {done.session.id}"
    head = f"{done_word} to {planned.name}; files: {_counts(planned)}"
    return "\n".join(
        [
            *canvas.hanging(head, "  ", f"{canvas.glyph(Status.COMPLETED)} "),
            *canvas.wrap(f"the state before is saved as {done.safety}", "  "),
            *(canvas.wrap(f"{done.session.id} had ended and is open again", "  ") if done.reopened else []),
            "  to undo this:",
            *canvas.command(f"detent undo{named}", "    "),
            "",
            *moved_lines(done.session, canvas=canvas, view=done.view),
        ]
    )


def _phase_lines(planned: Planned, canvas: Canvas) -> Iterator[str]:
    if planned.paths:
        yield "phases: none, because of --paths"
        return
    if not planned.statuses:
        yield "phases: no status changes"
        return
    yield "phases:"
    arrow = "→" if canvas.has_glyphs else "->"
    texts = {
        key: (after, f"{before.replace('_', ' ')} {arrow} {after.replace('_', ' ')}")
        for key, (before, after) in planned.statuses.items()
    }
    yield from phase_rows(planned.session, texts, canvas=canvas, indent="  ")


def _file_lines(planned: Planned, canvas: Canvas) -> Iterator[str]:
    if planned.phase_only:
        yield "files: none, because of --phase-only"
        return
    yield f"files: {_counts(planned)}"
    changes = sorted((path, change) for change, paths in planned.files.items() for path in paths)
    for path, change in changes[:_MAX_SHOWN]:
        sign, colour = _SIGNS[change]
        yield from canvas.whole(to_text(path), "    ", f"  {canvas.paint(sign, colour)} ")
    if len(changes) > _MAX_SHOWN:
        yield f"  and {len(changes) - _MAX_SHOWN} more; --json lists all"


def _kept_lines(kept: tuple[str, ...], why: str, canvas: Canvas) -> Iterator[str]:
    if not kept:
        return
    yield ""
    yield from canvas.wrap(f"kept: {counted(len(kept), 'file')} {why}")
    for path in kept[:_MAX_SHOWN]:
        yield from canvas.whole(to_text(path), "    ")
    if len(kept) > _MAX_SHOWN:
        yield f"    and {len(kept) - _MAX_SHOWN} more; --json lists all"


def _warning_lines(planned: Planned, canvas: Canvas) -> Iterator[str]:
    for number, warning in enumerate(planned.warnings):
        yield from [""] if not number else []
        yield from (canvas.paint(line, "yellow") for line in canvas.hanging(f"warning: {warning}", "  ", ""))


def _counts(planned: Planned) -> str:
    if not any(planned.files.values()):
        return "no changes"
    return ", ".join(f"{len(planned.files[change])} {change}" for change in _SIGNS if planned.files.get(change))
