"""`export`: writes a document of the session."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, is_active, write_bytes, write_file
from detent.cli.verb import session_option, verb

if TYPE_CHECKING:
    from detent.engine.project import Project

KINDS = ("state", "session", "workflow", "history", "log")


@verb("export", example="detent export state -o state.json")
@click.argument("document", type=click.Choice(KINDS))
@click.option("-o", "--output", metavar="FILE", help="The file; standard output if not given.")
@session_option
def export_verb(request: Request, document: str, output: str | None, session: str | None) -> None:
    """Write a document of the session to a file.

    state, session and workflow are JSON; history and log are JSON Lines, oldest first. `detent schema` describes them.
    """
    with request.reading() as project:
        data = _exported(project, document, session)
    if output in (None, "-"):
        request.print_notices()
        write_bytes(data)
        return
    path = write_file(request, output or "", data)
    request.answer(lambda canvas: "\n".join(canvas.whole(f"wrote {path}")), {"written": path, "bytes": len(data)})


def _exported(project: "Project", document: str, session: str | None) -> bytes:
    from detent.documents import session as session_document
    from detent.documents import state as state_document
    from detent.engine.projections.publish import encode

    if document == "history":
        return _lines(project.history())
    handle = project.session(session)
    if document == "log":
        return _lines(handle.log())
    state = handle.state
    if document == "workflow":
        return encode(state.workflow)
    if document == "session":
        return encode(session_document.write(state, active=is_active(project, handle)))
    return encode(state_document.write(state, workflow_history=project.history()))


def _lines(values: Iterable[object]) -> bytes:
    import msgspec

    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)
