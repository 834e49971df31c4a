"""`import`: creates a session from a bundle or from a state document."""

import os

import click

from detent.cli.answers import answer_started
from detent.cli.input import STDIN, read_text
from detent.cli.request import Request
from detent.cli.verb import verb
from detent.errors import Invalid


@verb("import", example="detent import login.bundle")
@click.argument("file", metavar="FILE")
def import_verb(request: Request, file: str) -> None:
    """Create a session from a bundle or from a state document.

    A bundle of detent export brings the same session with its journal. It does not become the active one, and no file
    of the project is touched: detent rollback with --session restores the files of a checkpoint, if the bundle holds
    them. A state document of Detent or of another tool makes a new session, which becomes the active one; - reads it
    from standard input.
    """
    from detent.engine.bundles.bundle_file import is_bundle

    path = os.path.join(request.directory, file)
    if file != STDIN and is_bundle(path):
        _import_bundle(request, path)
    else:
        _import_document(request, file)


def _import_bundle(request: Request, path: str) -> None:
    from detent.core.counted import counted
    from detent.engine.bundles.importing import import_session, without_files
    from detent.engine.decisions import view_now
    from detent.render.json.record import session_record

    with request.changing() as project:
        handle = import_session(project, path, progress=request.progress("importing bytes"))
        state, count = handle.state, len(handle.checkpoints.all())
        view, lacks_files = view_now(project, state), without_files(project.store, state.id) is not None
    if lacks_files and count:
        request.notices.append(
            f"the bundle holds no contents of files: none of its {counted(count, 'checkpoint')} can be restored, and "
            "tests that are run on the files of the start cannot run; a bundle of export bundle --with-files adds them"
        )
    request.answer(
        lambda canvas: "\n".join(
            [
                canvas.cut(f"imported {state.id} with {counted(count, 'checkpoint')}", canvas.width),
                "",
                *canvas.command(f"detent status --session {state.id}"),
                *canvas.command(f"detent checkpoint list --session {state.id}"),
            ]
        ),
        {"session": session_record(state, view), "checkpoints": count, "with_files": not lacks_files},
    )


def _import_document(request: Request, file: str) -> None:
    import msgspec

    try:
        document = msgspec.json.decode(read_text(request, file, what="the text from standard input"))
    except msgspec.DecodeError as error:
        raise Invalid(
            f"{file} is neither a bundle nor JSON: {error}", way_out="detent schema state shows what is expected"
        ) from error
    with request.changing() as project:
        handle = project.import_state(document, source=os.path.basename(file))
        answer = answer_started(request, project, handle)
    answer()
