"""Which session, what for, and how far it has come."""

from collections.abc import Iterator
from datetime import datetime

from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.render.elapsed import elapsed
from detent.render.next_commands import progress
from detent.render.terminal.canvas import Canvas

_BAR = 32


def header_lines(session: Session, now: datetime, canvas: Canvas, *, active: bool = True) -> Iterator[str]:
    """Which session, what for, and how far it has come."""
    about = [session.workflow.name, session.work_id or "", standing(session, now, active=active)]
    rest = "".join(canvas.draw(" · ") + part for part in about if part)
    name = canvas.cut(session.id, canvas.width)
    yield canvas.paint(name, "bold") + canvas.cut(rest, canvas.width - len(name))
    yield canvas.cut(session.task, canvas.width)
    if session.branch:
        yield canvas.cut(f"on branch {session.branch}", canvas.width)
    if session.cancel_reason:
        yield canvas.cut(f"because {session.cancel_reason}", canvas.width)
    yield ""
    yield bar_line(session, canvas)


def bar_line(session: Session, canvas: Canvas) -> str:
    done, total = progress(session)
    columns = min(_BAR, canvas.width - _BAR)
    filled = columns * done // total if total else columns
    skipped = len(session.with_status(Status.SKIPPED))
    also = f", {skipped} skipped" if skipped else ""
    full, rest = canvas.draw("━") * filled, canvas.draw("─") * (columns - filled)
    return f"{canvas.paint(full, 'green')}{canvas.paint(rest, 'dim')}  {done} of {total} phases{also}"


def standing(session: Session, now: datetime | None = None, *, active: bool = True) -> str:
    """Active, paused or how it ended, and for how long; an ended one needs no `now`."""
    if session.status is not SessionStatus.ACTIVE:
        forced = " by force" if session.forced else ""
        return f"{session.status}{forced} after {elapsed(session.started_at, session.ended_at)}"
    return f"{'active' if active else 'paused'}, started {elapsed(session.started_at, now)} ago"
