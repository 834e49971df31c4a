"""Finds a project: its root, its directory, and the directory of its state."""

import os
from typing import NamedTuple

from detent.config.settings import NEEDLESS, Settings, parse_settings
from detent.errors import Invalid, NoPackage, NotFound
from detent.sha256 import sha256

CONFIG = "detent.toml"
STATE = ".workflow"
#: Below the state: checkouts of the same project for isolated work.
WORKTREES = "worktrees"
CHECKPOINTS = "checkpoints"
#: The intent of a rollback; exists only during a rollback, or after an interrupted one.
INTENT = f"{CHECKPOINTS}/rollback.json"


class Place(NamedTuple):
    #: Directory of the repository, which holds `detent.toml` and `.workflow`.
    root: str
    #: Id of the package in a monorepo; None if the project is the whole repository.
    project: str | None
    #: Directory that artifact paths are relative to; in a worktree the one of the worktree.
    base: str
    #: Directory of the store.
    state: str


def at_root(root: str) -> Place:
    """The project that is the whole repository at `root`."""
    return Place(root, None, root, os.path.join(root, STATE))


def find(
    start: str, *, project: str | None = None, environment_project: str | None = None, tolerant: bool = False
) -> tuple[Place, Settings]:
    """The project that `start` is in.

    In a monorepo: the named project, else that of the environment, else the package with the longest path around
    `start`, else the default project. A worktree has the state and the settings of its project. With `tolerant`,
    settings that cannot be used are left out.
    """
    start = os.path.realpath(start)
    root, checkout = _root(start)
    try:
        settings = read_settings(root)
    except Invalid:
        if not tolerant:
            raise
        settings = Settings()
    if not settings.projects:
        if project is not None:
            raise NotFound(f"project {project} is not defined; detent.toml of {root} has no [projects]")
        return Place(root, None, checkout, os.path.join(root, STATE)), settings
    chosen = project or environment_project or _around(start, checkout, settings) or settings.default_project
    if chosen is None:
        raise NoPackage(
            f"this directory is in none of the projects {', '.join(settings.projects)}",
            tuple(settings.projects),
            way_out="name one with --project, change to its directory, or set default_project in detent.toml",
        )
    if chosen not in settings.projects:
        raise NotFound(f"there is no project {chosen}; detent.toml has {', '.join(settings.projects)}")
    base = os.path.normpath(os.path.join(checkout, settings.projects[chosen].path))
    return Place(root, chosen, base, os.path.join(root, STATE, "projects", chosen)), settings


def settings_digest(root: str) -> str:
    """The digest of `detent.toml`; empty without the file."""
    path = os.path.join(root, CONFIG)
    try:
        # A pipe would be waited for.
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return sha256(file.read()).hexdigest()[:32]
    except OSError:
        return ""


def read_settings(root: str) -> Settings:
    path = os.path.join(root, CONFIG)
    if os.path.exists(path) and not os.path.isfile(path):
        raise Invalid(f"{path} is not a file", way_out=NEEDLESS)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return Settings()
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not UTF-8: {error}", way_out=NEEDLESS) from error
    settings = parse_settings(text, path)
    _check_projects(settings, path)
    return settings


def _check_projects(settings: Settings, path: str) -> None:
    problems = [
        f"project {name} has the path {project.path!r}, which leads out of the repository"
        for name, project in settings.projects.items()
        if project.path.startswith("/") or ".." in project.path.split("/")
    ]
    problems += [
        f"{name!r} cannot be a project's id"
        for name in settings.projects
        if not name or "/" in name or name.startswith(".")
    ]
    if settings.default_project is not None and settings.default_project not in settings.projects:
        problems.append(f"default_project is {settings.default_project}, which is not a project")
    if problems:
        raise Invalid(f"{path} cannot be used", problems, way_out=NEEDLESS)


def worktrees(root: str) -> str:
    """The directory of the worktrees of the project at `root`."""
    return os.path.join(root, STATE, WORKTREES)


def is_worktree(place: Place) -> bool:
    return place.base.startswith(os.path.join(worktrees(place.root), ""))


def repository(root: str) -> str | None:
    """The top of the git repository around `root`. Does not run git."""
    directory = root
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def _root(start: str) -> tuple[str, str]:
    """The root, and the checkout that `start` is in: the root itself, or a worktree."""
    worktree = _worktree(start)
    directory = start
    while True:
        # A directory between the worktree's top and the project's files is part of the checkout.
        if worktree is not None and _is_inside(worktree[1], directory):
            return worktree
        if any(os.path.exists(os.path.join(directory, name)) for name in (CONFIG, STATE)):
            return directory, directory
        parent = os.path.dirname(directory)
        if parent == directory:
            raise NotFound(f"there is no Detent project in {start} or above", way_out="detent init")
        directory = parent


def _worktree(start: str) -> tuple[str, str] | None:
    root, _, inside = f"{start}/".rpartition(f"/{STATE}/{WORKTREES}/")
    name = inside.partition("/")[0]
    if not root or not name:
        return None
    below = os.path.relpath(root, repository(root) or root)
    return root, os.path.normpath(os.path.join(worktrees(root), name, below))


def _is_inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(os.path.join(directory, ""))


def _around(start: str, checkout: str, settings: Settings) -> str | None:
    inside = os.path.relpath(start, checkout).split(os.sep)
    matches = [
        (len(parts), name)
        for name, project in settings.projects.items()
        if (parts := [part for part in project.path.split("/") if part not in ("", ".")]) == inside[: len(parts)]
    ]
    return max(matches)[1] if matches else None
