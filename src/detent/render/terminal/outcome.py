"""The outcome of a command, and the commands to type next."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from detent.core.counted import counted
from detent.core.session.open_decision import ANYONE, View
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.session.token import Token
from detent.render.elapsed import elapsed
from detent.render.next_commands import command_lines, progress
from detent.render.terminal.canvas import Canvas

if TYPE_CHECKING:
    from detent.core.session.handover import Handover, Passed

_LABEL, _BAR = 13, 32
_MAX_SHOWN = 12


def begun_text(session: Session, token: Token, handover: "Handover", *, canvas: Canvas) -> str:
    """An attempt that has begun: its token, its agent, and the handover of earlier phases."""
    again = f" (attempt {token.attempt})" if token.attempt > 1 else ""
    agent = f" for {handover.agent}" if handover.agent else ""
    return "\n".join(
        [
            *canvas.hanging(
                f"began {phase_name(session, token.phase)}{again}{agent}", "  ", f"{canvas.glyph(Status.IN_PROGRESS)} "
            ),
            canvas.labelled("  token", str(token), _LABEL),
            *_handover_lines(session, handover, canvas),
            "",
            *canvas.command(f'detent finish --token {token} -m "SUMMARY"'),
            *canvas.command(f'detent fail --token {token} -m "WHAT WENT WRONG"'),
        ]
    )


def _handover_lines(session: Session, handover: "Handover", canvas: Canvas) -> Iterator[str]:
    yield canvas.labelled("  folder", handover.artifact_path, _LABEL)
    for passed in handover.passed:
        yield from _passed_lines(session, passed, canvas)
    if handover.discovery:
        yield canvas.labelled("  discovery", handover.discovery, _LABEL)
    for warning in handover.warnings:
        yield canvas.paint(canvas.labelled("  warning", warning, _LABEL), "yellow")


def ended_text(
    session: Session, phase: str, *, canvas: Canvas, view: View = ANYONE, warnings: Iterable[str] = ()
) -> str:
    """An attempt that was finished or failed."""
    state = session.phases[phase]
    done = "finished" if state.status is Status.COMPLETED else "failed"
    again = f" (attempt {state.attempt})" if state.attempt > 1 else ""
    text = state.summary if state.status is Status.COMPLETED else state.error
    head = f"{done} {phase_name(session, phase)}{again} after {elapsed(state.begun, state.completed)}"
    return "\n".join(
        [
            *canvas.hanging(head, "  ", f"{canvas.glyph(state.status)} "),
            *canvas.wrap(text or "", "  "),
            *(line for path in state.artifacts[:_MAX_SHOWN] for line in canvas.whole(path, "  ")),
            *_more(len(state.artifacts)),
            *_warnings(warnings, canvas),
            "",
            *moved_lines(session, canvas=canvas, view=view),
        ]
    )


def moved_text(
    session: Session,
    done: Iterable[tuple[Status, str]],
    *,
    canvas: Canvas,
    view: View = ANYONE,
    warnings: Iterable[str] = (),
) -> str:
    """Other changes of a session, each with the glyph of the new status."""
    heads = [line for status, text in done for line in canvas.hanging(text, "  ", f"{canvas.glyph(status)} ")]
    return "\n".join([*heads, *_warnings(warnings, canvas), "", *moved_lines(session, canvas=canvas, view=view)])


def moved_lines(session: Session, *, canvas: Canvas, view: View = ANYONE) -> Iterator[str]:
    """The progress of the session, and the commands to type next."""
    if session.has_ended:
        yield canvas.cut(f"session {session.id} is {session_state(session)}", canvas.width)
    yield bar_line(session, canvas)
    yield ""
    yield from command_lines(session, canvas, view=view)


def _passed_lines(session: Session, passed: "Passed", canvas: Canvas) -> Iterator[str]:
    yield canvas.labelled("  from", f"{phase_name(session, passed.phase)}: {passed.summary}", _LABEL)
    for path in passed.artifacts[:_MAX_SHOWN]:
        yield canvas.labelled("  ", path, _LABEL)
    yield from (" " * _LABEL + line.strip() for line in _more(len(passed.artifacts)))
    if passed.context:
        yield canvas.labelled("  ", f"“{passed.context}”" if canvas.has_glyphs else f'"{passed.context}"', _LABEL)


def _more(count: int) -> list[str]:
    return [f"  and {count - _MAX_SHOWN} more"] if count > _MAX_SHOWN else []


def _warnings(warnings: Iterable[str], canvas: Canvas) -> list[str]:
    return canvas.warnings(warnings)


def bar_line(session: Session, canvas: Canvas) -> str:
    done, total = progress(session)
    skipped = len(session.with_status(Status.SKIPPED))
    also = f", {skipped} skipped" if skipped else ""
    return f"{canvas.bar(done, total, min(_BAR, canvas.width - _BAR))}  {done} of {counted(total, 'phase')}{also}"


def session_state(session: Session, now: datetime | None = None, *, view: View = ANYONE) -> str:
    """Active, running, paused or ended, and for how long; an ended session needs no `now`."""
    if session.has_ended:
        forced = " by force" if session.forced else ""
        return f"{session.status}{forced} after {elapsed(session.started_at, session.ended_at)}"
    state = "running" if view.running else "active" if view.active else "paused"
    return f"{state}, started {elapsed(session.started_at, now)} ago"
