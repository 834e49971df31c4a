"""Manifests: the files of a tree by path, and the differences of two manifests."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from detent.core.path_text import to_text


class Entry(NamedTuple):
    """One file of a manifest. Kinds: `f` a file, `x` an executable, `l` a symbolic link with its target as content."""

    kind: str
    digest: str
    size: int
    #: The permissions of a file that not every account may read; 0 if every account may.
    mode: int = 0


Manifest = Mapping[str, Entry]


class Changes(NamedTuple):
    """The differences of two manifests, sorted by path."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    modified: tuple[str, ...]

    def __bool__(self) -> bool:
        return any(map(len, self))


def changes(before: Manifest, after: Manifest) -> Changes:
    return Changes(
        added=tuple(sorted(path for path in after if path not in before)),
        removed=tuple(sorted(path for path in before if path not in after)),
        modified=tuple(sorted(path for path, entry in after.items() if path in before and before[path] != entry)),
    )


def tree_digest(files: Manifest, unread: Mapping[str, str] = {}) -> str:
    """The SHA-256 of a tree: of each path, its kind and its content, whatever made the manifest.

    `unread` are files that are too large or too secret to be read, each with its size and time.
    """
    rows = sorted((to_text(path), entry.kind, entry.digest) for path, entry in files.items())
    rows += sorted((to_text(path), "", stat) for path, stat in unread.items())
    return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()
