"""`complete`: completes the session."""

import click

from detent.cli.answers import change_session
from detent.cli.request import Request
from detent.cli.verb import session_option, verb


@verb("complete", example="detent complete --merged-commit 1a2b3c4", decides=True)
@click.option("--force", is_flag=True, help="Even if phases or tasks are open; it is recorded.")
@click.option("--merged-commit", metavar="SHA", help="The commit that the work was merged as.")
@session_option
def complete_verb(request: Request, *, force: bool, merged_commit: str | None, session: str | None) -> None:
    """Complete the session.

    Finishing the last phase does this too.
    """
    change_session(request, session, lambda handle: handle.complete(force=force, merged_commit=merged_commit))
