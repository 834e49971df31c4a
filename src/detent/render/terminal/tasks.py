"""Tasks as people read them: the list, how many stand where, and what `status` says of them.

A list may have 100,000 lines, so what is the same for all of them is worked out once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from detent.core.problem import Problem
from detent.core.session.events import Claim
from detent.core.session.session import Session, SessionStatus
from detent.core.task.id import read_id, sort_key
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus
from detent.render.elapsed import elapsed
from detent.render.size import counted
from detent.render.terminal.canvas import Canvas, columns_of

_GLYPHS = {
    TaskStatus.COMPLETED: ("✓", "+", "green"),
    TaskStatus.ACTIVE: ("▸", ">", "yellow"),
    TaskStatus.PENDING: ("○", ".", "dim"),
    TaskStatus.FAILED: ("✗", "!", "red"),
    TaskStatus.BLOCKED: ("■", "#", "yellow"),
}
_STATE, _BAR, _LEAST_BAR, _LABEL = 9, 32, 4, 13
#: Per cent of the room that titles may take where something else is said too.
_TITLE = 60
#: What `status` says of tasks of one kind.
_MOST_ACTIVE, _MOST_STUCK, _MOST_READY = 5, 3, 3
#: Tasks that one waits for are named up to here.
_MOST_NAMED = 3


def glyph(status: TaskStatus, canvas: Canvas) -> str:
    drawn, plain, colour = _GLYPHS[status]
    return canvas.paint(drawn if canvas.has_glyphs else plain, colour)


def tally(plan: Plan) -> dict[str, int]:
    """How many leaves stand where, with the pending ones told apart."""
    counts = plan.counts
    ready = plan.ready_count
    return {
        "total": plan.leaf_count,
        "completed": counts.get(TaskStatus.COMPLETED, 0),
        "active": counts.get(TaskStatus.ACTIVE, 0),
        "ready": ready,
        "waiting": counts.get(TaskStatus.PENDING, 0) - ready,
        "blocked": counts.get(TaskStatus.BLOCKED, 0),
        "failed": counts.get(TaskStatus.FAILED, 0),
    }


def counts_text(plan: Plan) -> str:
    """3 of 12 tasks done, 2 active, 4 ready, 1 failed; what is zero is not worth a word."""
    found = tally(plan)
    noun = "task" if found["total"] == 1 else "tasks"
    rest = [f"{count} {name}" for name, count in found.items() if count and name not in ("total", "completed")]
    return ", ".join([f"{found['completed']} of {found['total']} {noun} done", *rest])


def counts_line(plan: Plan, canvas: Canvas) -> str:
    """The counts behind a bar, which is as long as they leave room for."""
    done, total, said = plan.counts.get(TaskStatus.COMPLETED, 0), plan.leaf_count, counts_text(plan)
    columns = min(_BAR, canvas.width // 4, canvas.width - len(said) - 2)
    if columns < _LEAST_BAR:
        return canvas.cut(said, canvas.width)
    filled = columns * done // total if total else 0
    full, rest = canvas.draw("━") * filled, canvas.draw("─") * (columns - filled)
    return f"{canvas.paint(full, 'green')}{canvas.paint(rest, 'dim')}  {said}"


def list_lines(
    session: Session, rows: Sequence[Row], *, now: datetime, canvas: Canvas, tree: bool = False, indent: str = ""
) -> Iterator[str]:
    """A line per task. With `tree` parts stand below the task that they are parts of, where that is shown."""
    plan, claims = session.tasks, session.claims
    glyphs = {status: glyph(status, canvas) for status in _GLYPHS}
    column = max((len(row.id) + (2 if tree and "." in row.id else 0) for row in rows), default=0)
    room = canvas.width - len(indent) - 2 - column - 2 - _STATE - 2
    title_column = min(max((len(row.title) for row in rows), default=0), room * _TITLE // 100)
    shown = {row.id for row in rows if "." not in row.id} if tree else frozenset[str]()
    for row in rows:
        state = plan.derived_state(row.id)
        margin = "  " if tree and row.parent in shown else ""
        head = row.id.ljust(column - len(margin))
        front = f"{indent}{margin}{glyphs[state]} {head}  {_word(plan, row, state):<{_STATE}}  "
        yield front + _said(row.title, _detail(plan, claims, row, now), room, title_column, canvas)


def status_lines(session: Session, now: datetime, canvas: Canvas, *, is_active: bool) -> Iterator[str]:
    """How many tasks stand where, who works on what, what does not go on, and what is next; some 15 lines at most."""
    plan = session.tasks
    yield counts_line(plan, canvas)
    active = plan.with_status(TaskStatus.ACTIVE)
    stuck = (*plan.with_status(TaskStatus.FAILED), *plan.with_status(TaskStatus.BLOCKED))
    ready = plan.ready
    shown = [*active[:_MOST_ACTIVE], *stuck[:_MOST_STUCK], *ready[:_MOST_READY]]
    rows = [plan[id_] for id_ in shown]
    yield from list_lines(session, rows, now=now, canvas=canvas, indent="  ")
    left_out = len(active) + len(stuck) + len(ready) - len(shown)
    if left_out:
        yield f"  and {left_out} more; detent task list shows all"
    if session.status is SessionStatus.ACTIVE:
        for at, command in enumerate(task_commands(session, active=is_active)[:2]):
            first, *rest = canvas.command(command, " " * _LABEL)
            label = canvas.paint(f"{'' if at else 'task':<{_LABEL}}", "cyan")
            yield label + first.replace(" " * _LABEL, "", 1)
            yield from rest


def task_commands(session: Session, *, active: bool = True) -> list[str]:
    """What can be typed about tasks, the most likely first."""
    named = "" if active else f" --session {session.id}"
    plan = session.tasks
    commands = [
        *(f'detent task done {id_}{_claim(session, id_)} -m "SUMMARY"' for id_ in _first(plan, TaskStatus.ACTIVE)),
        *(f"detent task start {id_}" for id_ in [plan.next_ready()] if id_ is not None),
        *(f"detent task retry {id_}" for id_ in _first(plan, TaskStatus.FAILED)),
        *(f"detent task unblock {id_}" for id_ in _first(plan, TaskStatus.BLOCKED)),
    ]
    return [command + named for command in commands]


def task_record(session: Session, row: Row) -> dict[str, Any]:
    """A task as a program reads it in a list."""
    plan = session.tasks
    return {
        "id": row.id,
        "title": row.title,
        "status": row.status,
        "state": plan.derived_state(row.id),
        "type": row.type,
        "agent": row.agent,
        "parent": row.parent,
        "depends_on": row.depends_on,
        "ready": plan.is_ready(row.id),
        "waiting_for": plan.waiting_for(row.id) if row.status is TaskStatus.PENDING else (),
        "reason": row.reason,
        "attempts": row.attempts,
        "version": row.version,
        "claim": session.claims.get(row.id),
    }


def chosen(
    plan: Plan, *, statuses: Iterable[str] = (), agent: str | None = None, ready: bool = False, flat: bool = False
) -> list[Row]:
    """The rows that are asked for: by number, or, of what is ready or without containers, in execution order."""
    wanted = frozenset(statuses)
    keep: Callable[[Row], bool] = lambda row: (not wanted or row.status in wanted) and agent in (None, row.agent)  # noqa: E731
    ids: Iterable[str] = plan.ready if ready else (*plan.order, *_out_of_order(plan)) if flat else plan.ids
    return [row for id_ in ids if keep(row := plan[id_])]


def would_add_text(rows: Sequence[Row], warnings: Sequence[str], *, canvas: Canvas) -> str:
    """Tasks that are not there yet, each with what it will depend on."""
    column = max((len(row.id) + (2 if row.parent else 0) for row in rows), default=0)
    room = canvas.width - 2 - column - 2 - _STATE - 2
    title_column = min(max((len(row.title) for row in rows), default=0), room * _TITLE // 100)
    lines = []
    for row in rows:
        margin = "  " if row.parent else ""
        after = f"after {named(row.depends_on)}" if row.depends_on else ""
        front = f"{margin}+ {row.id.ljust(column - len(margin))}  {row.status.value:<{_STATE}}  "
        lines.append(front + _said(row.title, after, room, title_column, canvas))
    told = [canvas.paint(line, "yellow") for warning in warnings for line in canvas.wrap(f"warning: {warning}", "  ")]
    return "\n".join([*lines, *told, "", f"{len(rows)} tasks would be added; nothing was changed"])


def problems_text(files: int, problems: Sequence[Problem], *, canvas: Canvas) -> str:
    """Each file with what is wrong with it; errors and warnings are told apart."""
    lines: list[str] = []
    file: str | None = None
    for problem in sorted(problems, key=lambda one: _file_key(one.file)):
        if problem.file != file or not lines:
            file = problem.file
            lines.append(canvas.paint(canvas.cut(file or "all files", canvas.width), "bold"))
        where = f"{problem.path}: " if problem.path else ""
        told = canvas.wrap(f"{problem.severity} {where}{problem.message} [{problem.rule}]", "  ")
        lines += [canvas.paint(line, "red" if problem.severity == "error" else "yellow") for line in told]
    errors = sum(problem.severity == "error" for problem in problems)
    found = [counted(errors, "error")] if errors else []
    found += [counted(len(problems) - errors, "warning")] if len(problems) > errors else []
    checked = f"{counted(files, 'file')} checked"
    return "\n".join([*lines, *([""] if lines else []), f"{checked}: {', '.join(found) or 'all is well'}"])


def _file_key(file: str | None) -> tuple[int, str]:
    """By the numbers in the name, so that IMPL-2 comes before IMPL-10."""
    stem = (file or "").rpartition("/")[2].removesuffix(".json")
    known = read_id(stem)
    return (sort_key(str(known)) if known else -1, stem)


def holder_text(claim: Claim | None, now: datetime) -> str:
    return f"{claim.owner} for {elapsed(claim.since, now)}" if claim else "nobody holds it"


def _out_of_order(plan: Plan) -> tuple[str, ...]:
    return tuple(id_ for id_ in plan.unordered if plan.is_leaf(id_))


def _word(plan: Plan, row: Row, state: TaskStatus) -> str:
    if row.status is TaskStatus.PENDING:
        return "ready" if plan.is_ready(row.id) else "waiting"
    return state.value


def _detail(plan: Plan, claims: dict[str, Claim], row: Row, now: datetime) -> str:
    match row.status:
        case TaskStatus.COMPLETED:
            return ""
        case TaskStatus.ACTIVE:
            return holder_text(claims.get(row.id), now)
        case TaskStatus.CONTAINER:
            parts = plan.children(row.id)
            return f"{sum(map(plan.is_done, parts))} of {len(parts)}"
        case TaskStatus.PENDING:
            waits = () if plan.is_ready(row.id) else plan.waiting_for(row.id)
            return f"after {named(waits)}" if waits else ""
        case _:
            return row.reason or ""


def named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return ", ".join(ids[:_MOST_NAMED]) + more


def _said(title: str, detail: str, room: int, title_column: int, canvas: Canvas) -> str:
    """The title, and what else there is to say in a column behind it."""
    if not detail:
        return _cut(title, room, canvas)
    shown, rest = _cut(title, title_column, canvas), _cut(detail, room - title_column - 2, canvas)
    columns = len(shown) if shown.rstrip("…").isascii() else columns_of(shown)
    return f"{shown}{' ' * (title_column - columns)}  {canvas.paint(rest, 'dim')}"


def _cut(text: str, columns: int, canvas: Canvas) -> str:
    """What `Paper.cut` gives; for plain ASCII, which most of 100,000 titles are, without looking at each character."""
    if not (text.isascii() and text.isprintable()):
        return canvas.cut(text, columns)
    if len(text) <= columns:
        return text
    dots = canvas.draw("…")
    return (text[: max(columns - len(dots), 0)].rstrip() + dots)[: max(columns, 0)]


def _first(plan: Plan, status: TaskStatus) -> tuple[str, ...]:
    return plan.with_status(status)[:2]


def _claim(session: Session, task: str) -> str:
    held = session.claims.get(task)
    return f" --claim {held.fence}" if held else ""
