"""`redo`: begins another attempt of a phase."""

from detent.cli.answers import answer_begun
from detent.cli.commands.begin import AGENT
from detent.cli.plain import SESSION, Parameter
from detent.cli.request import Request

EXAMPLE = 'detent redo 06-implementation --cascade --reason "the API changed"'
PARAMETERS = (
    Parameter("phase", required=True, completes="phases"),
    AGENT,
    Parameter("reason", ("-m", "--reason"), "Why the phase is done again.", default=""),
    Parameter("cascade", ("--cascade",), "Phases that built on it become pending again.", is_flag=True),
    SESSION,
)


def redo(request: Request, phase: str, *, agent: str | None, reason: str, cascade: bool, session: str | None) -> None:
    """Begin another attempt of a phase.

    The phase may be in any state. The token of its previous attempt is no longer valid.
    """
    with request.changing() as project:
        begun = project.session(session).redo(phase, agent=agent, reason=reason, cascade=cascade)
    answer_begun(request, begun)
