"""`approve`: votes at a gate, or opens it by hand."""

import click

from detent.cli.answers import decide
from detent.cli.request import Request
from detent.cli.verb import TEXT, phase_argument, session_option, verb


@verb("approve", example='detent approve 06-implementation --gate tests -m "flaky on CI, looked at it"')
@phase_argument
@click.option("--gate", metavar="NAME", help="Which gate, if it is not the one that asks for votes.")
@click.option("-m", "--reason", type=TEXT, required=True, help="Why; it is recorded with your name.")
@click.option("--as", "who", metavar="NAME", help="The approver that you are, if not your user name.")
@click.option("--reject", is_flag=True, help="Vote against it.")
@session_option
def approve_verb(
    request: Request,
    phase: str | None,
    *,
    gate: str | None,
    reason: str,
    who: str | None,
    reject: bool,
    session: str | None,
) -> None:
    """Vote at a gate, or open one by hand."""
    decide(request, session, lambda handle: handle.approve(reason, gate=gate, phase=phase, who=who, approve=not reject))
