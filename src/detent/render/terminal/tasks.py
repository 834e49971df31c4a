"""Tasks, for people: the list, the counts, and the part about tasks in `status`.

A list may have 100,000 lines, so values that are the same for all lines are computed once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from detent.core.counted import counted, listed
from detent.core.problem import Problem
from detent.core.session.events import Claim
from detent.core.session.open_decision import ANYONE, View
from detent.core.session.session import Session
from detent.core.task.id import read_id, sort_key
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus
from detent.render.elapsed import elapsed
from detent.render.terminal.canvas import FACT_COLUMNS, Canvas, columns_of

_GLYPHS = {
    TaskStatus.COMPLETED: ("✓", "+", "green"),
    TaskStatus.ACTIVE: ("▸", ">", "yellow"),
    TaskStatus.PENDING: ("○", ".", "dim"),
    TaskStatus.FAILED: ("✗", "!", "red"),
    TaskStatus.BLOCKED: ("■", "#", "yellow"),
}
_STATE, _BAR, _LEAST_BAR = 9, 32, 4
#: Per cent of the room that titles may take beside details.
_TITLE = 60
#: Tasks of one kind that `status` lists.
_MOST_ACTIVE, _MOST_STUCK, _MOST_READY = 5, 3, 3


def glyph(status: TaskStatus, canvas: Canvas) -> str:
    drawn, plain, colour = _GLYPHS[status]
    return canvas.paint(drawn if canvas.has_glyphs else plain, colour)


def tally(plan: Plan) -> dict[str, int]:
    """The number of leaves by state; pending ones are ready or waiting."""
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
    """3 of 12 tasks done, 2 active, 4 ready, 1 failed; without zeros."""
    counts = tally(plan)
    rest = [f"{count} {name}" for name, count in counts.items() if count and name not in ("total", "completed")]
    return ", ".join([f"{counts['completed']} of {counted(counts['total'], 'task')} done", *rest])


def counts_line(plan: Plan, canvas: Canvas) -> str:
    """A progress bar and the counts."""
    text = counts_text(plan)
    columns = min(_BAR, canvas.width // 4, canvas.width - len(text) - 2)
    if columns < _LEAST_BAR:
        return canvas.cut(text, canvas.width)
    return f"{canvas.bar(plan.counts.get(TaskStatus.COMPLETED, 0), plan.leaf_count or 1, columns)}  {text}"


def list_lines(
    session: Session, rows: Sequence[Row], *, now: datetime, canvas: Canvas, tree: bool = False, indent: str = ""
) -> Iterator[str]:
    """A line per task. With `tree` the parts of a task are indented below it."""
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
        yield front + _titled(row.title, _detail(plan, claims, row, now), room, title_column, canvas)


def status_lines(session: Session, now: datetime, canvas: Canvas, *, view: View) -> Iterator[str]:
    """Counts, tasks in progress, failed and blocked tasks, and the next ones; at most about 15 lines."""
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
    if not session.has_ended:
        for at, command in enumerate(task_commands(session, view)[:2]):
            yield from canvas.fact_commands("" if at else "task", canvas.command(command, " " * FACT_COLUMNS))


def task_commands(session: Session, view: View = ANYONE) -> list[str]:
    """The next commands about tasks, the most likely first."""
    named = "" if view.active else f" --session {session.id}"
    plan = session.tasks
    commands = [
        *(plan[id_].done_command(_claim(session, id_)) for id_ in _first(plan, TaskStatus.ACTIVE)),
        *(f"detent task start {id_}" for id_ in [plan.next_ready()] if id_ is not None),
        *(f"detent task retry {id_}" for id_ in _first(plan, TaskStatus.FAILED)),
        *(_unblocking(id_, view) for id_ in _first(plan, TaskStatus.BLOCKED)),
    ]
    return [command + named for command in commands]


def _unblocking(task: str, view: View) -> str:
    return f"detent flow resume {task} --retry" if task in view.steps else f"detent task unblock {task}"


def task_record(session: Session, row: Row) -> dict[str, Any]:
    """A task as JSON."""
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
    """The matching rows: by number, or in execution order if `ready` or `flat`."""
    wanted = frozenset(statuses)
    keep: Callable[[Row], bool] = lambda row: (not wanted or row.status in wanted) and agent in (None, row.agent)  # noqa: E731
    ids: Iterable[str] = plan.ready if ready else (*plan.order, *_out_of_order(plan)) if flat else plan.ids
    return [row for id_ in ids if keep(row := plan[id_])]


def would_add_text(rows: Sequence[Row], warnings: Sequence[str], *, canvas: Canvas) -> str:
    """New tasks, each with its dependencies."""
    column = max((len(row.id) + (2 if row.parent else 0) for row in rows), default=0)
    room = canvas.width - 2 - column - 2 - _STATE - 2
    title_column = min(max((len(row.title) for row in rows), default=0), room * _TITLE // 100)
    lines = []
    for row in rows:
        margin = "  " if row.parent else ""
        after = f"after {listed(row.depends_on)}" if row.depends_on else ""
        front = f"{margin}+ {row.id.ljust(column - len(margin))}  {row.status.value:<{_STATE}}  "
        lines.append(front + _titled(row.title, after, room, title_column, canvas))
    return "\n".join(
        [*lines, *canvas.warnings(warnings), "", f"{counted(len(rows), 'task')} would be added; nothing was changed"]
    )


def problems_text(files: int, problems: Sequence[Problem], *, canvas: Canvas) -> str:
    """Each file with its errors and warnings."""
    lines: list[str] = []
    file: str | None = None
    for problem in sorted(problems, key=lambda problem: _file_key(problem.file)):
        if problem.file != file or not lines:
            file = problem.file
            lines += [canvas.paint(line, "bold") for line in canvas.whole(file or "all files")]
        where = f"{problem.path}: " if problem.path else ""
        texts = canvas.wrap(f"{problem.severity} {where}{problem.message} [{problem.rule}]", "  ")
        lines += [canvas.paint(line, "red" if problem.severity == "error" else "yellow") for line in texts]
    errors = sum(problem.severity == "error" for problem in problems)
    counts = [counted(errors, "error")] if errors else []
    counts += [counted(len(problems) - errors, "warning")] if len(problems) > errors else []
    checked = f"{counted(files, 'file')} checked"
    return "\n".join([*lines, *([""] if lines else []), f"{checked}: {', '.join(counts) or 'all is well'}"])


def _file_key(file: str | None) -> tuple[int, str]:
    """By the numbers in the name, so that IMPL-2 comes before IMPL-10."""
    stem = (file or "").rpartition("/")[2].removesuffix(".json")
    known = read_id(stem)
    return (sort_key(str(known)) if known else -1, stem)


def holder_text(claim: Claim | None, now: datetime) -> str:
    return f"{claim.owner} for {elapsed(claim.since, now)}" if claim else "not claimed"


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
            return f"after {listed(waits)}" if waits else ""
        case TaskStatus.BLOCKED | TaskStatus.FAILED:
            return row.reason or ""


def _titled(title: str, detail: str, room: int, title_column: int, canvas: Canvas) -> str:
    """The title, and the detail in a column after it."""
    if not detail:
        return canvas.cut(title, room)
    shown, rest = canvas.cut(title, title_column), canvas.cut(detail, room - title_column - 2)
    columns = len(shown) if shown.rstrip("…").isascii() else columns_of(shown)
    return f"{shown}{' ' * (title_column - columns)}  {canvas.paint(rest, 'dim')}"


def _first(plan: Plan, status: TaskStatus) -> tuple[str, ...]:
    return plan.with_status(status)[:2]


def _claim(session: Session, task: str) -> int | None:
    held = session.claims.get(task)
    return held.fence if held else None
