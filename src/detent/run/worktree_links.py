"""Links from a worktree to ignored files of the project: an installed environment, a generated module.

A directory becomes a directory of links, because `.venv/` in a `.gitignore` covers no link. Only what git ignores is
linked, so no commit of the worktree can take a link along.
"""

import glob
import os
import re
from collections.abc import Iterable

from detent.config import place as places
from detent.core.path_text import is_inside
from detent.engine.project import Project
from detent.errors import Refused
from detent.process.git import Git

_ENVIRONMENT = re.compile(r"(?:\.venv|venv|node_modules|vendor)/").fullmatch
#: Files that a program or a test loads; not caches, logs or results.
_GENERATED = re.compile(
    r"(?:[^/.][^/]*/)*[^/.][^/]*\.(?:py|so|mo|js|mjs|ts|json|go|rs|java|proto|h|c|dat|db)"
).fullmatch

_MANY = 3


def add_links(project: Project, path: str) -> list[str]:
    """Link what the settings name from the project into its worktree. Returns notices about what is not there."""
    patterns = project.settings.run.link
    if not patterns:
        return []
    source, target = (places.find(each, project=project.place.project)[0].base for each in (project.place.root, path))
    for name in linked_paths(source, patterns):
        _link(os.path.join(source, name), os.path.join(target, name))
    return [f"link names {pattern}, and {source} has no such file" for pattern in unmatched(source, patterns)]


def linked_paths(base: str, patterns: Iterable[str]) -> list[str]:
    """The paths below `base` that the patterns name; refused unless git ignores all of them."""
    paths = sorted({path.rstrip("/") for pattern in patterns for path in _matches(base, pattern)})
    kept = [path for path in paths if not Git(base).holds("check-ignore", "--quiet", "--", path)]
    if kept:
        raise Refused(
            f"link names {kept[0]}, which git does not ignore, so agents would commit the link",
            way_out=f"add {kept[0]} to .gitignore, or leave it out of link in detent.toml",
        )
    return paths


def unmatched(base: str, patterns: Iterable[str]) -> list[str]:
    return [pattern for pattern in patterns if not _matches(base, pattern)]


def left_behind(base: str, linked: Iterable[str]) -> list[str]:
    """Patterns for the ignored paths that code or tests may need, and that a worktree does not have: environments, and
    generated files beside tracked ones.
    """
    ignored = Git(base).paths("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    paths = {path.rstrip("/") for path in ignored if _ENVIRONMENT(path) or _GENERATED(path)} - set(linked)
    by_suffix: dict[str, list[str]] = {}
    for path in sorted(paths):
        by_suffix.setdefault(os.path.splitext(path)[1] or path, []).append(path)
    return [pattern for suffix, alike in by_suffix.items() for pattern in _patterns(suffix, alike)]


def _patterns(suffix: str, paths: list[str]) -> list[str]:
    """The paths; one pattern for many."""
    if len(paths) < _MANY:
        return paths
    return [os.path.join(os.path.commonpath(paths), "**", f"*{suffix}")]


def _matches(base: str, pattern: str) -> list[str]:
    if not is_inside(pattern) or pattern.split("/", maxsplit=1)[0] in (".git", places.STATE):
        raise Refused(f"link names {pattern}, which is no path of ignored files in the project")
    return glob.glob(pattern, root_dir=base, recursive=True, include_hidden=True)


def _link(source: str, target: str) -> None:
    if os.path.lexists(target):
        return
    if not os.path.isdir(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(source, target)
        return
    os.makedirs(target)
    for name in os.listdir(source):
        os.symlink(os.path.join(source, name), os.path.join(target, name))
