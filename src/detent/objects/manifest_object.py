"""Manifests as objects: JSON of all entries, or of the differences from another manifest.

`{"base": null, "set": {"a.py": ["f", "<sha256>", 12]}, "gone": [], "left_out": {"big.iso": "…"}}`
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import msgspec

from detent.core.checkpoint.manifest import Entry, Manifest
from detent.core.path_text import from_text, to_text
from detent.errors import Corrupt
from detent.objects.pack import Batch, Hashing

#: Longest chain of differences; the next manifest is written as a whole.
MAX_DEPTH = 32
#: A manifest with a larger share of changed files is written as a whole.
_WORTHWHILE = 0.25
#: Number of manifests in memory.
_CACHED = 8


class _Written(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    base: str | None = None
    set: dict[str, Entry] = {}
    gone: list[str] = []
    left_out: dict[str, str] = {}


class Contents(NamedTuple):
    files: Manifest
    #: Paths that were not taken, with the reason.
    left_out: Mapping[str, str]


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_Written).decode


class Readable(Protocol):
    """A source of objects."""

    def read(self, digest: str) -> bytes:
        """The verified content; `Corrupt` if it is missing or damaged."""
        ...


class Manifests:
    """Reads manifests, and caches the last few."""

    def __init__(self, objects: Readable) -> None:
        self._objects = objects
        self._cached: dict[str, Contents] = {}

    def read(self, digest: str) -> Contents:
        if digest in self._cached:
            return self._cached[digest]
        chain: list[_Written] = []
        at: str | None = digest
        files: dict[str, Entry] = {}
        while at is not None:
            if at in self._cached:
                files = dict(self._cached[at].files)
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
        while len(self._cached) >= _CACHED:
            del self._cached[next(iter(self._cached))]
        self._cached[digest] = contents
        return contents

    def names_since(self, digests: Iterable[str], known: str) -> Iterator[set[str]]:
        """Of each manifest, the paths that it has beyond `known` and those before it; each difference is read once."""
        visited = {known}
        for digest in digests:
            names: set[str] = set()
            at: str | None = digest
            while at is not None and at not in visited:
                visited.add(at)
                written = self._written(at)
                names.update(map(from_text, written.set))
                at = written.base
            yield names

    def rests_on(self, digest: str) -> Iterator[str]:
        """The objects that reading the manifest needs: itself, and the manifests that it is a difference from."""
        at: str | None = digest
        while at is not None:
            yield at
            at = self._written(at).base

    def named(self, digest: str) -> Iterator[str]:
        """The objects that reading and restoring the manifest needs: the manifests it rests on, and contents."""
        yield from self.rests_on(digest)
        for entry in self.read(digest).files.values():
            yield entry.digest

    def _written(self, digest: str) -> _Written:
        try:
            return _decode(self._objects.read(digest))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Corrupt(f"object {digest} should be a manifest and is not: {error}") from error


def encode_whole(files: Manifest) -> bytes:
    """A manifest that rests on no other."""
    return _encode(_Written(set={to_text(path): entry for path, entry in files.items()}))


def write(
    batch: Batch | Hashing,
    files: Manifest,
    changed: Mapping[str, Entry],
    gone: Iterable[str],
    left_out: Mapping[str, str],
    *,
    base: tuple[str, int] | None,
) -> tuple[str, int]:
    """Store the manifest of `files`; returns its digest and depth.

    A manifest that is similar to `base`, the digest and depth of another one, is stored as the difference.
    """
    reasons = {to_text(path): reason for path, reason in left_out.items()}
    lost = sorted(map(to_text, gone))
    if base is not None and base[1] < MAX_DEPTH and len(changed) + len(lost) <= len(files) * _WORTHWHILE:
        new = {to_text(path): entry for path, entry in changed.items()}
        return batch.add(_encode(_Written(base=base[0], set=new, gone=lost, left_out=reasons))), base[1] + 1
    whole = {to_text(path): entry for path, entry in files.items()}
    return batch.add(_encode(_Written(set=whole, left_out=reasons))), 0
