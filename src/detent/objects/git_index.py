"""Reads the paths that git tracks from its index file, without running git."""

import os
from functools import lru_cache
from typing import NamedTuple

from detent.objects.stat_cache import Key, key_of

_HEADER, _FIXED, _FLAGS = 12, 62, 60
_NAME_BITS, _EXTENDED = 0x0FFF, 0x4000
#: Version 4 leaves out the common beginning of a path and the one before.
_VERSIONS, _COMPRESSED = (2, 3, 4), 4


class Tracked(NamedTuple):
    files: frozenset[bytes] = frozenset()
    #: Directories with a tracked file somewhere below.
    directories: frozenset[bytes] = frozenset()


def tracked(repository: str) -> Tracked:
    """The tracked paths of the repository; none if the index is missing or has an unknown format."""
    try:
        path = os.path.join(_git_directory(repository), "index")
        return _read(path, key_of(os.stat(path)))
    except (OSError, IndexError, ValueError):
        return Tracked()


@lru_cache(maxsize=2)
def _read(path: str, key: Key) -> Tracked:  # noqa: ARG001 - a changed file is read again
    with open(path, "rb") as file:
        data = file.read()
    version = int.from_bytes(data[4:8])
    if data[:4] != b"DIRC" or version not in _VERSIONS:
        return Tracked()
    files: list[bytes] = []
    at, name = _HEADER, b""
    for _ in range(int.from_bytes(data[8:12])):
        flags = int.from_bytes(data[at + _FLAGS : at + _FIXED])
        start = at + _FIXED + (2 if flags & _EXTENDED and version > _VERSIONS[0] else 0)
        if version == _COMPRESSED:
            dropped, start = _number(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - dropped] + data[start:end]
            at = end + 1
        else:
            length = flags & _NAME_BITS
            end = start + length if length < _NAME_BITS else data.index(b"\0", start)
            name = data[start:end]
            # Entries are padded with one to eight zero bytes to a multiple of eight.
            at += (end - at) // 8 * 8 + 8
        files.append(name)
    directories: set[bytes] = set()
    for name in files:
        cut = name.rfind(b"/")
        while cut > 0 and name[:cut] not in directories:
            directories.add(name[:cut])
            cut = name.rfind(b"/", 0, cut)
    return Tracked(frozenset(files), frozenset(directories))


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as in a pack's offsets, and the position after it."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 127)
    return value, at + 1


def _git_directory(repository: str) -> str:
    """The git directory. In a worktree `.git` is a file that names it."""
    path = os.path.join(repository, ".git")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return os.path.join(repository, file.read().removeprefix("gitdir:").strip())
    except IsADirectoryError:
        return path
