"""`import`: creates a session from a state document."""

import os

import click

from detent.cli.answers import answer_started
from detent.cli.input import read_text
from detent.cli.request import Request
from detent.cli.verb import verb
from detent.errors import Invalid


@verb("import", example="detent import old/state.json")
@click.argument("file", metavar="FILE")
def import_verb(request: Request, file: str) -> None:
    """Create a session from a state document.

    FILE is a state document of Detent or of another tool; - reads it from standard input. The session becomes the
    active one.
    """
    import msgspec

    try:
        document = msgspec.json.decode(read_text(request, file, what="the text from standard input"))
    except msgspec.DecodeError as error:
        raise Invalid(f"{file} is not JSON: {error}", way_out="detent schema state shows what is expected") from error
    with request.changing() as project:
        handle = project.import_state(document, source=os.path.basename(file))
        answer = answer_started(request, project, handle)
    answer()
