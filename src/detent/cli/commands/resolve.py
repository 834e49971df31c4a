"""`resolve`: resolves the open escalations."""

import click

from detent.cli.answers import decide
from detent.cli.request import Request
from detent.cli.verb import TEXT, session_option, verb


@verb("resolve", example='detent resolve retry --reason "the server is back"')
@click.argument("action", type=click.Choice(["retry", "skip", "cancel"]))
@click.option("--reason", type=TEXT, default="", help="Why; it is recorded.")
@session_option
def resolve_verb(request: Request, action: str, *, reason: str, session: str | None) -> None:
    """Resolve the open escalations: retry, skip or cancel.

    retry continues the work and resets its counters, skip skips the blocked phases, cancel ends the session.
    """
    decide(request, session, lambda handle: handle.resolve(action, reason))
