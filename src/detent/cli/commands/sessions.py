"""`sessions`: lists the sessions."""

import click

from detent.cli.request import Request, local_now
from detent.cli.verb import verb


@verb("sessions", example="detent sessions --all")
@click.option("--all", "archived", is_flag=True, help="Archived sessions too.")
def sessions_verb(request: Request, *, archived: bool) -> None:
    """List the sessions: the active one first, then by last activity.

    switch, resume, reopen and archive take the number, the id or a part of the id.
    """
    import msgspec

    from detent.render.terminal.sessions import sessions_text

    with request.reading() as project:
        everything = list(enumerate(project.sessions.sessions(archived=True), 1))
        now, active = local_now(project), project.active()
    shown = [(number, entry) for number, entry in everything if archived or not entry.archived]
    hidden = len(everything) - len(shown)
    records = [{"index": number, "active": entry.id == active, **msgspec.to_builtins(entry)} for number, entry in shown]
    request.answer(
        lambda canvas: sessions_text(shown, hidden=hidden, now=now, canvas=canvas),
        {"active": active, "sessions": records, "archived": hidden},
    )
