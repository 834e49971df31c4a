"""`sessions`, `switch`, `pause`, `resume`, `reopen`, `archive`: sessions side by side."""

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from detent.cli.request import Request, local_now
from detent.cli.verb import TEXT, verb
from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.project import Project


def _known_sessions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        with (context.find_object(Request) or Request()).reading() as project:
            names = project.store.sessions()
    except DetentError:
        return []
    return [CompletionItem(name) for name in names if incomplete.lower() in name.lower()]


_session_argument = click.argument("name", metavar="NAME", shell_complete=_known_sessions)
_optional_session_argument = click.argument("name", metavar="[NAME]", required=False, shell_complete=_known_sessions)


@verb("sessions", example="detent sessions --all")
@click.option("--all", "archived", is_flag=True, help="Archived ones too.")
@click.pass_obj
def sessions_verb(request: Request, *, archived: bool) -> None:
    """List the sessions: the active one first, then by last activity.

    The number in front, the id or a part of it names a session for switch, resume, reopen and archive.
    """
    import msgspec

    from detent.render.terminal.sessions import sessions_text

    with request.reading() as project:
        everything = list(enumerate(project.sessions.sessions(archived=True), 1))
        now, active = local_now(project), project.active()
    shown = [(at, one) for at, one in everything if archived or not one.archived]
    hidden = len(everything) - len(shown)
    request.answer(
        lambda canvas: sessions_text(shown, hidden=hidden, now=now, canvas=canvas),
        {
            "active": active,
            "sessions": [{"index": at, "active": one.id == active, **msgspec.to_builtins(one)} for at, one in shown],
            "archived": hidden,
        },
    )


@verb("switch", example="detent switch add-login")
@_session_argument
@click.pass_obj
def switch_verb(request: Request, name: str) -> None:
    """Make another session the active one.

    NAME is its id, a part of it that only one has, or its number in detent sessions. The one before it is paused.
    """
    with request.changing() as project:
        before, held = project.active(), _held(project)
        state = project.sessions.switch(name).state
    told = [f"{state.id} is active" + (" already" if before == state.id else "")]
    told += [f"{before} is paused{held}"] if before not in (None, state.id) else []
    _answer(request, state, told, paused=before if before != state.id else None)


@verb("pause", example='detent pause --reason "waiting for the review"')
@click.option("--reason", type=TEXT, default="", help="Why; it is recorded.")
@click.pass_obj
def pause_verb(request: Request, *, reason: str) -> None:
    """Pause the active session.

    Tasks in progress are given back. detent resume goes on with it.
    """
    from detent.core.task.row import TaskStatus

    with request.changing() as project:
        before = project.session().state.tasks.with_status(TaskStatus.ACTIVE)
        state = project.sessions.pause(reason)
    told = [f"{state.id} is paused", *([f"given back: {', '.join(before)}"] if before else [])]
    request.answer(
        lambda canvas: "\n".join(
            [*(canvas.cut(line, canvas.width) for line in told), "", *canvas.command(f"detent resume {state.id}")]
        ),
        {"session": state.id, "status": "paused", "released": before, "version": state.version},
    )


@verb("resume", example="detent resume add-login")
@_optional_session_argument
@click.pass_obj
def resume_verb(request: Request, name: str | None) -> None:
    """Resume a paused session.

    The one that was paused last, or NAME: an id, a part of it, or a number in detent sessions. Another that is active
    is paused.
    """
    with request.changing() as project:
        before, held = project.active(), _held(project)
        state = project.sessions.resume(name).state
    told = [f"{state.id} is active" + (" already" if before == state.id else "")]
    told += [f"{before} is paused{held}"] if before not in (None, state.id) else []
    _answer(request, state, told, paused=before if before != state.id else None)


@verb("reopen", example='detent reopen add-login --reason "the review found something"')
@_session_argument
@click.option("--reason", type=TEXT, default="", help="Why; it is recorded.")
@click.pass_obj
def reopen_verb(request: Request, name: str, *, reason: str) -> None:
    """Reopen a session that has ended.

    It becomes the active one; if all its phases were done, the last one begins again. To do a task again that is
    completed, use detent task reopen.
    """
    with request.changing() as project:
        before, held = project.active(), _held(project)
        state = project.sessions.reopen(name, reason).state
    told = [f"{state.id} is open again and active", *([f"{before} is paused{held}"] if before else [])]
    _answer(request, state, told, paused=before)


@verb("archive", example="detent archive add-login")
@_session_argument
@click.pass_obj
def archive_verb(request: Request, name: str) -> None:
    """Archive a session that has ended.

    Nothing of it is moved or removed; detent sessions --all still lists it, and reopen brings it back.
    """
    with request.changing() as project:
        state = project.sessions.archive(name)
    request.answer(
        lambda canvas: "\n".join(
            [canvas.cut(f"{state.id} is archived", canvas.width), "", *canvas.command("detent sessions --all")]
        ),
        {"session": state.id, "archived": state.archived, "version": state.version},
    )


def _held(project: "Project") -> str:
    """The tasks in progress that are given back when the active session is paused."""
    from detent.core.task.row import TaskStatus
    from detent.render.terminal.tasks import named

    active = project.active()
    tasks = project.session(active).state.tasks.with_status(TaskStatus.ACTIVE) if active else ()
    return f"; given back: {named(tasks)}" if tasks else ""


def _answer(request: Request, state: "Session", told: list[str], *, paused: str | None) -> None:
    from detent.render.json.record import session_record
    from detent.render.next_commands import command_lines
    from detent.render.terminal.header import bar_line
    from detent.render.terminal.tasks import counts_line, task_commands

    commands = task_commands(state)[:2]
    request.answer(
        lambda canvas: "\n".join(
            [
                *(canvas.cut(line, canvas.width) for line in told),
                "",
                canvas.cut(state.task, canvas.width),
                bar_line(state, canvas),
                *([counts_line(state.tasks, canvas)] if len(state.tasks) else []),
                "",
                *(line for command in commands for line in canvas.command(command)),
                *(command_lines(state, canvas) if not commands else []),
            ]
        ),
        {"session": session_record(state), "paused": paused},
    )
