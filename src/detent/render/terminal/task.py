"""One task, for people, and the changes that a command made to tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from detent.core.counted import listed
from detent.core.session.describe import describe
from detent.core.session.events import (
    CheckpointTaken,
    Event,
    SettingsChanged,
    TailDropped,
    TaskEvent,
    TaskMoved,
    TaskRemoved,
    TaskWritten,
)
from detent.core.session.open_decision import ANYONE, View
from detent.core.session.session import Session
from detent.core.task.row import TaskStatus
from detent.render.elapsed import duration, elapsed, moment
from detent.render.next_commands import command_lines
from detent.render.terminal.canvas import FACT_COLUMNS, Canvas
from detent.render.terminal.tasks import counts_line, glyph, task_commands

_MOST_LINES, _MOST_EVENTS = 20, 20
_DONE = {
    "start": "started",
    "done": "done",
    "fail": "failed",
    "block": "blocked",
    "unblock": "unblocked",
    "resume": "resumed",
    "retry": "to be retried",
    "release": "given back",
    "reopen": "reopened",
    "split": "split",
    "restore": "whole again",
}


def task_text(
    session: Session,
    document: Mapping[str, Any],
    *,
    summaries: Mapping[str, str],
    now: datetime,
    canvas: Canvas,
    view: View = ANYONE,
) -> str:
    """The whole task; `summaries` has its own and those of its dependencies."""
    id_ = document["id"]
    row, state = session.tasks[id_], session.tasks.derived_state(id_)
    about = [state.value, row.type, row.agent, *([f"version {row.version}"] if row.version > 1 else [])]
    head = f"{id_}" + "".join(canvas.draw(" · ") + word for word in about)
    commands = [command for command in task_commands(session, view) if f" {id_} " in f"{command} "]
    if session.has_ended:
        commands = []
    elif not commands and session.tasks.is_ready(id_):
        commands = [f"detent task start {id_}" + ("" if view.active else f" --session {session.id}")]
    return "\n".join(
        [
            f"{glyph(state, canvas)} {canvas.cut(head, canvas.width - 2)}",
            *canvas.wrap(row.title),
            "",
            *_state_lines(session, id_, now, canvas),
            *_context_lines(document, canvas),
            *_flow_lines(document, canvas),
            *_summary_lines(id_, summaries, canvas),
            *(["", *canvas.commands(commands)] if commands else []),
        ]
    )


def moved_text(
    session: Session,
    events: Iterable[Event],
    *,
    canvas: Canvas,
    view: View = ANYONE,
    warnings: Iterable[str] = (),
    notes: Sequence[str] = (),
    wrote: str = "added",
) -> str:
    """The changes, the counts of tasks, and the commands to type next."""
    changes = list(_changes(session, events, canvas, wrote=wrote))
    more = [f"and {len(changes) - _MOST_EVENTS} more"] if len(changes) > _MOST_EVENTS else []
    commands = task_commands(session, view)
    if session.has_ended or not commands:
        following = command_lines(session, canvas, view=view)
    else:
        following = canvas.commands(commands[:3])
    return "\n".join(
        [
            *changes[:_MOST_EVENTS],
            *more,
            *(line for note in notes for line in canvas.wrap(note, "  ")),
            *canvas.warnings(warnings),
            "",
            counts_line(session.tasks, canvas),
            "",
            *following,
        ]
    )


def claimed_text(
    session: Session,
    events: Iterable[Event],
    task: str,
    context: Mapping[str, Any],
    *,
    canvas: Canvas,
    view: View = ANYONE,
) -> str:
    """A started task: its claim, its context, and the commands that end it."""
    claim = session.claims[task]
    named_session = "" if view.active else f" --session {session.id}"
    rest = f"{task} --claim {claim.fence}{named_session}"
    lease = f"{claim.fence}, held by {claim.owner}; lease {duration(claim.lease_s)}"
    return "\n".join(
        [
            *_changes(session, events, canvas),
            canvas.fact("claim", lease),
            canvas.fact("agent", session.tasks[task].agent),
            canvas.fact("file", f"{session.id}/.task/{task}.json"),
            *_context_lines(context["task"], canvas),
            *_flow_lines(context["task"], canvas),
            *_summary_lines(task, context["dependency_summaries"], canvas),
            "",
            *canvas.command(f"{session.tasks[task].done_command(claim.fence)}{named_session}"),
            *canvas.command(f'detent task fail {rest} -m "WHAT WENT WRONG"'),
        ]
    )


def _changes(session: Session, events: Iterable[Event], canvas: Canvas, *, wrote: str = "added") -> Iterator[str]:
    for event in events:
        if not isinstance(event, TaskEvent):
            if not isinstance(event, CheckpointTaken | SettingsChanged | TailDropped):
                yield canvas.cut(f"  {describe(event)}", canvas.width)
            continue
        match event:
            case TaskMoved():
                row = session.tasks.get(event.task)
                because = f": {event.reason}" if event.reason else ""
                title = f" {row.title}" if row is not None and not because else ""
                status = TaskStatus(event.status) if event.status != "container" else TaskStatus.PENDING
                text = f"{_DONE.get(event.action, event.action)} {event.task}{title}{because}"
                yield f"{glyph(status, canvas)} {canvas.cut(text, canvas.width - 2)}"
            case TaskWritten():
                text = f"{wrote} {event.task} {event.document.get('title')}"
                row = session.tasks.get(event.task)
                state = session.tasks.derived_state(event.task) if row is not None else TaskStatus.PENDING
                yield f"{glyph(state, canvas)} {canvas.cut(text, canvas.width - 2)}"
            case TaskRemoved():
                yield f"{canvas.draw('─')} removed {event.task}"


def _state_lines(session: Session, task: str, now: datetime, canvas: Canvas) -> Iterator[str]:
    plan, row = session.tasks, session.tasks[task]
    claim = session.claims.get(task)
    if claim is not None:
        where = f" on {claim.host}" if claim.host else ""
        since = f"{moment(claim.since, now)} ({elapsed(claim.since, now)})"
        yield canvas.fact("held by", f"{claim.owner}{where} since {since}, claim {claim.fence}")
    if row.reason:
        label = "waits for" if row.status is TaskStatus.BLOCKED else "error"
        yield canvas.fact(label, row.reason)
    if row.attempts:
        yield canvas.fact("attempts", str(row.attempts))
    if row.parent is not None and row.parent in plan:
        yield canvas.fact("part of", f"{row.parent} {plan[row.parent].title}")
    for part in plan.children(task)[:_MOST_LINES]:
        title = canvas.cut(f"{part} {plan[part].title}", canvas.width - 4)
        yield f"  {glyph(plan.derived_state(part), canvas)} {title}"
    for need in row.depends_on[:_MOST_LINES]:
        title = plan[need].title if need in plan else "which does not exist"
        state = plan.derived_state(need).value if need in plan else "missing"
        yield canvas.fact("after", f"{need} {title} ({state})")
    inherited = [need for need in plan.waiting_for(task) if need not in row.depends_on] if plan.is_leaf(task) else []
    if inherited and row.status is TaskStatus.PENDING:
        yield canvas.fact("waits for", f"{listed(inherited)}, as {row.parent} does")
    if dependants := plan.dependants(task):
        yield canvas.fact("needed by", listed(dependants))


def _context_lines(document: Mapping[str, Any], canvas: Canvas) -> Iterator[str]:
    context = document.get("context") or {}
    inherited = (context.get("inherited") or {}).get("context") or ()
    for label, texts in (
        ("requires", context.get("requirements") or ()),
        ("inherited", inherited),
        ("accept", context.get("acceptance") or ()),
        ("focus", context.get("focus_paths") or ()),
    ):
        for at, text in enumerate(texts[:_MOST_LINES]):
            yield canvas.fact("" if at else label, str(text))


def _flow_lines(document: Mapping[str, Any], canvas: Canvas) -> Iterator[str]:
    flow = document.get("flow_control") or {}
    approach = flow.get("implementation_approach") or {}
    described = approach if isinstance(approach, str) else approach.get("task_description") or ""
    if described:
        yield canvas.fact("approach", described)
    if isinstance(approach, dict):
        for key in ("modification_points", "logic_flow"):
            for text in (approach.get(key) or ())[:_MOST_LINES]:
                yield canvas.fact("", f"- {text}")
    for at, target in enumerate((flow.get("target_files") or ())[:_MOST_LINES]):
        yield canvas.fact("" if at else "changes", str(target))
    if steps := flow.get("pre_analysis"):
        yield canvas.fact("steps", ", ".join(str(step.get("step")) for step in steps))


def _summary_lines(task: str, summaries: Mapping[str, str], canvas: Canvas) -> Iterator[str]:
    for id_, text in summaries.items():
        label = "summary" if id_ == task else f"from {id_}"
        lines = [line for line in text.splitlines() if line.strip()]
        for at, line in enumerate(lines[:_MOST_LINES]):
            if at == 0 and len(label) >= FACT_COLUMNS:
                yield canvas.paint(label, "cyan")
            yield canvas.fact(label if at == 0 and len(label) < FACT_COLUMNS else "", line)
        if len(lines) > _MOST_LINES:
            yield canvas.fact("", f"and {len(lines) - _MOST_LINES} more lines")
