"""Runs the page's server, and opens the page in a browser."""

import asyncio
import html
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from urllib.request import pathname2url

import msgspec
import uvicorn

from detent.core.actor import Actor, Channel, Proof
from detent.engine.actor import attended, identify, own_lineage
from detent.engine.project import utc_now
from detent.engine.stores import user_state
from detent.errors import DetentError, Invalid, Refused
from detent.store import disk
from detent.web.access import MAX_HEADERS, Origin
from detent.web.app import Site, application
from detent.web.projects import Projects
from detent.web.sockets import listen
from detent.web.tokens import Tokens
from detent.web.tour import Tour

PORT = 7337
#: The server waits this long for answers under way when it is stopped.
_GRACE_S = 2
_MAX_CONNECTIONS = 256
#: The directory of the page in the user's state.
_PAGE = "page"
_OPENING = "open-"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    port: int = PORT
    #: Another address than loopback; only with a certificate.
    host: str | None = None
    certificate: str | None = None
    key: str | None = None


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The server that listens."""

    origin: Origin
    read_only_because: str | None

    def link(self, token: str) -> str:
        return f"{self.origin}/#token={token}"


def page_directory() -> str:
    home = user_state()
    if not home:
        raise Invalid("neither XDG_STATE_HOME nor HOME names a directory for the tokens of the page")
    return os.path.join(home, _PAGE)


def page_tokens() -> Tokens:
    return Tokens(page_directory(), utc_now)


class Attendance(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a person attends this process, by the rule for every decision."""

    proof: Proof | None
    because: str | None


def attendance() -> Attendance:
    actor = _own_actor()
    try:
        return Attendance(proof=attended(actor, "opening a page that decides").proof, because=None)
    except Refused as refusal:
        return Attendance(proof=None, because=refusal.message)


def _own_actor() -> Actor:
    return identify(os.environ, Channel.TERMINAL, lineage=own_lineage())


def new_link(tokens: Tokens, present: Attendance) -> str:
    statement = present.proof.statement if present.proof is not None else ""
    return tokens.new_link(can_decide=present.proof is not None, opened=statement)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams first: the server would wait for them.
        await self._site.tails.stop()
        await super().shutdown(sockets)


def serve(
    settings: Settings,
    *,
    started_in: str | None,
    ready: Callable[[Opened, Tokens, Attendance], object],
    tour: Tour | None = None,
) -> None:
    """Serve until a signal or the tour ends it. `ready` is called as soon as the port is open."""
    if settings.host is not None and not (settings.certificate and settings.key):
        raise Invalid(
            "--host opens the page to other machines, so it needs --tls-cert and --tls-key",
            way_out="without --host the page is at localhost; forward the port with ssh -L",
        )
    # The page chooses the package itself.
    os.environ.pop("DETENT_PROJECT", None)
    present, tokens = attendance(), page_tokens()
    sockets = listen(settings.port, host=settings.host)
    port = sockets[0].getsockname()[1]
    scheme = "http" if settings.host is None else "https"
    origin = Origin(scheme=scheme, host=settings.host or "localhost", port=port)
    site = Site(
        origin=origin,
        projects=Projects(also=started_in),
        tokens=tokens,
        read_only_because=present.because,
        tour=tour,
    )
    config = uvicorn.Config(
        application(site),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
        limit_concurrency=_MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEADERS,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )
    server = _Server(config, site)
    if tour is not None:
        tour.end = lambda: setattr(server, "should_exit", True)
    try:
        ready(Opened(origin=origin, read_only_because=present.because), tokens, present)
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            server.run(sockets=sockets)
    finally:
        for each in sockets:
            each.close()


# The browser


def can_open_browser() -> bool:
    if sys.platform == "darwin" or os.environ.get("BROWSER"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))


def open_browser(link: str) -> bool:
    """Open the link, and keep it out of the arguments of every process: they can be read by all users.

    The browser gets the path of a file that only its user may read, and the file leads to the link.
    """
    directory = page_directory()
    path = os.path.join(directory, f"{_OPENING}{secrets.token_hex(8)}.html")
    text = (
        '<!doctype html><meta charset="utf-8"><title>Detent</title>'
        f'<meta http-equiv="refresh" content="0; url={html.escape(link)}">'
    )
    try:
        with disk.failing_as("write", path):
            disk.make_directory(directory)
            _remove_old(directory)
            disk.replace(path, text.encode())
        is_open = webbrowser.open(f"file://{pathname2url(path)}")
    except DetentError:
        return False
    return is_open


def _remove_old(directory: str) -> None:
    """Files of earlier links: each is for one use, and the browser has read it."""
    for name in os.listdir(directory):
        if name.startswith(_OPENING):
            _remove(os.path.join(directory, name))


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
