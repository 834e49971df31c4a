"""What stands below the phases: what is going on, and what to type."""

from collections.abc import Iterator
from datetime import datetime

from detent.core.session import Session, SessionStatus
from detent.core.status import Status
from detent.views.elapsed import elapsed, moment
from detent.views.paper import Paper
from detent.views.step import MOST_SHOWN, START, command_lines, upcoming

_LABEL = 13


def footer_lines(session: Session, now: datetime, paper: Paper, *, active: bool, runner: str = "") -> Iterator[str]:
    """What is in progress, what failed, what comes next, and what to type; `runner` does the work, if anybody does."""
    for key in session.with_status(Status.IN_PROGRESS)[:MOST_SHOWN]:
        state = session.phases[key]
        since = f" since {moment(state.begun, now)} ({elapsed(state.begun, now)})" if state.begun else ""
        attempt = f", attempt {state.attempt}," if state.attempt > 1 else ""
        whom = f" with {state.agent}" if state.agent else ""
        yield _labelled("in progress", f"{key}{attempt}{since}{whom}", paper)
    for key in session.with_status(Status.FAILED)[:MOST_SHOWN]:
        state = session.phases[key]
        yield _labelled("failed", f"{key}, attempt {state.attempt}: {state.error or 'no reason was given'}", paper)
    following = upcoming(session)
    if following and session.status is SessionStatus.ACTIVE:
        yield _labelled("next", ", ".join(following), paper)
    if runner:
        yield _labelled("run by", runner, paper)
        yield _labelled("type", "detent watch", paper)
        return
    first, *rest = command_lines(session, paper, " " * _LABEL, active=active)
    yield _label("type", paper) + first.replace(" " * _LABEL, "", 1)
    yield from rest


def idle_text(where: str, *, paper: Paper) -> str:
    """What to do in a project without an active session."""
    return "\n".join(
        [
            *paper.wrap(f"No session is active in {where}"),
            "",
            _labelled("start one", START, paper),
            _labelled("choose", "detent workflows", paper),
            _labelled("look back", "detent history", paper),
        ]
    )


def _labelled(label: str, text: str, paper: Paper) -> str:
    return _label(label, paper) + paper.cut(text, paper.width - _LABEL)


def _label(label: str, paper: Paper) -> str:
    return paper.paint(f"{label:<{_LABEL}}", "cyan")
