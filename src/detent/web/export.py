"""A copy of the page without a server: the same page, and the answers that it would get, in files.

It opens from the file system, for people who do not have the repository. It holds what the record holds, which is
redacted; the lines of files are redacted too.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from detent import __version__
from detent.core.gate import gate_name
from detent.core.session.session import Session
from detent.engine.project import Project
from detent.engine.redact_command import redact_text
from detent.errors import DetentError, Invalid
from detent.store import disk
from detent.web.app import page_assets
from detent.web.projects import KnownProject, Projects
from detent.web.screens.checkpoints import checkpoints_screen
from detent.web.screens.gate import gate_screen
from detent.web.screens.history import Histories, timeline_screen
from detent.web.screens.log import log_screen
from detent.web.screens.open_decisions import Needs
from detent.web.screens.review import ShownTrees, diff_screen, review_screen
from detent.web.screens.session import session_screen, sessions_record
from detent.web.screens.tasks import task_screen, tasks_screen

#: The page asks for this many commits and tasks at once.
LOG_PAGE, TASK_PAGE = 100, 200
#: Sessions of a project; commits and tasks of a session; files of a review with their lines; bytes of all lines.
MAX_SESSIONS, MAX_COMMITS, MAX_TASKS, MAX_DIFFS, MAX_DIFF_BYTES = 50, 5_000, 20_000, 200, 20 * 1024 * 1024
#: Tasks that are shown in full.
MAX_TASK_SCREENS = 500
_COLUMNS = ("ready", "waiting", "active", "blocked", "failed", "completed")
_INDEX, _DATA, _ASSETS = "index.html", "data.js", "assets"
#: encodeURIComponent leaves these as they are.
_SAFE = "-_.!~*'()"
_LEFT_OUT = "left out of this copy: it holds what looks like a secret"
_encode = msgspec.json.Encoder(decimal_format="number").encode

Answers = dict[str, msgspec.Raw]


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    directory: str
    sessions: int
    bytes: int


def export_page(root: str, directory: str) -> Exported:
    """Write the copy of the project at `root`, with all its packages."""
    _check_free(directory)
    projects = Projects(also=root)
    try:
        known = [each for each in projects.all() if each.root == root]
        collected = _Collected(projects)
        for each in known:
            collected.add_project(each)
        data = collected.finish(known)
    finally:
        projects.close()
    files = {_DATA: b"window.DETENT_EXPORT = JSON.parse(%s);\n" % _encode(data.decode()), **_page()}
    for name, content in files.items():
        path = os.path.join(directory, name)
        with disk.failing_as("write", path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            disk.replace(path, content, mode=0o666)
    return Exported(directory=directory, sessions=collected.sessions, bytes=sum(map(len, files.values())))


def _check_free(directory: str) -> None:
    """Only an empty directory, or one that holds an earlier copy, is written to."""
    try:
        names = set(os.listdir(directory))
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk.failure("write", directory, error) from error
    if names - {_INDEX, _DATA, _ASSETS}:
        raise Invalid(f"{directory} holds other files", way_out="name a directory that does not exist yet")


def _page() -> dict[str, bytes]:
    assets = page_assets()
    index = assets.pop(_INDEX, b"<!doctype html>\n")
    head, script, rest = index.partition(b"<script")
    loading = b'<script src="%s"></script>\n    ' % _DATA.encode()
    return {_INDEX: head + loading + script + rest, **{f"{_ASSETS}/{name}": data for name, data in assets.items()}}


def address(path: str, /, **query: object) -> str:
    """The address as the page writes it."""
    given = "&".join(f"{name.rstrip('_')}={encoded(value)}" for name, value in query.items())
    return f"{path}?{given}" if given else path


def encoded(value: object) -> str:
    return quote(str(value), safe=_SAFE)


class _Collected:
    def __init__(self, projects: Projects) -> None:
        self._projects, self._trees, self._histories = projects, ShownTrees(), Histories()
        self._answers: Answers = {}
        self._diff_bytes = 0
        self.sessions = 0

    def put(self, path: str, record: object) -> int:
        data = _encode(record)
        self._answers[path] = msgspec.Raw(data)
        return len(data)

    def finish(self, known: list[KnownProject]) -> bytes:
        why = "this is a copy; detent ui shows the project itself"
        reader = {"expires": None, "account": "", "version": __version__, "hardware": False}
        first = known[0].id if known else None
        self.put("/api/me", {"can_decide": False, "read_only_because": why, "project": first, **reader})
        self.put("/api/projects", {"projects": [self._project(each) for each in known]})
        needs = Needs(self._projects).all()
        own = {each.id for each in known}
        self.put("/api/needs", {name: [e for e in listed if e["project"] in own] for name, listed in needs.items()})
        return _encode({"made_at": self._projects.clock(), "version": __version__, "answers": self._answers})

    def _project(self, known: KnownProject) -> dict[str, Any]:
        with self._projects.reading(known) as project:
            active, count = project.active(), len(project.store.sessions())
        # The path says where it was on the machine that made the copy.
        record = {"id": known.id, "name": known.name, "root": known.name, "package": known.package}
        return {**record, "active": active, "sessions": count, "problem": None}

    def add_project(self, known: KnownProject) -> None:
        own = f"/api/p/{encoded(known.id)}"
        with self._projects.reading(known) as project:
            listed = sessions_record(known, project)["sessions"][:MAX_SESSIONS]
            self.put(f"{own}/sessions", {"sessions": listed})
            self.put(f"{own}/history", self._histories.screen(known.id, project))
            for entry in listed:
                if entry["problem"] is None:
                    self._add_session(known, project, entry["session"])

    def _add_session(self, known: KnownProject, project: Project, name: str) -> None:
        self.sessions += 1
        own = f"/api/p/{encoded(known.id)}/s/{encoded(name)}"
        session = project.journal(name).session()
        self.put(own, session_screen(known, project, name))
        self.put(f"{own}/timeline", timeline_screen(project, name))
        self.put(f"{own}/checkpoints", checkpoints_screen(project, name))
        self._add_log(own, project, name)
        self._add_tasks(own, project, name, session)
        for key in session.workflow.order:
            if session.phases[key].attempt:
                self._add_phase(own, known, project, session, key)

    def _add_log(self, own: str, project: Project, name: str) -> None:
        before: int | None = None
        for _ in range(MAX_COMMITS // LOG_PAGE):
            page = log_screen(project, name, before=before, limit=LOG_PAGE)
            asked = {"before": before} if before is not None else {}
            self.put(address(f"{own}/log", **asked, limit=LOG_PAGE), page)
            if not page["more"]:
                return
            before = page["commits"][-1]["version"]

    def _add_tasks(self, own: str, project: Project, name: str, session: Session) -> None:
        if not len(session.tasks):
            return
        shown = 0
        for status in _COLUMNS:
            for offset in range(0, MAX_TASKS, TASK_PAGE):
                page = tasks_screen(project, name, status=status, offset=offset, limit=TASK_PAGE)
                self.put(address(f"{own}/tasks", status=status, offset=offset, limit=TASK_PAGE), page)
                for row in page["tasks"]:
                    shown += 1
                    if shown <= MAX_TASK_SCREENS:
                        self.put(f"{own}/tasks/{encoded(row['id'])}", task_screen(project, name, row["id"]))
                if offset + TASK_PAGE >= page["total"]:
                    break

    def _add_phase(self, own: str, known: KnownProject, project: Project, session: Session, phase: str) -> None:
        for gate in session.gates(phase):
            path = address(f"{own}/gate", phase=phase, gate=gate_name(gate))
            self._try(path, partial(gate_screen, known, project, session.id, phase, gate_name(gate)))
        path = address(f"{own}/review", phase=phase)
        review = self._try(path, partial(review_screen, known, project, session.id, phase, self._trees))
        if review is None or review["since"] is None:
            return
        since, until = str(review["since"]), str(review["until"])
        for file in review["files"][:MAX_DIFFS]:
            if self._diff_bytes > MAX_DIFF_BYTES:
                return
            path = address(f"{own}/diff", from_=since, to=until, path=file["path"])
            record = redacted_diff(diff_screen(project, session.id, since, until, file["path"]))
            self._diff_bytes += self.put(path, record)

    def _try(self, path: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """A part that cannot be read is left out."""
        try:
            record = make()
        except (DetentError, OSError):
            return None
        self.put(path, record)
        return record


def redacted_diff(diff: dict[str, Any]) -> dict[str, Any]:
    """The diff without secrets. A file is left out if a secret goes over lines."""
    lines = [line for hunk in diff["hunks"] for line in hunk["lines"]]
    text = "\n".join(line["text"] for line in lines)
    redacted = redact_text(text).split("\n") if lines else []
    if len(redacted) != len(lines):
        return {**diff, "hunks": [], "note": _LEFT_OUT}
    fresh: Iterator[str] = iter(redacted)
    hunks = [{**hunk, "lines": [{**line, "text": next(fresh)} for line in hunk["lines"]]} for hunk in diff["hunks"]]
    return {**diff, "hunks": hunks}
