"""Joins the files of two jobs that began with the same files, path by path."""

from typing import NamedTuple

from detent.core.checkpoint.manifest import Manifest


class Joined(NamedTuple):
    #: Paths that only the others changed: their files are to be taken.
    theirs: tuple[str, ...]
    #: Paths that both changed, and not in the same way.
    conflicts: tuple[str, ...]


def join(base: Manifest, ours: Manifest, theirs: Manifest) -> Joined:
    changed = sorted(path for path in {*base, *theirs} if theirs.get(path) != base.get(path))
    differing = [path for path in changed if theirs.get(path) != ours.get(path)]
    conflicts = tuple(path for path in differing if ours.get(path) != base.get(path))
    return Joined(tuple(path for path in differing if path not in set(conflicts)), conflicts)
