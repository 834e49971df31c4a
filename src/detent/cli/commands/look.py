"""`status`, `why`, `log`, `history`: looking, without changing anything."""

import click

from detent.cli.commands.status import show_status
from detent.cli.request import Request, is_active, last, local_now
from detent.cli.verb import phase_argument, session_option, verb

_SHOWN = 20


@verb("status", example="detent status")
@session_option
@click.pass_obj
def status_verb(request: Request, session: str | None) -> None:
    """Show where the session stands and the next command."""
    show_status(request, session)


@verb("why", example="detent why 08-code-review")
@phase_argument
@session_option
@click.pass_obj
def why_verb(request: Request, phase: str | None, session: str | None) -> None:
    """Explain what blocks the session, or one phase."""
    from detent.core.session.decide_phase import known_phase
    from detent.render.terminal.why import why_text

    with request.reading() as project:
        handle = project.session(session)
        state, active, everything = handle.state, is_active(project, handle), handle.why()
    key = known_phase(state, phase) if phase else None
    found = tuple(each for each in everything if key is None or each.phase in (key, None))
    request.answer(
        lambda canvas: why_text(state, found, phase=key, canvas=canvas, active=active),
        {"session": state.id, "phase": key, "obstacles": found},
    )


@verb("log", example="detent log -n 5")
@click.option("-n", "count", metavar="N", type=click.IntRange(min=0), default=_SHOWN, help="The last N; 0 is all.")
@session_option
@click.pass_obj
def log_verb(request: Request, count: int, session: str | None) -> None:
    """Show the commits of the session: who did what, when."""
    from detent.render.terminal.log import commit_record, log_text

    with request.reading() as project:
        commits, left_out = last(project.session(session).log(), count)
        now = local_now(project)
    request.answer(
        lambda canvas: log_text(commits, left_out=left_out, now=now, canvas=canvas),
        {"commits": [commit_record(commit) for commit in commits], "left_out": left_out},
    )


@verb("history", example="detent history -n 5")
@click.option("-n", "count", metavar="N", type=click.IntRange(min=0), default=_SHOWN, help="The last N; 0 is all.")
@click.pass_obj
def history_verb(request: Request, count: int) -> None:
    """List the sessions that have ended."""
    from detent.render.terminal.history import history_text

    with request.reading() as project:
        entries = project.history()
    shown, left_out = last(entries, count)
    request.answer(
        lambda canvas: history_text(entries, left_out=left_out, canvas=canvas),
        {"history": shown, "left_out": left_out},
    )
