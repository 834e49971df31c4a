"""`note`: keeps an analysis, a talk or ideas with the session."""

import click

from detent.cli.request import Request, session_of
from detent.cli.verb import TEXT, session_option, verb


@verb("note", example='detent note "Passkeys need a table of their own" --kind analysis --name passkeys')
@click.argument("text", type=TEXT)
@click.option(
    "--kind",
    type=click.Choice(["chat", "analysis", "ideas"]),
    default="analysis",
    help="What it is; analysis if not given.",
)
@click.option("--name", metavar="NAME", type=TEXT, help="Name of the file; the next number if not given.")
@session_option
def note_verb(request: Request, text: str, *, kind: str, name: str | None, session: str | None) -> None:
    """Keep an analysis, a talk or ideas with the session.

    chat and analysis go to .chat, ideas to .brainstorming, in the directory of the session. Nothing is overwritten.
    """
    from detent.engine.notes import NoteKind, keep_note

    with request.changing() as project:
        handle = session_of(project, session)
        file = project.store.location(keep_note(project.store, handle.id, NoteKind(kind), text, name=name))
    request.answer(lambda canvas: canvas.clean(file), {"session": handle.id, "file": file})
