"""`log`: shows the commits of the session."""

from detent.cli.request import Request, last, last_session, local_now
from detent.cli.verb import count_option, session_option, verb


@verb("log", example="detent log -n 5")
@count_option
@session_option
def log_verb(request: Request, count: int, session: str | None) -> None:
    """Show the commits of the session: who did what, when.

    If no session is active, it shows the one in which something happened last.
    """
    from detent.render.terminal.log import commit_record, log_text

    with request.reading() as project:
        handle = last_session(project, session)
        (commits, left_out), state = last(handle.log(), count), handle.state
        now = local_now(project)
    request.answer(
        lambda canvas: log_text(state, commits, left_out=left_out, now=now, canvas=canvas),
        {"commits": [commit_record(commit) for commit in commits], "left_out": left_out},
    )
