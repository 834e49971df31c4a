"""The transport port: brings the files of checkpoints to a place that all machines of a project reach.

A snapshot has a name, `SESSION/CHECKPOINT`, a manifest, and the objects that the manifest names. A snapshot is
never changed, and those whose names differ in the session alone have the same files. `tests/objects/test_transport.py`
holds the implementations to one contract.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from detent.core.checkpoint.manifest import Entry, Manifest
from detent.core.path_text import is_inside, to_text
from detent.errors import Corrupt
from detent.objects.manifest_object import Manifests, encode_whole


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


def encode_manifest(objects: Iterable[bytes]) -> bytes:
    """The manifest of a snapshot: its object, then those that it is a difference from, one a line."""
    return b"".join(data + b"\n" for data in objects)


def encode_files(files: Manifest) -> bytes:
    """The manifest of a snapshot, as one object."""
    return encode_manifest([encode_whole(files)])


class Lines(dict[str, bytes]):
    """The objects of the manifest of a snapshot by digest; the first is the manifest itself."""

    def read(self, digest: str) -> bytes:
        try:
            return self[digest]
        except KeyError:
            raise Corrupt(f"the object {digest} of a manifest is missing") from None


def manifest_objects(data: bytes) -> Lines:
    return Lines((hashlib.sha256(line).hexdigest(), line) for line in data.split(b"\n")[:-1])


def decode_manifest(data: bytes, name: str) -> dict[str, Entry]:
    """`Corrupt` if it is no manifest, or names a file outside of the tree."""
    objects = manifest_objects(data)
    try:
        files = dict(Manifests(objects).read(next(iter(objects), "")).files)
    except Corrupt as error:
        raise Corrupt(f"the manifest of the snapshot {name} cannot be read: {error.message}") from error
    outside = next((path for path in files if not is_inside(path)), None)
    if outside is not None:
        raise Corrupt(f"the snapshot {name} names a file outside of its tree: {to_text(outside)}")
    return files
