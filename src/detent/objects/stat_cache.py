"""What each file looked like when it was last hashed, so that a file that still looks the same need not be read.

A file may be changed twice within one tick of the clock and look the same both times. So what was changed shortly
before it was hashed is not trusted: it is read again the next time. Only a cache: without it everything is hashed.
"""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from detent import __version__
from detent.core.manifest import Entry
from detent.core.path_text import from_text, to_text

#: A change this close to the moment of hashing might not show in the times. Coarse clocks tick every 10 ms.
RACE_NS = 100_000_000

#: Size, time of change of the content, time of change of the inode, inode.
Key = tuple[int, int, int, int]


class Row(NamedTuple):
    key: Key
    entry: Entry
    #: Whether a later change is sure to show in the key.
    trusted: bool
    #: Whether the rules let it in; false for what was taken whatever they say.
    ruled: bool = True


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    written_by: str
    epoch: int
    manifest: str
    depth: int
    left_out: dict[str, str]
    rules: str
    rows: dict[str, Row]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode


class StatCache(NamedTuple):
    """The files of the last manifest that was stored, and how they looked."""

    rows: dict[str, Row]
    manifest: str = ""
    #: Manifests that are differences lie on one another this deep.
    depth: int = 0
    left_out: Mapping[str, str] = MappingProxyType({})
    #: Which collection of garbage it was made after: an earlier one may know objects that are gone.
    epoch: int = 0
    #: A digest of the rules from outside the tree that it was taken under.
    rules: str = ""
    #: The manifest itself, and how many bytes its files have.
    files: Mapping[str, Entry] = MappingProxyType({})
    bytes: int = 0


EMPTY = StatCache({})


def key_of(status: os.stat_result) -> Key:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(key: Key, now_ns: int) -> bool:
    """Whether a change after `now_ns` is sure to show in the key."""
    return max(key[1], key[2]) + RACE_NS < now_ns


def load(path: str, epoch: int) -> StatCache:
    try:
        with open(path, "rb") as file:
            stored = _decode(file.read())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return EMPTY
    if stored.written_by != __version__ or stored.epoch != epoch:
        return EMPTY
    rows = stored.rows
    if any("\\" in name for name in rows):
        rows = {from_text(name): row for name, row in rows.items()}
    left_out = {from_text(name): reason for name, reason in stored.left_out.items()}
    files = {name: row.entry for name, row in rows.items()}
    size = sum(entry.size for entry in files.values())
    return StatCache(rows, stored.manifest, stored.depth, left_out, epoch, stored.rules, files, size)


def save(path: str, cache: StatCache) -> None:
    rows = cache.rows
    if not all(name.isascii() for name in rows) or any("\\" in name for name in rows):
        rows = {to_text(name): row for name, row in rows.items()}
    left_out = {to_text(name): reason for name, reason in cache.left_out.items()}
    data = _encode(_Stored(__version__, cache.epoch, cache.manifest, cache.depth, left_out, cache.rules, rows))
    # Another process may write it at the same time.
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
    os.replace(temporary, path)
