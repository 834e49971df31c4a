"""`archive`: archives a session that has ended."""

from detent.cli.request import Request
from detent.cli.verb import named_session_argument, verb


@verb("archive", example="detent archive add-login", decides=True)
@named_session_argument
def archive_verb(request: Request, name: str) -> None:
    """Archive a session that has ended.

    No file is moved or removed. detent sessions --all lists the session, and detent reopen restores it.
    """
    with request.changing() as project:
        state = project.sessions.archive(name)
    request.answer(
        lambda canvas: "\n".join(
            [canvas.cut(f"{state.id} is archived", canvas.width), "", *canvas.command("detent sessions --all")]
        ),
        {"session": state.id, "archived": state.archived, "version": state.version},
    )
