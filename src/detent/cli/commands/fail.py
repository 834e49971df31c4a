"""`fail`: ends an attempt that did not succeed."""

from typing import Unpack

from detent.cli.answers import end_attempt
from detent.cli.attempt import ENDING, Ending, ending_values
from detent.cli.plain import PHASE, Parameter
from detent.cli.request import Request

EXAMPLE = 'detent fail 06-implementation -m "the tests do not pass"'
PARAMETERS = (
    PHASE,
    Parameter("message", ("-m", "--message"), "What went wrong; - reads it.", "ERROR", required=True, is_text=True),
    *ENDING,
)


def fail(request: Request, phase: str | None, *, message: str, **ending: Unpack[Ending]) -> None:
    """End an attempt that did not succeed.

    detent redo begins the next attempt.
    """
    values = ending_values(request, "fail", phase, ending)
    end_attempt(request, ending["session"], lambda handle: handle.fail(message, **values))
