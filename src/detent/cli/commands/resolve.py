"""`resolve`: resolves the open escalations."""

import click

from detent.cli.answers import decide
from detent.cli.request import Request
from detent.cli.verb import TEXT, phase_argument, session_option, verb


@verb("resolve", example='detent resolve retry --reason "the server is back"', decides=True)
@click.argument("action", type=click.Choice(["retry", "skip", "cancel"]))
@phase_argument
@click.option("-m", "--reason", type=TEXT, default="", help="Why; it is recorded.")
@session_option
def resolve_verb(request: Request, action: str, phase: str | None, *, reason: str, session: str | None) -> None:
    """Resolve the open escalations: retry, skip or cancel.

    All of them, or those of PHASE.
    retry continues the work and resets its counters, skip skips the blocked phases, cancel ends the session.
    """
    decide(request, session, lambda handle: handle.resolve(action, reason, phase=phase))
