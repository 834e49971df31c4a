"""`pause`: pauses the active session."""

import click

from detent.cli.request import Request
from detent.cli.verb import TEXT, verb


@verb("pause", example='detent pause --reason "waiting for the review"')
@click.option("-m", "--reason", type=TEXT, default="", help="Why; it is recorded.")
def pause_verb(request: Request, *, reason: str) -> None:
    """Pause the active session.

    Tasks in progress are given back. detent resume continues the session.
    """
    from detent.core.task.row import TaskStatus

    with request.changing() as project:
        before = project.session().state.tasks.with_status(TaskStatus.ACTIVE)
        state = project.sessions.pause(reason)
    lines = [f"{state.id} is paused", *([f"given back: {', '.join(before)}"] if before else [])]
    request.answer(
        lambda canvas: "\n".join(
            [*(canvas.cut(line, canvas.width) for line in lines), "", *canvas.command(f"detent resume {state.id}")]
        ),
        {"session": state.id, "status": "paused", "released": before, "version": state.version},
    )
