"""One task as people read it, and what a command did to tasks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from detent.core.session.describe import describe
from detent.core.session.events import CheckpointTaken, Event, TailDropped, TaskMoved, TaskRemoved, TaskWritten
from detent.core.session.session import Session, SessionStatus
from detent.core.task.row import TaskStatus
from detent.render.elapsed import duration, elapsed, moment
from detent.render.next_commands import command_lines
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.tasks import counts_line, glyph, named, task_commands

_LABEL = 13
_MOST_LINES, _MOST_EVENTS = 20, 20
_DONE = {
    "start": "started",
    "done": "done",
    "fail": "failed",
    "block": "blocked",
    "unblock": "unblocked",
    "resume": "resumed",
    "retry": "to be tried again",
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
    active: bool = True,
) -> str:
    """The whole task; `summaries` has its own and those of what it builds on."""
    id_ = document["id"]
    row, state = session.tasks[id_], session.tasks.derived_state(id_)
    about = [state.value, row.type, row.agent, *([f"version {row.version}"] if row.version > 1 else [])]
    head = f"{id_}" + "".join(canvas.draw(" · ") + word for word in about)
    commands = [command for command in task_commands(session, active=active) if f" {id_} " in f"{command} "]
    if session.status is not SessionStatus.ACTIVE:
        commands = []
    elif not commands and session.tasks.is_ready(id_):
        commands = [f"detent task start {id_}" + ("" if active else f" --session {session.id}")]
    return "\n".join(
        [
            f"{glyph(state, canvas)} {canvas.cut(head, canvas.width - 2)}",
            *canvas.wrap(row.title),
            "",
            *_standing_lines(session, id_, now, canvas),
            *_context_lines(document, canvas),
            *_flow_lines(document, canvas),
            *_summary_lines(id_, summaries, canvas),
            *(["", *(line for command in commands for line in canvas.command(command))] if commands else []),
        ]
    )


def moved_text(
    session: Session,
    events: Iterable[Event],
    *,
    canvas: Canvas,
    active: bool = True,
    warnings: Iterable[str] = (),
    notes: Sequence[str] = (),
    wrote: str = "added",
) -> str:
    """What happened, how far the tasks have come, and what to type next."""
    told = list(_told(session, events, canvas, wrote=wrote))
    more = [f"and {len(told) - _MOST_EVENTS} more"] if len(told) > _MOST_EVENTS else []
    commands = task_commands(session, active=active)
    if session.status is not SessionStatus.ACTIVE or not commands:
        following = command_lines(session, canvas, active=active)
    else:
        following = [line for command in commands[:3] for line in canvas.command(command)]
    return "\n".join(
        [
            *told[:_MOST_EVENTS],
            *more,
            *(canvas.cut(f"  {note}", canvas.width) for note in notes),
            *(line for warning in warnings for line in _painted(canvas.wrap(f"warning: {warning}", "  "), canvas)),
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
    active: bool = True,
) -> str:
    """A task that was taken: the claim, what it asks for, and how to say what became of it."""
    claim = session.claims[task]
    named_session = "" if active else f" --session {session.id}"
    rest = f"{task} --claim {claim.fence}{named_session}"
    lease = f"{claim.fence}, held by {claim.owner}; worth {duration(claim.lease_s)} without a sign of life"
    return "\n".join(
        [
            *_told(session, events, canvas),
            _labelled("claim", lease, canvas),
            _labelled("agent", session.tasks[task].agent, canvas),
            _labelled("file", f"{session.id}/.task/{task}.json", canvas),
            *_context_lines(context["task"], canvas),
            *_flow_lines(context["task"], canvas),
            *_summary_lines(task, context["dependency_summaries"], canvas),
            "",
            *canvas.command(f'detent task done {rest} -m "SUMMARY"'),
            *canvas.command(f'detent task fail {rest} -m "WHAT WENT WRONG"'),
        ]
    )


def _told(session: Session, events: Iterable[Event], canvas: Canvas, *, wrote: str = "added") -> Iterator[str]:
    for event in events:
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
            case CheckpointTaken() | TailDropped():
                pass
            case _:
                yield canvas.cut(f"  {describe(event)}", canvas.width)


def _standing_lines(session: Session, task: str, now: datetime, canvas: Canvas) -> Iterator[str]:
    plan, row = session.tasks, session.tasks[task]
    claim = session.claims.get(task)
    if claim is not None:
        where = f" on {claim.host}" if claim.host else ""
        since = f"{moment(claim.since, now)} ({elapsed(claim.since, now)})"
        yield _labelled("held by", f"{claim.owner}{where} since {since}, claim {claim.fence}", canvas)
    if row.reason:
        label = "waits for" if row.status is TaskStatus.BLOCKED else "error"
        yield from _text_lines(label, row.reason, canvas)
    if row.attempts:
        yield _labelled("attempts", str(row.attempts), canvas)
    if row.parent is not None and row.parent in plan:
        yield _labelled("part of", f"{row.parent} {plan[row.parent].title}", canvas)
    for part in plan.children(task)[:_MOST_LINES]:
        title = canvas.cut(f"{part} {plan[part].title}", canvas.width - 4)
        yield f"  {glyph(plan.derived_state(part), canvas)} {title}"
    for need in row.depends_on[:_MOST_LINES]:
        title = plan[need].title if need in plan else "which does not exist"
        state = plan.derived_state(need).value if need in plan else "missing"
        yield _labelled("after", f"{need} {title} ({state})", canvas)
    inherited = [need for need in plan.waiting_for(task) if need not in row.depends_on] if plan.is_leaf(task) else []
    if inherited and row.status is TaskStatus.PENDING:
        yield _labelled("waits for", f"{named(inherited)}, as {row.parent} does", canvas)
    if dependants := plan.dependants(task):
        yield _labelled("needed by", named(dependants), canvas)


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
            yield from _text_lines("" if at else label, str(text), canvas)


def _flow_lines(document: Mapping[str, Any], canvas: Canvas) -> Iterator[str]:
    flow = document.get("flow_control") or {}
    approach = flow.get("implementation_approach") or {}
    described = approach if isinstance(approach, str) else approach.get("task_description") or ""
    if described:
        yield from _text_lines("approach", described, canvas)
    if isinstance(approach, dict):
        for key in ("modification_points", "logic_flow"):
            for text in (approach.get(key) or ())[:_MOST_LINES]:
                yield from _text_lines("", f"- {text}", canvas)
    for at, target in enumerate((flow.get("target_files") or ())[:_MOST_LINES]):
        yield _labelled("" if at else "changes", str(target), canvas)
    if steps := flow.get("pre_analysis"):
        yield _labelled("steps", ", ".join(str(step.get("step")) for step in steps), canvas)


def _summary_lines(task: str, summaries: Mapping[str, str], canvas: Canvas) -> Iterator[str]:
    for id_, text in summaries.items():
        label = "summary" if id_ == task else f"from {id_}"
        lines = [line for line in text.splitlines() if line.strip()]
        for at, line in enumerate(lines[:_MOST_LINES]):
            if at == 0 and len(label) >= _LABEL:
                yield canvas.paint(label, "cyan")
            yield from _text_lines(label if at == 0 and len(label) < _LABEL else "", line, canvas)
        if len(lines) > _MOST_LINES:
            yield _labelled("", f"and {len(lines) - _MOST_LINES} more lines", canvas)


def _text_lines(label: str, text: str, canvas: Canvas) -> Iterator[str]:
    first, *rest = canvas.wrap(text, " " * _LABEL)
    yield canvas.paint(f"{label:<{_LABEL}}", "cyan") + first[_LABEL:]
    yield from rest


def _labelled(label: str, text: str, canvas: Canvas) -> str:
    return canvas.paint(f"{label:<{_LABEL}}", "cyan") + canvas.cut(text, canvas.width - _LABEL)


def _painted(lines: Iterable[str], canvas: Canvas) -> list[str]:
    return [canvas.paint(line, "yellow") for line in lines]
