"""`merge`: bringing the work of a worktree back into the project."""

import click

from detent.cli.request import Request, session_of
from detent.cli.verb import phase_argument, session_option, verb


@verb("merge", example="detent merge 06-implementation")
@phase_argument
@session_option
@click.pass_obj
def merge_verb(request: Request, phase: str | None, session: str | None) -> None:
    """Merge the work of a phase's worktree into the project.

    What is not committed in the worktree is committed there; then its branch is merged into what the project has
    checked out. Without PHASE it is the worktree of the whole session, or the one that this is called in. The exit code
    is 3 if the merge cannot be made; then nothing has changed in the project.
    """
    from detent.core.session.decide_phase import known_phase
    from detent.run.merging import current, merge

    with request.reading() as project:
        here = current(project.place.root, request.directory)
        if here is not None and session is None and here.project == project.place.project:
            session, phase = here.session, phase or here.phase
        handle = session_of(project, session)
        done = merge(project, handle.id, known_phase(handle.state, phase) if phase else None)
    request.answer(lambda canvas: canvas.clean(done.message), {"said": done.message, "commit": done.commit})
