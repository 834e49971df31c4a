"""`release`: opens every closed gate of a phase by hand."""

import click

from detent.cli.answers import decide
from detent.cli.request import Request
from detent.cli.verb import TEXT, phase_argument, session_option, verb


@verb("release", example='detent release --reason "the gate is wrong, see the log"', decides=True)
@phase_argument
@click.option("-m", "--reason", type=TEXT, required=True, help="Why; it is recorded with your name.")
@session_option
def release_verb(request: Request, phase: str | None, *, reason: str, session: str | None) -> None:
    """Open every closed gate of a phase by hand.

    It also resolves the open escalations, so the work can always continue. The journal keeps the reason.
    """
    decide(request, session, lambda handle: handle.release(reason, phase=phase))
