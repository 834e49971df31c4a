"""The sessions of a project, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from detent.core.session.events import Claim
from detent.core.session.status import Status
from detent.render.elapsed import elapsed
from detent.render.terminal.canvas import Canvas, columns_of

_MOST_ID, _MOST_CLAIMS = 40, 5
_GLYPHS = {"active": Status.IN_PROGRESS, "paused": Status.PENDING, "completed": Status.COMPLETED}


class Listed(Protocol):
    """What the list needs to know of a session."""

    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def workflow(self) -> str: ...
    @property
    def phase(self) -> str | None: ...
    @property
    def last_activity(self) -> datetime | None: ...
    @property
    def last_by(self) -> str: ...
    @property
    def tasks_done(self) -> int: ...
    @property
    def tasks(self) -> int: ...
    @property
    def archived(self) -> bool: ...
    @property
    def claims(self) -> Mapping[str, Claim]: ...
    @property
    def problem(self) -> str | None: ...


def sessions_text(listed: Sequence[tuple[int, Listed]], *, hidden: int, now: datetime, canvas: Canvas) -> str:
    """Each with the number by which it can be named; `hidden` are archived and not among them."""
    more = f"{hidden} archived; detent sessions --all lists {'it' if hidden == 1 else 'them'} too" if hidden else ""
    if not listed:
        return more or "there are no sessions yet"
    number = len(str(max(at for at, _ in listed)))
    column = min(max(columns_of(canvas.clean(one.id)) for _, one in listed), _MOST_ID)
    lines = [line for at, one in listed for line in _lines(at, one, number, column, now, canvas)]
    others = [at for at, one in listed if one.status == "paused"]
    commands = ["", *canvas.command(f"detent switch {others[0]}")] if others else []
    return "\n".join([*lines, *([more] if more else []), *commands])


def _lines(at: int, one: Listed, number: int, column: int, now: datetime, canvas: Canvas) -> Iterator[str]:
    glyph = canvas.glyph(_GLYPHS.get(one.status, Status.FAILED if one.problem else Status.SKIPPED))
    mark = "*" if one.status == "active" else " "
    head = f"{mark} {at:>{number}} "
    status = f"archived, {one.status}" if one.archived else one.status
    tasks = f"{one.tasks_done} of {one.tasks} tasks" if one.tasks else ""
    since = f"{elapsed(one.last_activity, now)} ago" if one.last_activity else ""
    by = f" by {one.last_by}" if one.last_by and since else ""
    told = canvas.draw(" · ").join(part for part in (status, one.phase or "", tasks) if part)
    identity = canvas.pad(one.id, column)
    yield f"{head}{glyph} {canvas.paint(identity, 'bold')}  {canvas.cut(told, canvas.width - len(head) - column - 4)}"
    margin = " " * (len(head) + 2)
    if one.problem:
        yield from canvas.wrap(one.problem, margin)
        return
    about = canvas.cut(f"{since}{by}{', ' if since else ''}{one.workflow}: {one.task}", canvas.width - len(margin))
    yield margin + canvas.paint(about, "dim")
    for task, claim in list(one.claims.items())[:_MOST_CLAIMS]:
        yield margin + canvas.cut(
            f"{claim.owner} holds {task} for {elapsed(claim.since, now)}", canvas.width - len(margin)
        )
    if len(one.claims) > _MOST_CLAIMS:
        yield f"{margin}and {len(one.claims) - _MOST_CLAIMS} more"
