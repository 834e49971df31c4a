"""Parameters that `finish` and `fail` share. Needs no click."""

import os
from typing import TYPE_CHECKING, TypedDict

from detent.cli.plain import SESSION, Parameter
from detent.cli.request import Request, Usage

if TYPE_CHECKING:
    from detent.core.session.phase_state import Tokens

ENDING = (
    Parameter("artifacts", ("--artifact",), "A file the phase made; repeat it.", "PATH", multiple=True),
    Parameter("token", ("--token",), "The token of begin; or DETENT_TOKEN.", "T", envvar="DETENT_TOKEN"),
    Parameter("tokens_in", ("--tokens-in",), "Model tokens read.", "N", is_number=True),
    Parameter("tokens_out", ("--tokens-out",), "Model tokens written.", "N", is_number=True),
    SESSION,
)


class Ending(TypedDict):
    artifacts: tuple[str, ...]
    token: str | None
    tokens_in: int
    tokens_out: int
    session: str | None


class _Values(TypedDict):
    token: str | None
    phase: str | None
    artifacts: list[str]
    tokens: "Tokens"


def ending_values(request: Request, verb: str, phase: str | None, ending: Ending) -> _Values:
    """The arguments for the session; a path that exists relative to the current directory counts from there."""
    from detent.core.session.phase_state import Tokens
    from detent.core.session.token import parse_token
    from detent.core.workflow.phase_key import normalize_phase_key

    token = ending["token"] or None
    # The token may be left over in the environment: it must not end a phase other than the named one.
    if phase and token and normalize_phase_key(phase) != normalize_phase_key(parse_token(token).phase):
        raise Usage(
            f"the token {token} is not of phase {phase}; leave one of them out, or unset DETENT_TOKEN",
            way_out=f"detent {verb} --help",
        )
    here = os.path.realpath(request.directory)
    paths = [
        joined if path and os.path.exists(joined := os.path.join(here, path)) else path for path in ending["artifacts"]
    ]
    tokens = Tokens(input=ending["tokens_in"], output=ending["tokens_out"])
    return {"token": token, "phase": phase, "artifacts": paths, "tokens": tokens}
