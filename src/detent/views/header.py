"""Which session, what for, and how far it has come."""

from collections.abc import Iterator
from datetime import datetime

from detent.core.session import Session, SessionStatus
from detent.core.status import Status
from detent.views.elapsed import elapsed
from detent.views.paper import Paper
from detent.views.step import progress

_BAR = 32


def header_lines(session: Session, now: datetime, paper: Paper, *, active: bool = True) -> Iterator[str]:
    """Which session, what for, and how far it has come."""
    about = [session.workflow.name, session.work_id or "", standing(session, now, active=active)]
    rest = "".join(paper.draw(" · ") + part for part in about if part)
    name = paper.cut(session.id, paper.width)
    yield paper.paint(name, "bold") + paper.cut(rest, paper.width - len(name))
    yield paper.cut(session.task, paper.width)
    if session.branch:
        yield paper.cut(f"on branch {session.branch}", paper.width)
    if session.cancel_reason:
        yield paper.cut(f"because {session.cancel_reason}", paper.width)
    yield ""
    yield bar_line(session, paper)


def bar_line(session: Session, paper: Paper) -> str:
    done, total = progress(session)
    columns = min(_BAR, paper.width - _BAR)
    filled = columns * done // total if total else columns
    skipped = len(session.with_status(Status.SKIPPED))
    also = f", {skipped} skipped" if skipped else ""
    full, rest = paper.draw("━") * filled, paper.draw("─") * (columns - filled)
    return f"{paper.paint(full, 'green')}{paper.paint(rest, 'dim')}  {done} of {total} phases{also}"


def standing(session: Session, now: datetime | None = None, *, active: bool = True) -> str:
    """Active, paused or how it ended, and for how long; an ended one needs no `now`."""
    if session.status is not SessionStatus.ACTIVE:
        forced = " by force" if session.forced else ""
        return f"{session.status}{forced} after {elapsed(session.started_at, session.ended_at)}"
    return f"{'active' if active else 'paused'}, started {elapsed(session.started_at, now)} ago"
