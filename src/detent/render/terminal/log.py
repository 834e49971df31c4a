"""The commits of a journal, for people and as JSON."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from detent.core.session.describe import event_lines
from detent.core.session.events import Commit
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.render.terminal.canvas import Canvas, columns_of

_MOST_WHO = 20


def log_text(session: Session, commits: Sequence[Commit], *, left_out: int, now: datetime, canvas: Canvas) -> str:
    """Oldest first; `left_out` is the number of earlier commits."""
    named = partial(phase_name, session)
    lines = [f"{left_out} earlier left out; detent log -n 0 shows all"] if left_out else []
    number = len(str(commits[-1].version)) if commits else 1
    who = min(max((columns_of(canvas.clean(commit.by)) for commit in commits), default=0), _MOST_WHO)
    for commit in commits:
        at = f"{commit.at.astimezone(now.tzinfo):%Y-%m-%d %H:%M:%S}"
        head = f"{commit.version:>{number}}  {at}  {canvas.pad(commit.by, who)}  "
        margin = " " * (number + 2 + len(at) + 2 + who + 2)
        proof = commit.actor.proof
        how = [f"({proof.describe()})"] if proof is not None and proof.signature else []
        for index, line in enumerate([*event_lines(commit.events, named), *how]):
            lines += canvas.hanging(line, margin, margin if index else head)
    return "\n".join(lines)


def commit_record(commit: Commit) -> dict[str, Any]:
    """The commit as JSON."""
    return {
        "version": commit.version,
        "at": commit.at,
        "by": commit.by,
        "actor": commit.actor,
        "events": commit.events,
        "state": commit.state,
    }
