"""`cancel`: cancels the session."""

import click

from detent.cli.answers import change_session
from detent.cli.request import Request
from detent.cli.verb import TEXT, session_option, verb


@verb("cancel", example='detent cancel --reason "not wanted any more"', decides=True)
@click.option("-m", "--reason", required=True, type=TEXT, help="Why; it is recorded.")
@session_option
def cancel_verb(request: Request, *, reason: str, session: str | None) -> None:
    """Cancel the session, with a reason."""
    change_session(request, session, lambda handle: handle.cancel(reason))
