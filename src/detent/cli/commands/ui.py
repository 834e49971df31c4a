"""`ui`: serves the page, and opens it in a browser."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from detent.cli.request import Request, write_bytes, write_text
from detent.cli.verb import verb
from detent.errors import DetentError, NotFound, Refused
from detent.extras import install_command

if TYPE_CHECKING:
    from detent.web.server import Attendance, Opened
    from detent.web.tokens import Tokens


@verb("ui", example="detent ui")
@click.option(
    "--port", metavar="P", type=click.IntRange(0, 65_535), help="The port; 7337 by default, 0 for a free one."
)
@click.option("--no-open", is_flag=True, help="Open no browser; print the link.")
@click.option("--link", is_flag=True, help="Open another page of a server that runs already.")
@click.option("--host", metavar="H", help="Serve other machines at this name; needs a certificate.")
@click.option("--tls-cert", metavar="FILE", help="The certificate for --host.")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate.")
@click.option("--export", metavar="DIR", help="Write a copy of the page that needs no server, and serve nothing.")
def ui_verb(
    request: Request,
    *,
    port: int | None,
    no_open: bool,
    link: bool,
    host: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    export: str | None,
) -> None:
    """Show sessions in a browser, and decide there.

    One page for all projects of the user, at http://localhost until Ctrl-C. A link works once, within five minutes;
    the page that it opens stays valid for twelve hours. In the shell of an agent, or without a terminal, the page only
    reads.
    """
    check_extra()
    from detent.web import server

    root, chosen = _project(request)
    settings = server.Settings(port=chosen if port is None else port, host=host, certificate=tls_cert, key=tls_key)
    if export is not None:
        if root is None:
            raise NotFound("there is no Detent project here", way_out="detent init")
        _export(request, root, export)
        return
    if link:
        _link(request, settings.port, host, no_open=no_open)
        return

    def ready(opened: "Opened", tokens: "Tokens", present: "Attendance") -> None:
        if present.because is None and not sys.stdout.isatty() and (no_open or request.json):
            _confirm()
        show_page(request, opened, server.new_link(tokens, present), no_open=no_open)

    server.serve(settings, started_in=root, ready=ready)


def check_extra() -> None:
    """Refuse if the packages of the page are not installed."""
    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise DetentError(
            f"the page needs packages that are not installed: {error.name}", way_out=install_command("ui")
        ) from error
    del starlette, uvicorn


def _project(request: Request) -> tuple[str | None, int]:
    """The root of the project here, and the port of its settings. A server needs no project."""
    from detent.config.place import find
    from detent.web.server import PORT

    try:
        place, settings = find(request.directory, project=request.project, tolerant=True)
    except NotFound:
        return None, PORT
    return place.root, settings.ui.port


def _link(request: Request, port: int, host: str | None, *, no_open: bool) -> None:
    """Another one-time link. The page that it opens may decide, so a person has to ask for it."""
    from detent.web import server
    from detent.web.access import Origin
    from detent.web.sockets import is_listening

    present = server.attendance()
    if present.because is not None:
        raise Refused(present.because, way_out="type it in a terminal of your own")
    if not is_listening(port, host):
        raise NotFound(f"no server listens at port {port}", way_out="detent ui starts one")
    _confirm()
    opened = server.Opened(
        origin=Origin(scheme="https" if host else "http", host=host or "localhost", port=port), read_only_because=None
    )
    show_page(request, opened, server.new_link(server.page_tokens(), present), no_open=no_open)


def _confirm() -> None:
    """Ask at the terminal: a script in a person's shell may ask for a link."""
    from detent.engine.confirm import ask

    ask(["A link to the page is printed or opened. A program that has it can decide in your name."], "detent ui")


def show_page(request: Request, opened: "Opened", token: str, *, no_open: bool) -> None:
    """Open the browser; or print the link, where there is none or the person wants that."""
    from detent.web import server

    address = opened.link(token)
    is_open = not no_open and not request.json and server.can_open_browser() and server.open_browser(address)
    record: dict[str, Any] = {
        "url": str(opened.origin),
        "port": opened.origin.port,
        "pid": os.getpid(),
        "read_only_because": opened.read_only_because,
    }
    if request.json:
        import msgspec

        write_bytes(msgspec.json.encode({**record, "link": address}) + b"\n")
        sys.stdout.flush()
        return
    lines = [f"the page is at {opened.origin}; Ctrl-C ends it"]
    if opened.read_only_because is not None:
        lines.append(f"it only reads: {opened.read_only_because}")
    if not is_open:
        lines += ["open this link; it is for one use and five minutes:", f"  {address}"]
    write_text("\n".join(lines))
    sys.stdout.flush()


def _export(request: Request, root: str, directory: str) -> None:
    from detent.core.counted import counted
    from detent.render.size import size_text
    from detent.web.export import export_page

    done = export_page(root, os.path.normpath(os.path.join(request.directory, directory)))
    text = f"{done.directory} holds a copy of the page: {counted(done.sessions, 'session')}, {size_text(done.bytes)}"
    request.answer(
        lambda _: f"{text}\nopen {os.path.join(done.directory, 'index.html')} in a browser",
        {"directory": done.directory, "sessions": done.sessions, "bytes": done.bytes},
    )
