"""The manifest of an installation, `.workflow/install/manifest.json`: every changed file and its original.

The originals are kept beside it under their SHA-256.
"""

import hashlib

import msgspec

from detent.clients.installing.files import RECORDS, Change, read
from detent.errors import Corrupt

MANIFEST = f"{RECORDS}/manifest.json"
ORIGINALS = f"{RECORDS}/originals"
_VERSION = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file that Detent changed."""

    clients: tuple[str, ...]
    #: Digest of the content that Detent wrote. A file with another one was edited since.
    written: str
    #: Digest of the content without Detent; None if there was no file.
    original: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    version: int = _VERSION
    files: dict[str, Entry] = {}
    #: Directories that Detent created.
    directories: tuple[str, ...] = ()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def load(root: str) -> Manifest:
    content = read(root, MANIFEST)
    if content is None:
        return Manifest()
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as error:
        raise Corrupt(
            f"{MANIFEST} cannot be read: {error}",
            way_out=f"remove {MANIFEST}; Detent then removes its parts by their marks and restores no originals",
        ) from error
    if manifest.version != _VERSION:
        raise Corrupt(f"{MANIFEST} is of version {manifest.version}, this Detent knows {_VERSION}")
    return manifest


def original(root: str, entry: Entry) -> tuple[bool, bytes | None]:
    """Whether the original is known, and its content."""
    if entry.original is None:
        return True, None
    content = read(root, f"{ORIGINALS}/{entry.original}")
    return content is not None and digest(content) == entry.original, content


def changes(root: str, old: Manifest, new: Manifest, originals: dict[str, bytes]) -> list[Change]:
    """Changes of the records: new originals, then the manifest, then the removal of unused originals."""
    kept = {entry.original for entry in new.files.values() if entry.original is not None}
    added = [_change(root, f"{ORIGINALS}/{name}", originals[name]) for name in sorted(kept & originals.keys())]
    after = None
    if new.files:
        after = msgspec.json.format(msgspec.json.encode(new, order="sorted"), indent=2) + b"\n"
    dropped = {entry.original for entry in old.files.values() if entry.original is not None} - kept
    removed = [_change(root, f"{ORIGINALS}/{name}", None) for name in sorted(dropped)]
    planned = [*added, _change(root, MANIFEST, after), *removed]
    return [change for change in planned if change.before != change.after]


def _change(root: str, path: str, after: bytes | None) -> Change:
    return Change(path, read(root, path), after)
