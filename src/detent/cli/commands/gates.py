"""`gates`: shows the verdicts of gates."""

from detent.cli.request import Request
from detent.cli.verb import phase_argument, session_option, verb


@verb("gates", example="detent gates 06-implementation")
@phase_argument
@session_option
def gates_verb(request: Request, phase: str | None, session: str | None) -> None:
    """Show the verdict of every gate.

    Of the phases in progress, or of PHASE. Below a verdict stand the tests that the last run names: those that failed,
    vanished, were skipped or are new, and the findings in the code.
    """
    from detent.render.json.gates import gates_record
    from detent.render.terminal.gates import gates_text

    with request.reading() as project:
        handle = project.session(session)
        state, judgements = handle.state, handle.gates.judgements(phase)
    request.answer(lambda canvas: gates_text(state, judgements, canvas), gates_record(state, judgements))
