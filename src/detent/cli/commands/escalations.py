"""`escalations`: lists the open escalations."""

from detent.cli.request import Request
from detent.cli.verb import session_option, verb


@verb("escalations", example="detent escalations")
@session_option
def escalations_verb(request: Request, session: str | None) -> None:
    """List the escalations that wait for a person."""
    with request.reading() as project:
        escalations = project.session(session).state.escalations
    lines: list[str] = []
    for escalation in escalations:
        lines += [f"{escalation.at:%Y-%m-%d %H:%M}  {escalation.phase}  {escalation.kind}", f"  {escalation.detail}"]
    lines = [*lines, "", "detent resolve retry|skip|cancel"] if lines else ["nothing waits for a decision"]
    request.answer(lambda canvas: "\n".join(map(canvas.clean, lines)), {"escalations": escalations})
