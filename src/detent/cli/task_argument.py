"""What the verbs about tasks share: naming a task, reading files, and the answer."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from detent.cli.request import Request, is_active
from detent.cli.verb import MAX_STDIN, decoded
from detent.errors import DetentError, Invalid, NotFound

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.core.task.plan import Plan
    from detent.engine.project import Project
    from detent.engine.results import Outcome
    from detent.engine.session import SessionHandle

F = TypeVar("F", bound=Callable[..., Any])

STDIN = "-"
_MEND = "mend it there and try again; nothing was changed"


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
    "--claim", metavar="N", type=click.IntRange(min=1), envvar="DETENT_CLAIM", help="Your claim's number; DETENT_CLAIM."
)


def task_option(name: str, *, multiple: bool = False, told: str) -> Callable[[F], F]:
    return click.option(name, metavar="ID", multiple=multiple, shell_complete=_known_tasks, help=told)


def known(handle: "SessionHandle", text: str) -> str:
    """The id of a task that there is; for any other the answer says which one may be meant."""
    from detent.core.task.id import read_id

    state = handle.state
    found = read_id(text)
    if found is not None and str(found) in state.tasks:
        return str(found)
    close = _close_to(state, text)
    if found is None:
        from detent.core.task.id import FORM

        raise Invalid(f"{text[:80]!r} is not a task id, which is {FORM}", way_out=close)
    if str(found) in state.retired:
        raise NotFound(f"{found} was removed, and its number is never used again", way_out="detent task list")
    raise NotFound(f"there is no task {found}", way_out=close)


def _close_to(state: "Session", text: str) -> str:
    import re

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


def read_text(request: Request, file: str) -> str:
    """The file, or standard input for -; it must be UTF-8."""
    if file == STDIN:
        return decoded(sys.stdin.buffer.read(MAX_STDIN + 1), "standard input")
    path = os.path.join(request.directory, file)
    try:
        with open(path, "rb") as opened:
            return decoded(opened.read(MAX_STDIN + 1), file)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}") from None
    except IsADirectoryError:
        raise Invalid(f"{file} is a directory, and a file is needed") from None


def read_json(request: Request, file: str) -> Any:
    """What the file says; where it goes wrong is told by line and column."""
    return parse_json(read_text(request, file), "standard input" if file == STDIN else file)


def parse_json(text: str, what: str) -> Any:
    import json

    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        told = error.msg[:1].lower() + error.msg[1:]
        raise Invalid(
            f"{what} is not JSON: {told} at line {error.lineno}, column {error.colno}", way_out=_MEND
        ) from None
    except RecursionError:
        raise Invalid(f"{what} is not JSON that can be read: it is nested too deeply", way_out=_MEND) from None


def answer_moved(
    request: Request,
    project: "Project",
    handle: "SessionHandle",
    outcome: "Outcome",
    *,
    notes: Sequence[str] = (),
    warnings: Iterable[str] = (),
    wrote: str = "added",
    **record: Any,
) -> None:
    """What a command did to tasks, and what can be typed next; `wrote` is what it did to documents."""
    from detent.cli.commands.attempt import dropped
    from detent.core.session.describe import describe
    from detent.core.session.events import CheckpointTaken, TaskMoved, TaskRemoved, TaskWritten
    from detent.render.terminal.task import moved_text
    from detent.render.terminal.tasks import tally, task_commands, task_record

    active = is_active(project, handle)
    session, said = outcome.session, (*outcome.warnings, *warnings)
    touched = [event.task for event in outcome.events if isinstance(event, TaskMoved | TaskWritten | TaskRemoved)]
    rows = [row for id_ in dict.fromkeys(touched) if (row := session.tasks.get(id_)) is not None]
    request.notices += dropped(outcome)
    request.answer(
        lambda canvas: moved_text(
            session, outcome.events, canvas=canvas, active=active, warnings=said, notes=notes, wrote=wrote
        ),
        {
            "session": session.id,
            "version": session.version,
            "done": [describe(event) for event in outcome.events if not isinstance(event, CheckpointTaken)],
            "tasks": [task_record(session, row) for row in rows],
            "counts": tally(session.tasks),
            "warnings": said,
            "next": task_commands(session, active=active),
            **record,
        },
    )
