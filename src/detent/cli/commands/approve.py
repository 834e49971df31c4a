"""`approve`: votes at a gate, or opens it by hand."""

from typing import TYPE_CHECKING

import click

from detent.cli.answers import decide
from detent.cli.request import Request
from detent.cli.verb import TEXT, phase_argument, session_option, verb

if TYPE_CHECKING:
    from detent.engine.results import Outcome
    from detent.engine.session import SessionHandle


@verb("approve", example='detent approve 06-implementation --gate tests -m "flaky on CI, looked at it"', decides=True)
@phase_argument
@click.option("--gate", metavar="NAME", help="Which gate, if it is not the one that asks for votes.")
@click.option("-m", "--reason", type=TEXT, required=True, help="Why; it is recorded with your name.")
@click.option(
    "--as", "stands_for", metavar="NAME", default="", help="The approver in whose place you vote; it is your vote."
)
@click.option("--reject", is_flag=True, help="Vote against it.")
@session_option
def approve_verb(
    request: Request,
    phase: str | None,
    *,
    gate: str | None,
    reason: str,
    stands_for: str,
    reject: bool,
    session: str | None,
) -> None:
    """Vote at a gate, or open one by hand.

    It is the vote of your account on this machine, at a terminal that no agent started. With --sign it is the vote of
    your key, and needs no terminal.
    """

    def vote(handle: "SessionHandle") -> "Outcome":
        return handle.approve(reason, gate=gate, phase=phase, stands_for=stands_for, approve=not reject)

    decide(request, session, vote)
