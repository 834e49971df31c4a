"""The projects of the user: which there are, and open ones to read from.

Opening a project reads its journals. So a few projects stay open, each for one reader at a time. A change opens the
project anew, through the door that every surface uses.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from detent.config.place import read_settings, settings_digest
from detent.core.actor import Actor, Channel
from detent.engine.project import Clock, Project, utc_now
from detent.engine.stores import project_roots
from detent.engine.workspace import Workspace
from detent.errors import Corrupt, DetentError, NotFound
from detent.store.state_home import digest

#: Projects that stay open.
MAX_OPEN = 16


class KnownProject(msgspec.Struct, frozen=True, kw_only=True):
    """A repository, or one package of a monorepo."""

    #: Made of the path, so that a copy of a repository is another one.
    id: str
    name: str
    root: str
    package: str | None = None


class _Opened:
    def __init__(self, project: Project, settings: str) -> None:
        self.project, self.settings = project, settings
        self.lock = threading.RLock()


class Projects:
    def __init__(self, *, also: str | None = None, clock: Clock = utc_now) -> None:
        """`also`: the root of a project that the index may not have yet."""
        self._also, self.clock = also, clock
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def started_in(self) -> str | None:
        """The id of the project that the server was started in."""
        own = (known.id for known in self.all() if known.root == self._also)
        return next(own, None) if self._also is not None else None

    def all(self) -> list[KnownProject]:
        """Every project of the user whose directory is there, by path."""
        roots = sorted({*project_roots(), *([self._also] if self._also is not None else [])})
        return [known for root in roots for known in _at(root)]

    def find(self, project: str) -> KnownProject:
        for known in self.all():
            if known.id == project:
                return known
        raise NotFound(f"there is no project {project[:80]}", way_out="the list of projects shows those that there are")

    def workspace(self, known: KnownProject) -> Workspace:
        """The door of the project."""
        return Workspace(known.root, project=known.package, clock=self.clock)

    @contextmanager
    def reading(self, known: KnownProject) -> Iterator[Project]:
        """The project to look at. Others who want it wait meanwhile."""
        opened = self._open(known)
        with opened.lock:
            try:
                yield opened.project
            except Corrupt:
                # It may be mended, and then it has to be read from its start.
                self.forget(known.id)
                raise

    def forget(self, project: str) -> None:
        with self._lock:
            opened = self._opened.pop(project, None)
        if opened is not None:
            with opened.lock, suppress(DetentError):
                opened.project.close()

    def close(self) -> None:
        for project in tuple(self._opened):
            self.forget(project)

    def _open(self, known: KnownProject) -> _Opened:
        settings = settings_digest(known.root)
        with self._lock:
            opened = self._opened.get(known.id)
            if opened is not None and opened.settings == settings:
                self._opened.move_to_end(known.id)
                return opened
        self.forget(known.id)
        workspace = self.workspace(known)
        fresh = _Opened(workspace.open(reader(workspace)), settings)
        with self._lock:
            opened = self._opened.setdefault(known.id, fresh)
            left_out = [name for name in self._opened if name != known.id][: max(0, len(self._opened) - MAX_OPEN)]
        for name in left_out:
            self.forget(name)
        return opened


def reader(workspace: Workspace) -> Actor:
    """The one who looks, by the environment of the server."""
    return workspace.actor(Channel.PAGE, changes=True)


def _at(root: str) -> list[KnownProject]:
    name, own = os.path.basename(root) or root, digest(os.fsencode(root))
    try:
        packages = read_settings(root).projects
    except DetentError:
        # Opening it says what is wrong.
        packages = {}
    if not packages:
        return [KnownProject(id=own, name=name, root=root)]
    return [
        KnownProject(id=f"{own}.{package}", name=f"{name}/{package}", root=root, package=package)
        for package in packages
    ]
