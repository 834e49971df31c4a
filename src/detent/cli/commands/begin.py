"""`begin`: begins a phase."""

from detent.cli.answers import answer_begun
from detent.cli.plain import PHASE, SESSION, Parameter
from detent.cli.request import Request

EXAMPLE = "detent begin 06-implementation --agent software-developer"
AGENT = Parameter("agent", ("--agent",), "Who does the work, if not the phase's own agent.", "NAME")
PARAMETERS = (PHASE, AGENT, SESSION)


def begin(request: Request, phase: str | None, *, agent: str | None, session: str | None) -> None:
    """Begin a phase, before its work is delegated.

    Without PHASE the first one that is ready. The answer has the token that finish and fail take, and the summaries and
    artifacts of earlier phases.
    """
    with request.changing() as project:
        begun = project.session(session).begin(phase, agent=agent)
    answer_begun(request, begun)
