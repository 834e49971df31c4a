"""`forget`: removes second copies of journals."""

import click

from detent.cli.person import agrees, check_can_be_asked
from detent.cli.request import Request
from detent.cli.verb import part_of_session, verb


@verb("forget", example="detent forget --yes")
@click.argument("session", required=False, shell_complete=part_of_session)
@click.option("--yes", is_flag=True, help="Do not ask here; your terminal still asks once.")
def forget_verb(request: Request, session: str | None, *, yes: bool) -> None:
    """Remove the second copies of the project's journals.

    Detent keeps a second copy of each journal outside the project, and says so when a journal no longer holds what its
    copy holds. Forget ends that: for a project that you remove on purpose, or for one SESSION whose journal shall count
    as it stands. Files of the project stay as they are.
    """
    from detent.engine.confirm import ask
    from detent.engine.policy import Decision

    request.authorize(Decision.FORGET)
    request.is_tolerant = True
    what = f"the second copy of {session}" if session else "the second copies of all sessions of this project"
    if yes:
        ask([f"forget {what}", "  commits that only the copy has are lost"], Decision.FORGET)
    else:
        check_can_be_asked("forget")
        if not agrees(f"Forget {what}? Commits that only the copy has are lost."):
            request.answer(lambda _: "nothing was forgotten", {"forgotten": []})
            return
    forgotten = _forget(request, session)
    text = f"forgot {', '.join(forgotten)}" if forgotten else "there is no second copy"
    request.answer(lambda _: text, {"forgotten": forgotten})


def _forget(request: Request, session: str | None) -> list[str]:
    from detent.doctor.mending import forget_project

    if session is None:
        return forget_project(request.directory, request.actor)
    with request.reading() as project:
        name = project.sessions.find(session)
        if project.store.repairs is not None:
            project.store.repairs.forget(name)
    return [name]
