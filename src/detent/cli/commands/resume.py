"""`resume`: resumes a paused session."""

import click

from detent.cli.answers import activate
from detent.cli.request import Request
from detent.cli.verb import part_of_session, verb


@verb("resume", example="detent resume add-login")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=part_of_session)
def resume_verb(request: Request, name: str | None) -> None:
    """Resume a paused session.

    The session that was paused last, or NAME: an id, a part of it, or a number in detent sessions. The session that was
    active is paused.
    """
    activate(request, lambda project: project.sessions.resume(name))
