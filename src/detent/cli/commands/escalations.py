"""`escalations`: lists the open escalations."""

from detent.cli.request import Request, local_now
from detent.cli.verb import session_option, verb


@verb("escalations", example="detent escalations")
@session_option
def escalations_verb(request: Request, session: str | None) -> None:
    """List the escalations that wait for a person, with the commands that decide them."""
    from detent.core.session.open_decision import escalations_open
    from detent.engine.decisions import view_now
    from detent.render.terminal.decisions import escalations_text

    with request.reading() as project:
        state = project.session(session).state
        decisions = escalations_open(state, view_now(project, state))
        now = local_now(project)
    request.answer(
        lambda canvas: escalations_text(state.escalations, decisions, now=now, canvas=canvas),
        {"escalations": state.escalations, "needs": decisions},
    )
