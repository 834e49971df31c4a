"""`finish`: finishes an attempt."""

from typing import Unpack

from detent.cli.answers import end_attempt
from detent.cli.attempt import ENDING, Ending, ending_values
from detent.cli.plain import PHASE, Parameter
from detent.cli.request import Request

EXAMPLE = 'detent finish 06-implementation -m "Parser and tests written" --artifact src/parser.py'
PARAMETERS = (
    PHASE,
    Parameter(
        "message",
        ("-m", "--message"),
        "What was done; - reads it from standard input.",
        "SUMMARY",
        required=True,
        is_text=True,
    ),
    Parameter("deliverables", ("--deliverable",), "Something delivered; repeat it.", "TEXT", multiple=True),
    Parameter("context", ("--context",), "What the next phase should know.", "TEXT", is_text=True, default=""),
    Parameter("merged_commit", ("--merged-commit",), "With the last phase: the commit that merged the work.", "SHA"),
    *ENDING,
)


def finish(
    request: Request,
    phase: str | None,
    *,
    message: str,
    deliverables: tuple[str, ...],
    context: str,
    merged_commit: str | None,
    **ending: Unpack[Ending],
) -> None:
    """Finish an attempt with a summary of the work.

    Without PHASE and token it finishes the phase in progress. It is refused while a gate is closed, and names the gate.
    The next phase does not begin by itself: the answer shows the command. After the last phase the session is complete.
    """
    values = ending_values(request, "finish", phase, ending)
    end_attempt(
        request,
        ending["session"],
        lambda handle: handle.finish(
            message, deliverables=deliverables, context=context, merged_commit=merged_commit, **values
        ),
    )
