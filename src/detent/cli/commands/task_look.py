"""`task list|show|validate` and `tasks`: looking at tasks, without changing anything."""

import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from detent.cli.request import Request, canvas, is_active, local_now, session_of, write_json
from detent.cli.task_argument import known, task_argument
from detent.cli.verb import session_option, verb

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.core.task.row import Row
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

F = TypeVar("F", bound=Callable[..., Any])
_STATUSES = ("pending", "active", "completed", "blocked", "failed", "container")
_LINES_AT_ONCE = 500


class Wanted(TypedDict):
    """Which tasks are listed, and how."""

    statuses: tuple[str, ...]
    agent: str | None
    ready: bool
    count: int | None
    tree: bool
    session: str | None


def _list_options(function: F) -> F:
    for option in reversed(
        [
            click.option(
                "--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Only these; repeat it."
            ),
            click.option("--agent", metavar="NAME", help="Only those of this agent."),
            click.option("--ready", is_flag=True, help="Only what can be started now, in execution order."),
            click.option("-n", "count", metavar="N", type=click.IntRange(min=0), help="The first N; 0 is all."),
            click.option(
                "--tree/--flat",
                default=True,
                help="Parts below their containers, or without containers in execution order.",
            ),
            session_option,
        ]
    ):
        function = option(function)
    return function


@verb("list", example="detent task list --status failed --status blocked")
@_list_options
@click.pass_obj
def list_tasks(request: Request, **wanted: Unpack[Wanted]) -> None:
    """List the tasks of the session."""
    with request.reading() as project:
        handle = session_of(project, wanted["session"])
        show_list(request, project, handle, wanted)


@verb("tasks", example="detent tasks --watch")
@click.option("--watch", is_flag=True, help="Go on until you interrupt it, and show every change.")
@_list_options
@click.pass_obj
def tasks_verb(request: Request, *, watch: bool, **wanted: Unpack[Wanted]) -> None:
    """List the tasks of the session, live with --watch.

    The same as task list. With --watch a terminal shows the list anew whenever something happened; elsewhere each
    change is a line, with --json an object per line.
    """
    with request.reading() as project:
        handle = session_of(project, wanted["session"])
        if not watch:
            show_list(request, project, handle, wanted)
            return
        from detent.cli.commands.task_watch import watch_tasks

        watch_tasks(request, project, handle, wanted)


@verb("show", example="detent task show IMPL-3 --context")
@task_argument
@click.option("--context", is_flag=True, help="Print what an agent is given for it, as JSON.")
@session_option
@click.pass_obj
def show_task(request: Request, task: str, *, context: bool, session: str | None) -> None:
    """Show a task: its document, where it stands, what it waits for, and what it builds on."""
    from detent.render.terminal.task import task_text
    from detent.render.terminal.tasks import task_record

    with request.reading() as project:
        handle = session_of(project, session)
        own = known(handle, task)
        given, state, summary = handle.tasks.context(own), handle.state, handle.tasks.summary(own)
        now, active = local_now(project), is_active(project, handle)
    if context:
        request.say_notices() if not request.json else None
        write_json(given)
        return
    summaries = {**given["dependency_summaries"], **({own: summary} if summary is not None else {})}
    request.answer(
        lambda canvas: task_text(state, given["task"], summaries=summaries, now=now, canvas=canvas, active=active),
        {
            "session": state.id,
            **task_record(state, state.tasks[own]),
            "document": given["task"],
            "parts": state.tasks.children(own),
            "dependants": state.tasks.dependants(own),
            "summary": summary,
            "dependency_summaries": given["dependency_summaries"],
        },
    )


@verb("validate", example="detent task validate")
@session_option
@click.pass_obj
def validate_tasks(request: Request, *, session: str | None) -> int:
    """Check every task file, whatever else is broken.

    Each problem has its rule, file, JSON path and severity. The exit code is 1 if there are errors.
    """
    from detent.cli.task_check import check_files
    from detent.render.terminal.tasks import problems_text

    with request.reading() as project:
        handle = session_of(project, session)
        count, problems = check_files(project, handle)
    errors = sum(problem.severity == "error" for problem in problems)
    request.answer(
        lambda canvas: problems_text(count, problems, canvas=canvas),
        {
            "session": handle.id,
            "files": count,
            "errors": errors,
            "warnings": len(problems) - errors,
            "problems": [
                {"rule": one.rule, "file": one.file, "path": one.path, "severity": one.severity, "message": one.message}
                for one in problems
            ],
        },
    )
    return 1 if errors else 0


def show_list(request: Request, project: "Project", handle: "SessionHandle", wanted: Wanted) -> None:
    """The list, written in pieces: of 100,000 tasks the first are there at once, and whoever has enough may go."""
    from detent.render.terminal.tasks import counts_line, list_lines, tally, task_commands, task_record

    state, active = handle.state, is_active(project, handle)
    rows, left_out = rows_for(state, wanted)
    if request.json:
        record = {"session": state.id, "phase": _phase(state), "complexity": state.complexity}
        tasks = [task_record(state, row) for row in rows]
        counts = tally(state.tasks)
        write_json({**record, "counts": counts, "tasks": tasks, "left_out": left_out, "notices": request.notices})
        return
    request.say_notices()
    sheet = canvas()
    lines = list_lines(state, rows, now=local_now(project), canvas=sheet, tree=wanted["tree"] and not wanted["ready"])
    write_lines(lines)
    write_lines(_below(state, rows, left_out))
    commands = [line for command in task_commands(state, active=active)[:2] for line in sheet.command(command)]
    write_lines(
        ["", counts_line(state.tasks, sheet), *(["", *commands] if commands else [])] if len(state.tasks) else []
    )


def rows_for(state: "Session", wanted: Wanted) -> "tuple[list[Row], int]":
    from detent.render.terminal.tasks import chosen

    rows = chosen(
        state.tasks,
        statuses=wanted["statuses"],
        agent=wanted["agent"],
        ready=wanted["ready"],
        flat=not wanted["tree"],
    )
    kept = rows[: wanted["count"]] if wanted["count"] else rows
    return kept, len(rows) - len(kept)


def write_lines(lines: Iterable[str]) -> None:
    pending = iter(lines)
    while part := list(islice(pending, _LINES_AT_ONCE)):
        sys.stdout.write("\n".join(part) + "\n")


def _below(state: "Session", rows: "list[Row]", left_out: int) -> list[str]:
    if not len(state.tasks):
        return [f"{state.id} has no tasks yet", "", '  detent task add "TITLE"']
    if left_out:
        return [f"and {left_out} more; -n 0 shows all"]
    return [] if rows else ["no task is like that"]


def _phase(state: "Session") -> str | None:
    from detent.documents.state.writing import current_phase

    return current_phase(state)
