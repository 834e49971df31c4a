"""Arguments and answers that the verbs about tasks share."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from detent.cli.answers import note_dropped
from detent.cli.request import Request
from detent.errors import DetentError, Invalid, NotFound

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.core.task.plan import Plan
    from detent.engine.project import Project
    from detent.engine.results import Outcome
    from detent.engine.session import SessionHandle
    from detent.engine.tasks.tasks import Tasks

F = TypeVar("F", bound=Callable[..., Any])


def _known_tasks(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    wanted = incomplete.upper()
    try:
        with (context.find_object(Request) or Request()).reading() as project:
            rows = project.session(context.params.get("session")).tasks.rows()
    except DetentError:
        return []
    return [CompletionItem(row.id, help=row.title[:60]) for row in rows if row.id.startswith(wanted)]


task_argument = click.argument("task", metavar="ID", shell_complete=_known_tasks)
optional_task_argument = click.argument("task", metavar="[ID]", required=False, shell_complete=_known_tasks)
claim_option = click.option(
    "--claim",
    metavar="N",
    type=click.IntRange(min=1),
    envvar="DETENT_CLAIM",
    help="The number of your claim; or DETENT_CLAIM.",
)


def task_option(name: str, *, multiple: bool = False, help: str) -> Callable[[F], F]:  # noqa: A002 - click's word
    return click.option(name, metavar="ID", multiple=multiple, shell_complete=_known_tasks, help=help)


def known_task(handle: "SessionHandle", text: str) -> str:
    """The id of an existing task; for any other text the error suggests a task."""
    from detent.core.task.id import FORM, read_id

    state = handle.state
    task = read_id(text)
    if task is not None and str(task) in state.tasks:
        return str(task)
    close = _close_to(state, text)
    if task is None:
        raise Invalid(f"{text[:80]!r} is not a task id, which is {FORM}", way_out=close)
    if str(task) in state.retired:
        raise NotFound(f"{task} was removed, and its number is never used again", way_out="detent task list")
    raise NotFound(f"there is no task {task}", way_out=close)


def _close_to(state: "Session", text: str) -> str:
    plan = state.tasks
    if not len(plan):
        return 'detent task add "TITLE"'
    numbers = re.search(r"([0-9]{1,9})(?:[.-]([0-9]{1,9}))?", text, re.ASCII)
    main = f"IMPL-{int(numbers[1])}" if numbers else ""
    part = f"{main}.{int(numbers[2])}" if numbers and numbers[2] else main
    if part in plan:
        return f"did you mean {part}?"
    if main in plan:
        return _parts_of(plan, main)
    return f"the last one is {plan.ids[-1]}; detent task list shows all"


def _parts_of(plan: "Plan", main: str) -> str:
    parts = plan.children(main)
    if not parts:
        return f"{main} has no parts; detent task show {main}"
    return f"{main} has {parts[0]} to {parts[-1]}" if len(parts) > 1 else f"did you mean {parts[0]}?"


def answer_moved(
    request: Request,
    project: "Project",
    outcome: "Outcome",
    *,
    notes: Sequence[str] = (),
    warnings: Iterable[str] = (),
    wrote: str = "added",
    **record: Any,
) -> None:
    """Answer with the changed tasks and the next commands; `wrote` is the word for a written document."""
    from detent.core.session.describe import describe
    from detent.core.session.events import CheckpointTaken, TaskMoved, TaskRemoved, TaskWritten
    from detent.engine.decisions import view_now
    from detent.render.terminal.task import moved_text
    from detent.render.terminal.tasks import tally, task_commands, task_record

    view = view_now(project, outcome.session)
    session, all_warnings = outcome.session, (*outcome.warnings, *warnings)
    touched = [event.task for event in outcome.events if isinstance(event, TaskMoved | TaskWritten | TaskRemoved)]
    rows = [row for id_ in dict.fromkeys(touched) if (row := session.tasks.get(id_)) is not None]
    note_dropped(request, outcome)
    request.answer(
        lambda canvas: moved_text(
            session, outcome.events, canvas=canvas, view=view, warnings=all_warnings, notes=notes, wrote=wrote
        ),
        {
            "session": session.id,
            "version": session.version,
            "done": [describe(event) for event in outcome.events if not isinstance(event, CheckpointTaken)],
            "tasks": [task_record(session, row) for row in rows],
            "counts": tally(session.tasks),
            "warnings": all_warnings,
            "next": task_commands(session, view),
            **record,
        },
    )


def move_task(
    request: Request,
    session: str | None,
    task: str,
    move: "Callable[[Tasks, str], Outcome]",
    notes: "Callable[[Session, str], list[str]] | None" = None,
    *,
    summary: str = "",
) -> None:
    """Change the state of a task, and answer with it. A summary is kept, also if there is no such task."""
    with request.changing() as project:
        handle = project.session(session)
        try:
            own = known_task(handle, task)
        except DetentError as error:
            if summary.strip():
                error.message += f"; the summary is kept in {handle.tasks.keep_summary(task, summary)}"
            raise
        outcome = move(handle.tasks, own)
        answer_moved(request, project, outcome, notes=notes(outcome.session, own) if notes else ())
