"""The transport port: brings the files of checkpoints to a place that all machines of a project reach.

A snapshot has a name, `SESSION/CHECKPOINT`, a manifest, and the objects that the manifest names. A snapshot is
never changed, and those whose names differ in the session alone have the same files. `tests/objects/test_transport.py`
holds the implementations to one contract.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

import msgspec

from detent.core.checkpoint.manifest import Entry, Manifest
from detent.core.path_text import from_text, is_inside, to_text
from detent.errors import Corrupt

_ROWS = msgspec.json.Decoder(dict[str, Entry])


class Transport(Protocol):
    """Every method may raise `StoreFailed` or `Refused`; nothing has changed then."""

    def send(
        self, name: str, manifest: bytes, digests: Collection[str], read: Callable[[str], bytes], base: str | None
    ) -> None:
        """Store a snapshot; it is durable when this returns. A snapshot that is there already is left as it is.

        `read` returns the object of a digest. `base` names a snapshot that was sent or fetched before: objects that it
        names need not be sent.
        """
        ...

    def fetch(self, name: str) -> bytes | None:
        """The manifest of a snapshot; None if there is no such snapshot."""
        ...

    def objects(self, name: str, digests: Iterable[str]) -> Mapping[str, bytes]:
        """Objects of a snapshot that was fetched."""
        ...

    def names(self, prefix: str = "") -> list[str]:
        """The names of all snapshots that begin with `prefix`; sorted."""
        ...

    def remove(self, names: Collection[str]) -> None:
        """Remove snapshots, and the objects that no other snapshot names."""
        ...


def encode_manifest(files: Manifest) -> bytes:
    return msgspec.json.encode({to_text(path): files[path] for path in sorted(files)})


def decode_manifest(data: bytes, name: str) -> dict[str, Entry]:
    """`Corrupt` if it is no manifest, or names a file outside of the tree."""
    try:
        files = {from_text(path): entry for path, entry in _ROWS.decode(data).items()}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Corrupt(f"the manifest of the snapshot {name} cannot be read: {error}") from error
    outside = next((path for path in files if not is_inside(path)), None)
    if outside is not None:
        raise Corrupt(f"the snapshot {name} names a file outside of its tree: {to_text(outside)}")
    return files
