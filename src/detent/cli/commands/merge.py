"""`merge`: merges the work of a worktree into the project."""

import click

from detent.cli.request import Request, session_of
from detent.cli.verb import phase_argument, session_option, verb


@verb("merge", example="detent merge 06-implementation")
@phase_argument
@click.option("--into", metavar="BRANCH", help="Merge into this branch; HEAD is what the project has checked out.")
@session_option
def merge_verb(request: Request, phase: str | None, *, into: str | None, session: str | None) -> None:
    """Merge a phase's worktree into the branch of the session.

    Commits open changes in the worktree, then merges its branch into detent/SESSION, or into the branch that a person
    chose with detent run --into. Without PHASE it is about the current worktree, or that of the whole session. The exit
    code is 3 if the merge fails; nothing is changed then. Only a person may use --into.
    """
    from detent.core.session.decide_phase import known_phase
    from detent.engine.policy import Decision
    from detent.run.merging import current, merge

    if into is not None:
        request.authorize(Decision.INTO)
    with request.reading() as project:
        here = current(project.place.root, request.directory)
        if here is not None and session is None and here.project == project.place.project:
            session, phase = here.session, phase or here.phase
        handle = session_of(project, session)
        done = merge(project, handle.id, known_phase(handle.state, phase) if phase else None, into=into)
    request.answer(lambda canvas: canvas.clean(done.message), {"said": done.message, "commit": done.commit})
