"""`next`: shows the next step of the session."""

from detent.cli.plain import SESSION
from detent.cli.request import Request, local_now

EXAMPLE = "detent next"
PARAMETERS = (SESSION,)


def next(request: Request, session: str | None = None) -> None:  # noqa: A001 - the name of the verb
    """Show what waits for you, and the next commands."""
    from detent.core.session.open_decision import open_decisions
    from detent.engine.decisions import verdicts_now, view_now
    from detent.render.next_commands import START, next_commands, shown_commands
    from detent.render.terminal.decisions import decision_lines

    with request.reading() as project:
        if session is None and project.binding is None and project.active() is None:
            request.answer(
                lambda canvas: "\n".join(["no session is active", "", *canvas.command(START)]),
                {"session": None, "needs": [], "next": [START]},
            )
            return
        name = project.session_id(session)
        state, now = project.journal(name).session(), local_now(project)
        view, judged = view_now(project, state), verdicts_now(project, state)
    decisions = open_decisions(state, judged, view)
    commands = next_commands(state, view, judged=judged, decisions=decisions)
    # Those of the decisions are above already.
    others = [command for command in commands if command not in {entry.command for entry in decisions}]
    request.answer(
        lambda canvas: "\n".join(
            [*decision_lines(decisions, view, now=now, canvas=canvas), *shown_commands(others, canvas)]
        ).rstrip("\n"),
        {"session": state.id, "needs": decisions, "next": commands},
    )
