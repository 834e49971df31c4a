"""The routes of the page's server. Handlers read the request, call a screen or an action, and write JSON."""

import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from detent import __version__
from detent.engine.actor import account
from detent.engine.checkpoints.checkpoints import NOW
from detent.engine.project import Project
from detent.errors import Corrupt, DetentError, Invalid, LockTimeout, NotFound, StoreFailed
from detent.web.access import (
    HEADERS,
    MAX_BODY,
    MAX_HEADERS,
    MAX_TARGET,
    READING,
    Forbidden,
    Origin,
    ReadOnly,
    TooLarge,
    Unauthorized,
    check_request,
)
from detent.web.act import Actions, Caller
from detent.web.body import Body
from detent.web.keys import can_enrol
from detent.web.projects import KnownProject, Projects
from detent.web.screens.checkpoints import checkpoints_screen
from detent.web.screens.gate import gate_screen
from detent.web.screens.history import Histories, compare_screen, timeline_screen
from detent.web.screens.log import log_screen
from detent.web.screens.open_decisions import Needs
from detent.web.screens.review import ShownTrees, diff_screen, review_screen
from detent.web.screens.session import session_screen, sessions_record
from detent.web.screens.start import workflows_screen
from detent.web.screens.tasks import task_screen, tasks_screen
from detent.web.tail import MAX_WATCHED, Tails
from detent.web.tokens import LINK, Grant, Tokens
from detent.web.tour import Tour

_STATUS: tuple[tuple[type[DetentError], int], ...] = (
    (Forbidden, 403),
    (Unauthorized, 403),
    (ReadOnly, 403),
    (TooLarge, 413),
    (NotFound, 404),
    (Invalid, 400),
    (Corrupt, 500),
    (StoreFailed, 500),
    (LockTimeout, 503),
)
_encode = msgspec.json.Encoder(decimal_format="number").encode
Handler = Callable[[Request], Awaitable[Response]]


class Site:
    """The state that all handlers share."""

    def __init__(
        self,
        *,
        origin: Origin,
        projects: Projects,
        tokens: Tokens,
        read_only_because: str | None = None,
        tour: Tour | None = None,
    ) -> None:
        self.origin, self.projects, self.tokens, self.tour = origin, projects, tokens, tour
        #: The reason why this server changes nothing; None if it may.
        self.read_only_because = read_only_because
        self.tails = Tails(projects)
        self.needs = Needs(projects)
        self.trees = ShownTrees()
        self.histories = Histories()
        self.actions = Actions(projects, self.trees, str(origin))
        self.assets = page_assets() if tour is None else tour.assets(page_assets())

    def why_not(self, grant: Grant) -> str | None:
        """The reason why the page of this token decides nothing."""
        if self.read_only_because is not None:
            return self.read_only_because
        return None if grant.can_decide else "the page was opened by a process that no person attends"


def application(site: Site) -> ASGIApp:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await site.tails.stop()
            site.projects.close()

    app = Starlette(
        routes=[*_routes(site), *_tour_routes(site, site.tour)],
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error, Exception: _bug},
    )
    return _Gatekeeper(app, site)


def _routes(site: Site) -> list[Route]:
    own, session = "/api/p/{project}", "/api/p/{project}/s/{session}"
    act = site.actions
    return [
        Route("/", _asset(site, "index.html")),
        Route("/assets/{name:path}", _asset(site)),
        Route("/api/exchange", _exchange(site), methods=["POST"]),
        Route("/api/me", _answer(site, lambda _request, grant: me_record(site, grant))),
        Route("/api/projects", _answer(site, lambda _request, _grant: projects_record(site.projects))),
        Route("/api/needs", _answer(site, lambda _request, _grant: site.needs.all())),
        Route("/api/events", _events(site)),
        Route(f"{own}/sessions", _project(site, lambda known, project, _: sessions_record(known, project))),
        Route(f"{own}/workflows", _project(site, lambda _known, project, _: workflows_screen(project))),
        Route(f"{own}/history", _project(site, lambda known, project, _: site.histories.screen(known.id, project))),
        Route(f"{own}/compare", _project(site, _compare)),
        Route(f"{own}/start", _change(site, lambda at: act.start(at.known, at.body, at.caller)), methods=["POST"]),
        Route(f"{own}/enrol", _change(site, lambda at: act.enrol(at.known, at.body, at.caller)), methods=["POST"]),
        Route(session, _session(site, lambda at: session_screen(at.known, at.project, at.session))),
        Route(f"{session}/timeline", _session(site, lambda at: timeline_screen(at.project, at.session))),
        Route(f"{session}/log", _session(site, _log)),
        Route(f"{session}/events", _session_events(site)),
        Route(f"{session}/gate", _session(site, _gate)),
        Route(f"{session}/review", _session(site, lambda at: _review(site, at))),
        Route(f"{session}/diff", _session(site, _diff)),
        Route(f"{session}/checkpoints", _session(site, lambda at: checkpoints_screen(at.project, at.session))),
        Route(f"{session}/tasks", _session(site, _tasks), methods=["GET"]),
        Route(f"{session}/tasks", _of_session(site, act.add_task), methods=["POST"]),
        Route(f"{session}/tasks/{{task}}", _session(site, _task)),
        Route(f"{session}/tasks/{{task}}/{{action}}", _change(site, lambda at: _move_task(act, at)), methods=["POST"]),
        Route(f"{session}/decide", _of_session(site, act.decide), methods=["POST"]),
        Route(f"{session}/statement", _of_session(site, act.statement), methods=["POST"]),
        Route(
            f"{session}/rollback",
            _change(site, lambda at: _roll_back(act.rollback, at), looks=_is_dry),
            methods=["POST"],
        ),
        Route(f"{session}/undo", _change(site, lambda at: _roll_back(act.undo, at), looks=_is_dry), methods=["POST"]),
        Route(f"{session}/run", _of_session(site, act.run), methods=["POST"]),
        Route(f"{session}/stop", _of_session(site, act.stop), methods=["POST"]),
    ]


def _tour_routes(site: Site, tour: Tour | None) -> list[Route]:
    if tour is None:
        return []

    async def go_on(request: Request) -> Response:
        try:
            because = site.why_not(site.tokens.grant(bearer(request)))
            if because is not None:
                raise ReadOnly(f"this page only reads: {because}", way_out=LINK)
            tour.go_on(Body(await read_body(request)).number("number"))
        except DetentError as error:
            return error_response(error)
        return json_response({})

    return [
        Route("/api/tour", _answer(site, lambda _request, _grant: tour.record(site.projects)), methods=["GET"]),
        Route("/api/tour", go_on, methods=["POST"]),
    ]


class _Gatekeeper:
    """Stands in front of everything: checks where a request comes from, and adds the headers of every answer."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app, self._site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADER_BYTES]
            await send(message)

        try:
            _check(self._site.origin, scope)
        except DetentError as error:
            await error_response(error)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)


_HEADER_BYTES = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def _check(origin: Origin, scope: Scope) -> None:
    if [name for name, _ in scope["headers"]].count(b"origin") > 1:
        # The parser refuses a second Host.
        raise Forbidden("the request has two Origins")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS:
        raise TooLarge(f"the headers of a request may have {MAX_HEADERS} characters")
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET:
        raise TooLarge(f"an address may have {MAX_TARGET} characters")
    check_request(origin, scope["method"], scope["path"], headers)
    if scope["method"] not in READING:
        _check_body(headers)


def _check_body(headers: dict[str, str]) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Invalid("the body of a change is application/json")
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) > MAX_BODY:
        raise TooLarge(f"a request may have {MAX_BODY} bytes, and this one has {length}")


# Handlers


def _answer(site: Site, make: Callable[[Request, Grant], dict[str, Any]]) -> Handler:
    """A GET whose answer is made in a thread: the engine reads files."""

    async def handle(request: Request) -> Response:
        try:
            grant = site.tokens.grant(bearer(request))
            return json_response(await run_in_threadpool(make, request, grant))
        except DetentError as error:
            return error_response(error)

    return handle


def _project(site: Site, make: Callable[[KnownProject, Project, Request], dict[str, Any]]) -> Handler:
    def answer(request: Request, _grant: Grant) -> dict[str, Any]:
        known = site.projects.find(request.path_params["project"])
        with site.projects.reading(known) as project:
            return make(known, project, request)

    return _answer(site, answer)


class _At(NamedTuple):
    """A GET about a session."""

    known: KnownProject
    project: Project
    session: str
    request: Request

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def needed(self, name: str) -> str:
        value = self.query(name)
        if not value:
            raise Invalid(f"the address needs {name}=")
        return value


def _session(site: Site, make: Callable[[_At], dict[str, Any]]) -> Handler:
    def answer(known: KnownProject, project: Project, request: Request) -> dict[str, Any]:
        return make(_At(known, project, known_session(project, request.path_params["session"]), request))

    return _project(site, answer)


class _Posted(NamedTuple):
    """A change that a page asks for."""

    known: KnownProject
    #: Empty for a change that is about no session.
    session: str
    body: Body
    caller: Caller
    #: A page that only reads may ask for this all the same.
    only_looks: bool
    request: Request


def _change(
    site: Site, make: Callable[[_Posted], dict[str, Any]], *, looks: Callable[[Body], bool] = lambda _: False
) -> Handler:
    """A POST. `looks` tells from the body that nothing would change."""

    async def handle(request: Request) -> Response:
        try:
            grant = site.tokens.grant(bearer(request))
            body = Body(await read_body(request))
            because, only_looks = site.why_not(grant), looks(body)
            if because is not None and not only_looks:
                raise ReadOnly(f"this page only reads: {because}", way_out=LINK)
            return json_response(await run_in_threadpool(change, request, grant, body, only_looks))
        except DetentError as error:
            return error_response(error)

    def change(request: Request, grant: Grant, body: Body, only_looks: bool) -> dict[str, Any]:  # noqa: FBT001
        known = site.projects.find(request.path_params["project"])
        session = request.path_params.get("session", "")
        if session:
            with site.projects.reading(known) as project:
                known_session(project, session)
        host, port = request.scope.get("client") or ("", 0)
        caller = Caller(grant=grant, host=host, port=port, server_port=site.origin.port)
        return make(_Posted(known, session, body, caller, only_looks, request))

    return handle


def _of_session(site: Site, make: Callable[[KnownProject, str, Body, Caller], dict[str, Any]]) -> Handler:
    return _change(site, lambda at: make(at.known, at.session, at.body, at.caller))


def _is_dry(body: Body) -> bool:
    return body.flag("dry_run")


def _roll_back(make: Callable[[KnownProject, str, Body, Caller | None], dict[str, Any]], at: _Posted) -> dict[str, Any]:
    return make(at.known, at.session, at.body, None if at.only_looks else at.caller)


def _move_task(act: Actions, at: _Posted) -> dict[str, Any]:
    task, action = at.request.path_params["task"], at.request.path_params["action"]
    return act.move_task(at.known, at.session, task, action, at.body, at.caller)


def known_session(project: Project, name: str) -> str:
    """The session of exactly this name. A link must not mean another session later."""
    if name not in project.store.sessions():
        raise NotFound(f"there is no session {name[:80]}")
    return name


def _log(at: _At) -> dict[str, Any]:
    return log_screen(
        at.project,
        at.session,
        before=number(at.request, "before"),
        limit=number(at.request, "limit") or 100,
        text=at.query("q"),
        kind=at.query("kind"),
        phase=at.query("phase"),
    )


def _gate(at: _At) -> dict[str, Any]:
    return gate_screen(at.known, at.project, at.session, at.needed("phase"), at.needed("gate"))


def _review(site: Site, at: _At) -> dict[str, Any]:
    return review_screen(at.known, at.project, at.session, at.needed("phase"), site.trees)


def _diff(at: _At) -> dict[str, Any]:
    return diff_screen(at.project, at.session, at.needed("from"), at.query("to") or NOW, at.query("path") or None)


def _tasks(at: _At) -> dict[str, Any]:
    return tasks_screen(
        at.project,
        at.session,
        status=at.query("status"),
        offset=number(at.request, "offset") or 0,
        limit=number(at.request, "limit") or 200,
        text=at.query("q"),
    )


def _task(at: _At) -> dict[str, Any]:
    return task_screen(at.project, at.session, at.request.path_params["task"])


def _compare(_known: KnownProject, project: Project, request: Request) -> dict[str, Any]:
    a, b = (known_session(project, request.query_params.get(side, "")) for side in "ab")
    return compare_screen(project, a, b)


def _exchange(site: Site) -> Handler:
    async def handle(request: Request) -> Response:
        try:
            body = await read_body(request)
            token = body.get("token")
            if not isinstance(token, str):
                raise Invalid("the exchange needs a token")
            fresh, grant = await run_in_threadpool(site.tokens.exchange, token)
        except DetentError as error:
            return error_response(error)
        because = site.why_not(grant)
        record = {"token": fresh, "expires": grant.expires, "can_decide": because is None, "read_only_because": because}
        return json_response(record)

    return handle


def _events(site: Site) -> Handler:
    """One stream for everything that a page looks at."""

    async def handle(request: Request) -> Response:
        try:
            site.tokens.grant(bearer(request))
            asked = request.query_params.getlist("s")
            if len(asked) > MAX_WATCHED:
                raise Invalid(f"a stream may name {MAX_WATCHED} sessions, and this one names {len(asked)}")
            wanted = await run_in_threadpool(lambda: [_wanted(site, text) for text in asked])
        except DetentError as error:
            return error_response(error)
        return _stream(site.tails.stream(wanted, alone=False))

    return handle


def _session_events(site: Site) -> Handler:
    async def handle(request: Request) -> Response:
        try:
            site.tokens.grant(bearer(request))
            last = request.headers.get("last-event-id") or request.query_params.get("after") or ""
            project, session = request.path_params["project"], request.path_params["session"]
            wanted = await run_in_threadpool(_wanted, site, f"{project}/{session}@{last}")
        except DetentError as error:
            return error_response(error)
        return _stream(site.tails.stream([wanted], alone=True))

    return handle


def _wanted(site: Site, text: str) -> tuple[KnownProject, str, int | None]:
    """The session and the version of `PROJECT/SESSION@VERSION`; without a version, the present one."""
    place, _, version = text.rpartition("@")
    project, _, session = place.rpartition("/")
    if version and not (version.isascii() and version.isdigit() and len(version) < 12):
        raise Invalid(f"{version[:40]!r} is no version")
    known = site.projects.find(project)
    with site.projects.reading(known) as opened:
        return known, known_session(opened, session), int(version) if version else None


def _stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream")


def _asset(site: Site, fixed: str | None = None) -> Handler:
    async def handle(request: Request) -> Response:
        name = fixed or request.path_params["name"]
        data = site.assets.get(name) if fixed or name != "index.html" else None
        if data is None:
            return error_response(NotFound(f"there is no file {name[:80]}"))
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        charset = "; charset=utf-8" if kind.startswith("text/") or kind.endswith(("javascript", "json")) else ""
        return Response(data, media_type=f"{kind}{charset}")

    return handle


def page_assets() -> dict[str, bytes]:
    """Every file of the page by name. Nothing else is ever served, whatever a path says."""
    files: dict[str, bytes] = {}

    def collect(directory: Any, prefix: str) -> None:
        for entry in directory.iterdir():
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                collect(entry, f"{prefix}{entry.name}/")
            else:
                files[prefix + entry.name] = entry.read_bytes()

    collect(resources.files("detent.web") / "assets", "")
    return files


# Answers


def me_record(site: Site, grant: Grant) -> dict[str, Any]:
    because = site.why_not(grant)
    return {
        "can_decide": because is None,
        "read_only_because": because,
        "expires": grant.expires,
        "account": account(),
        "version": __version__,
        "hardware": can_enrol(),
        "project": site.projects.started_in,
    }


def projects_record(projects: Projects) -> dict[str, Any]:
    return {"projects": [_project_record(projects, known) for known in projects.all()]}


def _project_record(projects: Projects, known: KnownProject) -> dict[str, Any]:
    record = {"id": known.id, "name": known.name, "root": known.root, "package": known.package}
    try:
        with projects.reading(known) as project:
            return {**record, "active": project.active(), "sessions": len(project.store.sessions()), "problem": None}
    except DetentError as error:
        return {**record, "active": None, "sessions": 0, "problem": error.message}


def bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def number(request: Request, name: str) -> int | None:
    """A number of the query; None if it is not given."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise Invalid(f"{name} must be a number, not {text[:40]!r}")
    return int(text)


async def read_body(request: Request) -> dict[str, Any]:
    """The object that was posted."""
    data = b""
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_BODY:
                raise TooLarge(f"a request may have {MAX_BODY} bytes")
    except ClientDisconnect as gone:
        raise Invalid("the request was cut off") from gone
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"the body is not a JSON object: {error}") from error


def json_response(record: object, status: int = 200) -> Response:
    return Response(_encode(record), status_code=status, media_type="application/json")


def error_response(error: DetentError) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 409)
    record: dict[str, Any] = {"kind": error.kind, "message": error.message, "way_out": error.way_out}
    paths = getattr(error, "paths", None)
    if paths is not None:
        record["paths"] = list(paths)
    return json_response({"error": record}, status)


async def _http_error(_request: Request, error: Exception) -> Response:
    """An address that no route has, or another method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = {404: "there is nothing at this address", 405: "this address has no such method"}.get(status, "an error")
    return json_response({"error": {"kind": "not_found", "message": message, "way_out": None}}, status)


async def _bug(_request: Request, error: Exception) -> Response:
    """A bug in Detent. The server goes on; the terminal shows where it happened."""
    record = {"kind": "bug", "message": f"an unexpected error: {type(error).__name__}", "way_out": None}
    return json_response({"error": record}, 500)
