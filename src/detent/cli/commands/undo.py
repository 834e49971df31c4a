"""`undo`: undoes the last rollback."""

from detent.cli.commands.rollback import Target, dry_run_option, roll_back, yes_option
from detent.cli.request import Request
from detent.cli.verb import session_option, verb


@verb("undo", example="detent undo", decides=True)
@dry_run_option
@yes_option
@session_option
def undo_verb(request: Request, *, dry_run: bool, yes: bool, session: str | None) -> int:
    """Undo the last rollback.

    Restores files and phases as they were before it, including work in progress. Undoing twice repeats the rollback.
    Only a person may do this: refused in an agent's shell, except with --dry-run.
    """
    return roll_back(request, Target(None), session, dry_run=dry_run, yes=yes)
