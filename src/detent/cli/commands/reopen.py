"""`reopen`: reopens a session that has ended."""

import click

from detent.cli.answers import activate
from detent.cli.request import Request
from detent.cli.verb import TEXT, named_session_argument, verb


@verb("reopen", example='detent reopen add-login --reason "the review found something"', decides=True)
@named_session_argument
@click.option("-m", "--reason", type=TEXT, default="", help="Why; it is recorded.")
def reopen_verb(request: Request, name: str, *, reason: str) -> None:
    """Reopen a session that has ended.

    It becomes the active one; if all its phases were completed, the last phase begins again. detent task reopen does
    the same for a completed task.
    """
    activate(request, lambda project: project.sessions.reopen(name, reason), "open again and active")
