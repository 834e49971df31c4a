"""`publish`: brings the bundle of a session where CI finds it."""

import os
import shlex

import click

from detent.cli.commands.export import answer_bundle, write_bundle
from detent.cli.request import Request, Usage, last_session, write_text
from detent.cli.verb import session_option, verb

_FILE, _ARTIFACT, _REF = PLACES = ("file", "artifact", "ref")


@verb("publish", example="detent publish --to artifact -o record.bundle")
@click.option(
    "--to",
    type=click.Choice(PLACES),
    default=_FILE,
    show_default=True,
    help="A file to commit below .detent, a file of your choice, or a ref of the remote.",
)
@click.option("-o", "--output", metavar="FILE", help="With artifact: the file, whose path is printed.")
@session_option
def publish_verb(request: Request, *, to: str, output: str | None, session: str | None) -> None:
    """Bring the bundle of the session where CI finds it.

    file writes .detent/SESSION.bundle and says what to type to commit it. artifact writes FILE and prints its path, for
    a step of CI that keeps it. ref pushes refs/detent/SESSION to the remote that a person set in detent.toml ([publish]
    remote = "origin"); nothing is added to your repository. detent verify checks the bundle.
    """
    if (output is not None) != (to == _ARTIFACT):
        raise Usage("-o FILE belongs to --to artifact, which needs it", way_out="detent publish --help")
    if to == _ARTIFACT:
        _to_artifact(request, str(output), session)
    elif to == _FILE:
        _to_file(request, session)
    else:
        _to_ref(request, session)


def _to_artifact(request: Request, output: str, session: str | None) -> None:
    path = os.path.abspath(os.path.join(request.directory, output))
    bundle = write_bundle(request, path, session)
    if request.json:
        answer_bundle(request, path, bundle)
        return
    request.print_notices()
    # Alone, so that a script can take it.
    write_text(path)


def _to_file(request: Request, session: str | None) -> None:
    from detent.engine.bundles.publishing import publish_file

    with request.reading() as project:
        handle, progress = last_session(project, session), request.progress("exporting bytes")
        path, bundle = publish_file(project, handle.id, progress=progress)
    shown = shlex.quote(os.path.relpath(path, request.directory))
    commit = f'git commit -m "Publish the record of {handle.id}" {shown}'
    answer_bundle(request, path, bundle, f"git add {shown}", commit)


def _to_ref(request: Request, session: str | None) -> None:
    import msgspec

    from detent.engine.bundles.publishing import publish_ref

    with request.reading() as project:
        handle, progress = last_session(project, session), request.progress("exporting bytes")
        pushed = publish_ref(project, handle.id, progress=progress)
    request.answer(
        lambda canvas: "\n".join(
            [
                *canvas.wrap(f"pushed {pushed.ref} to {pushed.remote}"),
                "",
                *canvas.command(f"git fetch {pushed.remote} {pushed.ref}"),
                *canvas.command(f"git show FETCH_HEAD:{handle.id}.bundle > {handle.id}.bundle"),
            ]
        ),
        {"remote": pushed.remote, "ref": pushed.ref, "commit": pushed.commit, **msgspec.to_builtins(pushed.bundle)},
    )
