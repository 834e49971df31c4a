"""`task list` and `task show`: shows tasks. `detent tasks` shares the list."""

import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from detent.cli.request import Request, canvas, local_now, session_of, write_json
from detent.cli.task import known_task, task_argument
from detent.cli.verb import session_option, verb

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.core.task.row import Row
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

F = TypeVar("F", bound=Callable[..., Any])
_STATUSES = ("pending", "active", "completed", "blocked", "failed", "container")
_LINES_AT_ONCE = 500


class ListOptions(TypedDict):
    """The options of a list of tasks."""

    statuses: tuple[str, ...]
    agent: str | None
    ready: bool
    count: int | None
    tree: bool
    session: str | None


def list_options(function: F) -> F:
    for option in reversed(
        [
            click.option(
                "--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Only these; repeat it."
            ),
            click.option("--agent", metavar="NAME", help="Only tasks of this agent."),
            click.option("--ready", is_flag=True, help="Only tasks that can be started now, in execution order."),
            click.option("-n", "count", metavar="N", type=click.IntRange(min=0), help="The first N; 0 is all."),
            click.option(
                "--tree/--flat",
                default=True,
                help="Parts below their containers, or no containers, in execution order.",
            ),
            session_option,
        ]
    ):
        function = option(function)
    return function


@verb("list", example="detent task list --status failed --status blocked")
@list_options
def list_tasks(request: Request, **options: Unpack[ListOptions]) -> None:
    """List the tasks of the session."""
    with request.reading() as project:
        handle = session_of(project, options["session"])
        show_list(request, project, handle, options)


@verb("show", example="detent task show IMPL-3 --context")
@task_argument
@click.option("--context", is_flag=True, help="Print the context of its agent, as JSON.")
@session_option
def show_task(request: Request, task: str, *, context: bool, session: str | None) -> None:
    """Show a task: its document, state, dependencies and summaries."""
    from detent.engine.decisions import view_now
    from detent.render.terminal.task import task_text
    from detent.render.terminal.tasks import task_record

    with request.reading() as project:
        handle = session_of(project, session)
        own = known_task(handle, task)
        own_context, state, summary = handle.tasks.context(own), handle.state, handle.tasks.summary(own)
        now, view = local_now(project), view_now(project, handle.state)
    if context:
        if not request.json:
            request.print_notices()
        write_json(own_context)
        return
    summaries = {**own_context["dependency_summaries"], **({own: summary} if summary is not None else {})}
    request.answer(
        lambda canvas: task_text(state, own_context["task"], summaries=summaries, now=now, canvas=canvas, view=view),
        {
            "session": state.id,
            **task_record(state, state.tasks[own]),
            "document": own_context["task"],
            "parts": state.tasks.children(own),
            "dependants": state.tasks.dependants(own),
            "summary": summary,
            "dependency_summaries": own_context["dependency_summaries"],
        },
    )


def show_list(request: Request, project: "Project", handle: "SessionHandle", options: ListOptions) -> None:
    """Write the list in chunks, so that the first of 100,000 tasks appear at once."""
    from detent.engine.decisions import view_now
    from detent.render.terminal.tasks import counts_line, list_lines, tally, task_commands, task_record

    state = handle.state
    view = view_now(project, state)
    rows, left_out = rows_for(state, options)
    if request.json:
        record = {"session": state.id, "phase": _phase(state), "complexity": state.complexity}
        tasks = [task_record(state, row) for row in rows]
        counts = tally(state.tasks)
        write_json({**record, "counts": counts, "tasks": tasks, "left_out": left_out, "notices": request.notices})
        return
    request.print_notices()
    sheet = canvas()
    lines = list_lines(state, rows, now=local_now(project), canvas=sheet, tree=options["tree"] and not options["ready"])
    write_lines(lines)
    write_lines(_below(state, rows, left_out))
    commands = [line for command in task_commands(state, view)[:2] for line in sheet.command(command)]
    write_lines(
        ["", counts_line(state.tasks, sheet), *(["", *commands] if commands else [])] if len(state.tasks) else []
    )


def rows_for(state: "Session", options: ListOptions) -> "tuple[list[Row], int]":
    from detent.render.terminal.tasks import chosen

    rows = chosen(
        state.tasks,
        statuses=options["statuses"],
        agent=options["agent"],
        ready=options["ready"],
        flat=not options["tree"],
    )
    kept = rows[: options["count"]] if options["count"] else rows
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
    return [] if rows else ["no task matches"]


def _phase(state: "Session") -> str | None:
    from detent.documents.state.writing import current_phase

    return current_phase(state)
