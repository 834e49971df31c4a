"""`switch`: makes another session the active one."""

from detent.cli.answers import activate
from detent.cli.request import Request
from detent.cli.verb import named_session_argument, verb


@verb("switch", example="detent switch add-login")
@named_session_argument
def switch_verb(request: Request, name: str) -> None:
    """Make another session the active one.

    NAME is its id, a part of the id that only one session has, or its number in detent sessions. The session that was
    active is paused.
    """
    activate(request, lambda project: project.sessions.switch(name))
