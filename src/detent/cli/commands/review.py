"""`review`: decides about a finished phase under review."""

import click

from detent.cli.answers import decide
from detent.cli.request import Request
from detent.cli.verb import TEXT, phase_argument, session_option, verb


@verb("review", example='detent review redo -m "smaller steps"', decides=True)
@click.argument("decision", type=click.Choice(["continue", "review", "redo"]))
@phase_argument
@click.option("-m", "--note", type=TEXT, default="", help="A note for the agent.")
@session_option
def review_verb(request: Request, decision: str, phase: str | None, *, note: str, session: str | None) -> None:
    """Decide about a finished phase under review."""
    decide(request, session, lambda handle: handle.review(decision, phase=phase, note=note))
