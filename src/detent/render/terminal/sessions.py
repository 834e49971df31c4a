"""The list of sessions, and a session that became active."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from detent.core.counted import counted
from detent.core.session.listed import Listed
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.render.elapsed import elapsed
from detent.render.next_commands import command_lines
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.outcome import bar_line
from detent.render.terminal.tasks import counts_line, task_commands

_MOST_ID, _MOST_CLAIMS = 40, 5
_GLYPHS = {
    "active": Status.IN_PROGRESS,
    "running": Status.IN_PROGRESS,
    "paused": Status.PENDING,
    "completed": Status.COMPLETED,
}


def sessions_text(
    listed: Sequence[tuple[int, Listed]], *, hidden: int, now: datetime, canvas: Canvas, project: str = ""
) -> str:
    """Each session with its number; `hidden` is the number of archived sessions that are not listed.

    `project` is the package whose commands are shown.
    """
    detent = f"detent --project {project}" if project else "detent"
    more = f"{hidden} archived; {detent} sessions --all lists {'it' if hidden == 1 else 'them'} too" if hidden else ""
    if not listed:
        return more or "there are no sessions yet"
    digits = len(str(max(number for number, _ in listed)))
    column = min(max(columns_of(canvas.clean(entry.id)) for _, entry in listed), _MOST_ID)
    lines = [line for number, entry in listed for line in _lines(f"{number:>{digits}}", entry, column, now, canvas)]
    others = [number for number, entry in listed if entry.status == "paused"]
    commands = ["", *canvas.command(f"{detent} switch {others[0]}")] if others else []
    return "\n".join([*lines, *([more] if more else []), *commands])


def packages_text(
    packages: Mapping[str, tuple[Sequence[tuple[int, Listed]], int]], *, now: datetime, canvas: Canvas
) -> str:
    """The sessions of each package of a monorepo, and how many of them are archived, under its name."""
    parts = [
        f"{canvas.paint(canvas.cut(name, canvas.width), 'bold')}\n"
        f"{sessions_text(listed, hidden=hidden, now=now, canvas=canvas, project=name)}"
        for name, (listed, hidden) in packages.items()
    ]
    return "\n\n".join(parts)


def _lines(number: str, entry: Listed, column: int, now: datetime, canvas: Canvas) -> Iterator[str]:
    glyph = canvas.glyph(_GLYPHS.get(entry.status, Status.FAILED if entry.problem else Status.SKIPPED))
    mark = "*" if entry.status == "active" else " "
    head = f"{mark} {number} "
    status = f"archived, {entry.status}" if entry.archived else entry.status
    tasks = f"{entry.tasks_done} of {counted(entry.tasks, 'task')}" if entry.tasks else ""
    since = f"{elapsed(entry.last_activity, now)} ago" if entry.last_activity else ""
    by = f" by {entry.last_by}" if entry.last_by and since else ""
    facts = canvas.draw(" · ").join(part for part in (status, entry.where, tasks) if part)
    margin = " " * (len(head) + 2)
    columns = max(column, columns_of(canvas.clean(entry.id)))
    if len(margin) + columns + 2 + columns_of(canvas.clean(facts)) <= canvas.width:
        yield f"{head}{glyph} {canvas.paint(canvas.pad(entry.id, columns), 'bold')}  {canvas.clean(facts)}"
    else:
        named, *rest = canvas.whole(entry.id, margin, "")
        yield f"{head}{glyph} {canvas.paint(named, 'bold')}"
        yield from (*rest, *canvas.wrap(facts, margin))
    if entry.problem:
        yield from canvas.wrap(entry.problem, margin)
        return
    about = canvas.cut(f"{since}{by}{', ' if since else ''}{entry.workflow}: {entry.task}", canvas.width - len(margin))
    yield margin + canvas.paint(about, "dim")
    for task, claim in list(entry.claims.items())[:_MOST_CLAIMS]:
        yield margin + canvas.cut(
            f"{claim.owner} holds {task} for {elapsed(claim.since, now)}", canvas.width - len(margin)
        )
    if len(entry.claims) > _MOST_CLAIMS:
        yield f"{margin}and {len(entry.claims) - _MOST_CLAIMS} more"


def activated_text(session: Session, lines: Sequence[str], *, canvas: Canvas) -> str:
    """A session that became the active one: what changed, its progress, and the commands to type next."""
    commands = task_commands(session)[:2]
    return "\n".join(
        [
            *(canvas.cut(line, canvas.width) for line in lines),
            "",
            canvas.cut(session.task, canvas.width),
            bar_line(session, canvas),
            *([counts_line(session.tasks, canvas)] if len(session.tasks) else []),
            "",
            *(canvas.commands(commands) or command_lines(session, canvas)),
        ]
    )
