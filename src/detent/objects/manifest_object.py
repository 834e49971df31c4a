"""Manifests as objects: JSON of all entries, or of what differs from another manifest.

`{"base": null, "set": {"a.py": ["f", "<sha256>", 12]}, "gone": [], "left_out": {"big.iso": "…"}}`
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from detent.core.checkpoint.manifest import Entry, Manifest
from detent.core.path_text import from_text, to_text
from detent.errors import Corrupt
from detent.objects.hashing import Hashing
from detent.objects.pack import Batch

#: Differences lie on one another at most this deep; then all is written again.
MAX_DEPTH = 32
#: What differs in more than this part of its files is written as a whole.
_WORTHWHILE = 0.25
#: Manifests that are kept at hand.
_KEPT = 8


class _Written(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    base: str | None = None
    set: dict[str, Entry] = {}
    gone: list[str] = []
    left_out: dict[str, str] = {}


class Contents(NamedTuple):
    files: Manifest
    #: Paths that were seen and not taken, with the reason.
    left_out: Mapping[str, str]


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_Written).decode


class Readable(Protocol):
    """Whatever has objects."""

    def read(self, digest: str) -> bytes:
        """The verified content; `Corrupt` if it is missing or damaged."""
        ...


class Manifests:
    """Reads manifests, and keeps the last few at hand."""

    def __init__(self, objects: Readable) -> None:
        self._objects = objects
        self._kept: dict[str, Contents] = {}

    def read(self, digest: str) -> Contents:
        if digest in self._kept:
            return self._kept[digest]
        chain: list[_Written] = []
        at: str | None = digest
        files: dict[str, Entry] = {}
        while at is not None:
            if at in self._kept:
                files = dict(self._kept[at].files)
                break
            if len(chain) > MAX_DEPTH:
                raise Corrupt(f"manifest {digest} rests on more than {MAX_DEPTH} others")
            chain.append(self._written(at))
            at = chain[-1].base
        for written in reversed(chain):
            for name in written.gone:
                files.pop(from_text(name), None)
            files.update((from_text(name), entry) for name, entry in written.set.items())
        left_out = {from_text(name): reason for name, reason in chain[0].left_out.items()}
        return self.keep(digest, Contents(files, left_out))

    def keep(self, digest: str, contents: Contents) -> Contents:
        while len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[digest] = contents
        return contents

    def names_since(self, digests: Iterable[str], known: str) -> set[str]:
        """Every path that one of the manifests has and `known` need not have; each difference is read once."""
        visited = {known}
        found: set[str] = set()
        for digest in digests:
            at: str | None = digest
            while at is not None and at not in visited:
                visited.add(at)
                written = self._written(at)
                found.update(map(from_text, written.set))
                at = written.base
        return found

    def named(self, digest: str) -> Iterable[str]:
        """Everything that the manifest needs to be read and restored: manifests it rests on, and contents."""
        at: str | None = digest
        while at is not None:
            yield at
            at = self._written(at).base
        for entry in self.read(digest).files.values():
            yield entry.digest

    def _written(self, digest: str) -> _Written:
        try:
            return _decode(self._objects.read(digest))
        except msgspec.DecodeError as error:
            raise Corrupt(f"object {digest} is not the manifest that it should be: {error}") from error


def write(
    batch: Batch | Hashing,
    files: Manifest,
    changed: Mapping[str, Entry],
    gone: Iterable[str],
    left_out: Mapping[str, str],
    *,
    base: tuple[str, int] | None,
) -> tuple[str, int]:
    """Store the manifest of `files`; its digest and depth.

    Where that is worth it as what changed and is gone since `base`, which is the digest and depth of another.
    """
    told = {to_text(path): reason for path, reason in left_out.items()}
    lost = sorted(map(to_text, gone))
    if base is not None and base[1] < MAX_DEPTH and len(changed) + len(lost) <= len(files) * _WORTHWHILE:
        new = {to_text(path): entry for path, entry in changed.items()}
        return batch.add(_encode(_Written(base=base[0], set=new, gone=lost, left_out=told))), base[1] + 1
    whole = {to_text(path): entry for path, entry in files.items()}
    return batch.add(_encode(_Written(set=whole, left_out=told))), 0
