"""Snapshots below a URL: `file:///…`, `s3://…` and all other places that `fsspec` knows (extra `files`).

An object is `objects/SHA-256`, a manifest `snapshots/SESSION/CHECKPOINT.json`. A manifest is written after the objects
that it names.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from detent.core.redact import redact
from detent.errors import Corrupt, Refused, StoreFailed
from detent.extras import install_command
from detent.objects.transport import decode_manifest

_SNAPSHOTS, _OBJECTS, _SUFFIX = "snapshots", "objects", ".json"
#: Objects that one call reads or writes.
_AT_ONCE = 500
#: By module, the errors of libraries for S3, Google, Azure and HTTP.
_ERRORS = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "gcsfs.retry": ("HttpError",),
    "azure.core.exceptions": ("AzureError",),
    "aiohttp": ("ClientError",),
}


class UrlTransport:
    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise Refused(
                "files travel to a URL with fsspec, which is not installed", way_out=install_command("files")
            ) from error
        with self._failing(url):
            self._fs: Any
            self._fs, root = url_to_fs(url, use_listings_cache=False)
        self._url, self._root = url, root.rstrip("/")

    def send(
        self, name: str, manifest: bytes, digests: Collection[str], read: Callable[[str], bytes], base: str | None
    ) -> None:
        with self._failing():
            path = self._snapshot(name)
            if self._fs.exists(path):
                return
            known = self._digests(base) if base is not None else set()
            new = sorted(set(digests) - known)
            for start in range(0, len(new), _AT_ONCE):
                wanted = new[start : start + _AT_ONCE]
                self._make_directory(_OBJECTS)
                self._fs.pipe({self._object(digest): read(digest) for digest in wanted})
            self._make_directory(f"{_SNAPSHOTS}/{name.rpartition('/')[0]}")
            self._fs.pipe_file(path, manifest)

    def fetch(self, name: str) -> bytes | None:
        with self._failing():
            try:
                return bytes(self._fs.cat_file(self._snapshot(name)))
            except FileNotFoundError:
                return None

    def objects(self, name: str, digests: Iterable[str]) -> Mapping[str, bytes]:
        contents: dict[str, bytes] = {}
        wanted = sorted(set(digests))
        with self._failing():
            for start in range(0, len(wanted), _AT_ONCE):
                paths = {self._object(digest): digest for digest in wanted[start : start + _AT_ONCE]}
                try:
                    read = self._fs.cat(list(paths))
                except FileNotFoundError as error:
                    raise Corrupt(f"the snapshot {name} lacks an object: {error}") from error
                contents |= {paths[path]: bytes(data) for path, data in _by_path(read, list(paths)).items()}
        return contents

    def names(self, prefix: str = "") -> list[str]:
        with self._failing():
            top = f"{self._root}/{_SNAPSHOTS}"
            listed = self._fs.find(top) if self._fs.exists(top) else []
            names = (path.partition(f"/{_SNAPSHOTS}/")[2].removesuffix(_SUFFIX) for path in listed)
            return sorted(name for name in names if name.startswith(prefix))

    def remove(self, names: Collection[str]) -> None:
        """Objects go first from the manifests, then from the place: a reader finds a whole snapshot, or none."""
        with self._failing():
            removed = set(names)
            gone: set[str] = set()
            for name in removed:
                gone |= self._digests(name)
                self._fs.rm_file(self._snapshot(name))
            for name in self.names():
                gone -= self._digests(name)
            for digest in gone:
                self._fs.rm_file(self._object(digest))

    def _digests(self, name: str) -> set[str]:
        data = self.fetch(name)
        return {entry.digest for entry in decode_manifest(data, name).values()} if data is not None else set()

    def _make_directory(self, name: str) -> None:
        self._fs.makedirs(f"{self._root}/{name}", exist_ok=True)

    def _snapshot(self, name: str) -> str:
        return f"{self._root}/{_SNAPSHOTS}/{name}{_SUFFIX}"

    def _object(self, digest: str) -> str:
        return f"{self._root}/{_OBJECTS}/{digest}"

    @contextmanager
    def _failing(self, url: str = "") -> Iterator[None]:
        """Errors of the place become `StoreFailed`."""
        try:
            yield
        except _errors() as error:
            raise StoreFailed(redact(f"the files could not travel to or from {url or self._url}: {error}")) from error


def _errors() -> tuple[type[Exception], ...]:
    """The errors of a place, with those of the libraries that `fsspec` has loaded for it."""
    known = ((sys.modules.get(module), name) for module, names in _ERRORS.items() for name in names)
    return OSError, ValueError, ImportError, *(getattr(module, name) for module, name in known if module is not None)


def _by_path(read: Any, paths: list[str]) -> dict[str, bytes]:
    """One file is returned alone by `cat`."""
    return read if isinstance(read, dict) else {paths[0]: read}
