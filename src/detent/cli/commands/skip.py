"""`skip`: skips phases."""

import click

from detent.cli.answers import change_session
from detent.cli.request import Request
from detent.cli.verb import TEXT, phases_argument, session_option, verb


@verb("skip", example='detent skip 03-architecture 04-design --reason "a one-line change"', decides=True)
@phases_argument
@click.option("-m", "--reason", required=True, type=TEXT, help="Why they are skipped; it is recorded.")
@click.option("--size", help="Also skip the phases that this size of the workflow leaves out.")
@session_option
def skip_verb(request: Request, phases: tuple[str, ...], *, reason: str, size: str | None, session: str | None) -> None:
    """Skip phases, with a reason."""
    change_session(request, session, lambda handle: handle.skip(*phases, reason=reason, size=size))
