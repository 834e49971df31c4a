"""What stands below the phases: what is going on, and what to type."""

from collections.abc import Iterator
from datetime import datetime

from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.render.elapsed import elapsed, moment
from detent.render.next_commands import MOST_SHOWN, START, command_lines, upcoming
from detent.render.terminal.canvas import Canvas

_LABEL = 13


def footer_lines(session: Session, now: datetime, canvas: Canvas, *, active: bool, runner: str = "") -> Iterator[str]:
    """What is in progress, what failed, what comes next, and what to type; `runner` does the work, if anybody does."""
    for key in session.with_status(Status.IN_PROGRESS)[:MOST_SHOWN]:
        state = session.phases[key]
        since = f" since {moment(state.begun, now)} ({elapsed(state.begun, now)})" if state.begun else ""
        attempt = f", attempt {state.attempt}," if state.attempt > 1 else ""
        whom = f" with {state.agent}" if state.agent else ""
        yield _labelled("in progress", f"{key}{attempt}{since}{whom}", canvas)
    for key in session.with_status(Status.FAILED)[:MOST_SHOWN]:
        state = session.phases[key]
        yield _labelled("failed", f"{key}, attempt {state.attempt}: {state.error or 'no reason was given'}", canvas)
    following = upcoming(session)
    if following and session.status is SessionStatus.ACTIVE:
        yield _labelled("next", ", ".join(following), canvas)
    if runner:
        yield _labelled("run by", runner, canvas)
        yield _labelled("type", "detent watch", canvas)
        return
    first, *rest = command_lines(session, canvas, " " * _LABEL, active=active)
    yield _label("type", canvas) + first.replace(" " * _LABEL, "", 1)
    yield from rest


def idle_text(where: str, *, canvas: Canvas) -> str:
    """What to do in a project without an active session."""
    return "\n".join(
        [
            *canvas.wrap(f"No session is active in {where}"),
            "",
            _labelled("start one", START, canvas),
            _labelled("choose", "detent workflows", canvas),
            _labelled("look back", "detent history", canvas),
        ]
    )


def _labelled(label: str, text: str, canvas: Canvas) -> str:
    return _label(label, canvas) + canvas.cut(text, canvas.width - _LABEL)


def _label(label: str, canvas: Canvas) -> str:
    return canvas.paint(f"{label:<{_LABEL}}", "cyan")
