"""What was installed and what was there before.

`.workflow/install/manifest.json` names every file; the originals are kept beside it under their SHA-256.
"""

import hashlib

import msgspec

from detent.clients.installing.files import read
from detent.errors import Corrupt
from detent.install.change import RECORDS, Change

MANIFEST = f"{RECORDS}/manifest.json"
ORIGINALS = f"{RECORDS}/originals"
_VERSION = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file that Detent changed."""

    clients: tuple[str, ...]
    #: Digest of what Detent wrote; any other content was edited since.
    written: str
    #: Digest of what was there without Detent; none if there was no file.
    original: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    version: int = _VERSION
    files: dict[str, Entry] = {}
    #: Directories that were not there before.
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
            way_out=f"remove {MANIFEST}; Detent then takes its parts out by their marks instead of restoring originals",
        ) from error
    if manifest.version != _VERSION:
        raise Corrupt(f"{MANIFEST} is of version {manifest.version}, this Detent knows {_VERSION}")
    return manifest


def original(root: str, entry: Entry) -> tuple[bool, bytes | None]:
    """Whether the original is known, and what it is."""
    if entry.original is None:
        return True, None
    content = read(root, f"{ORIGINALS}/{entry.original}")
    return content is not None and digest(content) == entry.original, content


def changes(root: str, old: Manifest, new: Manifest, originals: dict[str, bytes]) -> list[Change]:
    """Kept originals first, then the manifest, then those that nothing names any more."""
    kept = {entry.original for entry in new.files.values() if entry.original is not None}
    made = [_change(root, f"{ORIGINALS}/{name}", originals[name]) for name in sorted(kept & originals.keys())]
    after = None
    if new.files:
        after = msgspec.json.format(msgspec.json.encode(new, order="sorted"), indent=2) + b"\n"
    dropped = {entry.original for entry in old.files.values() if entry.original is not None} - kept
    gone = [_change(root, f"{ORIGINALS}/{name}", None) for name in sorted(dropped)]
    found = [*made, _change(root, MANIFEST, after), *gone]
    return [change for change in found if change.before != change.after]


def _change(root: str, path: str, after: bytes | None) -> Change:
    return Change(path, read(root, path), after)
