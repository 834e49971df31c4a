"""`export`: writes a document of the session, or all of it as a bundle."""

import os
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, Usage, is_active, last_session, write_bytes, write_file
from detent.cli.since import since_option
from detent.cli.verb import session_option, verb

if TYPE_CHECKING:
    from detent.engine.bundles.exporting import Bundle
    from detent.engine.project import Project
    from detent.render.terminal.canvas import Canvas

BUNDLE = "bundle"
OTLP = "otlp"
KINDS = ("state", "session", "workflow", "history", "log", BUNDLE, OTLP)


@verb("export", example="detent export bundle -o login.bundle")
@click.argument("document", type=click.Choice(KINDS))
@click.option("-o", "--output", metavar="FILE", help="The file; standard output if not given.")
@click.option("--with-files", is_flag=True, help="With bundle: also the contents of files, to restore checkpoints.")
@click.option("--endpoint", metavar="URL", help="With otlp: send it to this collector instead of writing it.")
@since_option
@session_option
def export_verb(
    request: Request,
    document: str,
    output: str | None,
    *,
    with_files: bool,
    endpoint: str | None,
    since: datetime | None,
    session: str | None,
) -> None:
    """Write a document of the session, or all of it as a bundle.

    state, session and workflow are JSON; history and log are JSON Lines, oldest first. `detent schema` describes them.
    bundle is one file with the journal, receipts, proofs and manifests of the session: detent verify checks it on any
    machine, and detent import creates the same session from it in another project. otlp is traces and metrics for
    OpenTelemetry, a line each; a second export has the same ids. With --since it has all sessions since then.
    """
    if document == OTLP:
        _export_otlp(request, output, endpoint, since, session)
        return
    if endpoint is not None or since is not None:
        raise Usage(f"--endpoint and --since belong to otlp, not to {document}", way_out="detent export --help")
    if with_files and document != BUNDLE:
        raise Usage(f"--with-files belongs to bundle, not to {document}", way_out="detent export --help")
    if document == BUNDLE:
        _export_bundle(request, output, session, with_files=with_files)
        return
    with request.reading() as project:
        data = _exported(project, document, session)
    _write(request, output, data)


def _export_otlp(
    request: Request, output: str | None, endpoint: str | None, since: datetime | None, session: str | None
) -> None:
    import msgspec

    from detent.engine.otlp_export import otlp_payloads, send_payloads

    if endpoint is not None and output is not None:
        raise Usage("name an endpoint or a file, not both", way_out="detent export --help")
    with request.reading() as project:
        only = last_session(project, session).id if since is None else None
        payloads = otlp_payloads(project, since=since, only=only, progress=request.progress("reading sessions"))
        if endpoint is not None:
            send_payloads(payloads, endpoint, project.settings.telemetry, os.environ)
    request.clear_progress()
    if endpoint is not None:
        spans, points = payloads.spans, payloads.points
        request.answer(
            lambda canvas: "\n".join(canvas.wrap(f"sent {spans} spans and {points} metrics to {endpoint}")),
            {"endpoint": endpoint, "spans": spans, "metrics": points},
        )
        return
    data = b"".join(msgspec.json.encode(each) + b"\n" for each in (payloads.traces, payloads.metrics))
    _write(request, output, data)


def _write(request: Request, output: str | None, data: bytes) -> None:
    if output in (None, "-"):
        request.print_notices()
        write_bytes(data)
        return
    path = write_file(request, output or "", data)
    request.answer(lambda canvas: "\n".join(canvas.whole(f"wrote {path}")), {"written": path, "bytes": len(data)})


def _export_bundle(request: Request, output: str | None, session: str | None, *, with_files: bool) -> None:
    if output not in (None, "-"):
        path = os.path.normpath(os.path.join(request.directory, str(output)))
        answer_bundle(request, path, write_bundle(request, path, session, with_files=with_files))
        return
    if sys.stdout.isatty():
        raise Usage("a bundle is no text for a terminal", way_out="name a file with -o FILE, or use a pipe")
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="detent-bundle-") as directory:
        path = os.path.join(directory, BUNDLE)
        write_bundle(request, path, session, with_files=with_files)
        request.print_notices()
        sys.stdout.flush()
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)


def write_bundle(request: Request, path: str, session: str | None, *, with_files: bool = False) -> "Bundle":
    """Export the session to the path. Without a name: the active one, else the last one."""
    from detent.engine.bundles.exporting import export_session

    with request.reading() as project:
        handle, progress = last_session(project, session), request.progress("exporting bytes")
        bundle = export_session(project, handle.id, path, with_files=with_files, progress=progress)
    request.notices += [f"{path} is neither a file nor a directory and was left out" for path in bundle.left_out]
    return bundle


def answer_bundle(request: Request, path: str, bundle: "Bundle", *more: str) -> None:
    """Say what was written; `more` are commands to type next."""
    import msgspec

    from detent.core.counted import counted
    from detent.render.size import size_text

    held = "with the contents of files" if bundle.with_files else "without the contents of files"
    content = f"{bundle.session}, {counted(bundle.commits, 'commit')}, {held}, {size_text(bundle.bytes)}"

    def text(canvas: "Canvas") -> str:
        commands = [line for command in more for line in canvas.command(command)]
        return "\n".join([*canvas.wrap(f"wrote {path}: {content}"), *([""] if commands else []), *commands])

    request.answer(text, {"written": path, **msgspec.to_builtins(bundle)})


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
