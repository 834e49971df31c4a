"""The stat cache: the stat and the digest of each hashed file, so that an unchanged file is not read again.

A file may change twice within one tick of the clock and have the same stat. So a row is not trusted if its file changed
shortly before it was hashed: that file is read again the next time. Without the cache all files are hashed.
"""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from detent import __version__
from detent.core.checkpoint.manifest import Entry
from detent.core.path_text import from_text, to_text
from detent.store import disk

#: A change this close to the hashing may not show in the times. Coarse clocks tick every 10 ms.
RACE_NS = 100_000_000
#: The origin of a file: a request named it, the rules let it in, or git tracks it although it is ignored.
NAMED, RULED, TRACKED = 0, 1, 2

#: Size, time of change of the content, time of change of the inode, inode.
Key = tuple[int, int, int, int]


class Row(NamedTuple):
    key: Key
    entry: Entry
    #: Whether a later change is sure to show in the key.
    trusted: bool
    origin: int = RULED


class Recorded(NamedTuple):
    """The last manifest that was stored."""

    manifest: str = ""
    #: Length of its chain of differences.
    depth: int = 0
    left_out: Mapping[str, str] = MappingProxyType({})
    rules: str = ""
    files: Mapping[str, Entry] = MappingProxyType({})
    bytes: int = 0


class StatCache(NamedTuple):
    rows: dict[str, Row]
    #: Rows of named files: they count only for a look that names them again.
    named: frozenset[str] = frozenset()
    #: A digest of the rules outside the tree that held for the rows.
    rules: str = ""
    #: Number of the last garbage collection: objects of an earlier epoch may be gone.
    epoch: int = 0
    recorded: Recorded = Recorded()
    #: Paths whose rows may differ from the recorded manifest.
    dirty: frozenset[str] = frozenset()


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    written_by: str
    epoch: int
    rules: str
    rows: dict[str, Row]
    manifest: tuple[str, int, str]
    left_out: dict[str, str]
    #: The entries of the manifest that differ from those of the rows.
    differs: dict[str, Entry | None]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode


def key_of(status: os.stat_result) -> Key:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_trusted(key: Key, now_ns: int) -> bool:
    """Whether a change after `now_ns` is sure to show in the key."""
    return max(key[1], key[2]) + RACE_NS < now_ns


def load(path: str, epoch: int) -> StatCache:
    try:
        stored = _decode(disk.read_file(path))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return StatCache({}, epoch=epoch)
    if stored.written_by != __version__ or stored.epoch != epoch:
        return StatCache({}, epoch=epoch)
    rows = stored.rows
    if any("\\" in name for name in rows):
        rows = {from_text(name): row for name, row in rows.items()}
    files = {name: row.entry for name, row in rows.items()}
    differs = {from_text(name): entry for name, entry in stored.differs.items()}
    for name, entry in differs.items():
        if entry is None:
            files.pop(name, None)
        else:
            files[name] = entry
    manifest, depth, rules = stored.manifest
    left_out = {from_text(name): reason for name, reason in stored.left_out.items()}
    size = sum(entry.size for entry in files.values())
    return StatCache(
        rows,
        frozenset(name for name, row in rows.items() if row.origin == NAMED),
        stored.rules,
        epoch,
        Recorded(manifest, depth, left_out, rules, files, size),
        frozenset(differs),
    )


def save(path: str, cache: StatCache) -> None:
    rows, recorded = cache.rows, cache.recorded
    if not all(name.isascii() for name in rows) or any("\\" in name for name in rows):
        rows = {to_text(name): row for name, row in rows.items()}
    data = _encode(
        _Stored(
            __version__,
            cache.epoch,
            cache.rules,
            rows,
            (recorded.manifest, recorded.depth, recorded.rules),
            {to_text(name): reason for name, reason in recorded.left_out.items()},
            {to_text(name): entry for name, entry in _differing(cache.rows, recorded.files)},
        )
    )
    # Another process may write it at the same time.
    disk.replace(path, data, suffix=f".{os.getpid()}{disk.TEMPORARY}")


def _differing(rows: Mapping[str, Row], files: Mapping[str, Entry]) -> list[tuple[str, Entry | None]]:
    changed = [(path, files.get(path)) for path, row in rows.items() if files.get(path) != row.entry]
    return [*changed, *((path, entry) for path, entry in files.items() if path not in rows)]
