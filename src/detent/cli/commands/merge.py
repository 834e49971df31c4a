"""`merge`: merges the work of a worktree into the project."""

from detent.cli.request import Request, session_of
from detent.cli.verb import phase_argument, session_option, verb


@verb("merge", example="detent merge 06-implementation")
@phase_argument
@session_option
def merge_verb(request: Request, phase: str | None, session: str | None) -> None:
    """Merge the work of a phase's worktree into the project.

    Commits open changes in the worktree, then merges its branch into the project's checked-out branch. Without PHASE it
    merges the current worktree, or that of the whole session. The exit code is 3 if the merge fails; the project is
    then unchanged.
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
