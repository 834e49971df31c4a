"""Objects on their way into the store: gathered in memory, written together, durable with one sync."""

import hashlib
import os
import threading
from types import TracebackType
from typing import Self

from detent.core.path_text import to_text
from detent.errors import Conflict, Corrupt
from detent.objects import content, plain, record
from detent.objects.lock_file import make_directory
from detent.objects.nursery import Nursery
from detent.objects.record import FILE, Header
from detent.objects.segments import Segments
from detent.store import disk

BUFFER_BYTES = 16 << 20
LARGE_BYTES = 1 << 20
#: The name of large content that came without one.
_LARGE_NAME = "content"
_HEADER_BYTES = 200


class Batch:
    """Threads may share it. What it was given can be read once it is left without an exception, not before."""

    def __init__(self, segments: Segments, owner: str, *, compress: bool) -> None:
        self._segments = segments
        self._owner = plain.checked_owner(owner)
        self._compress = compress
        self._guard = threading.Lock()
        self._waiting: dict[bytes, tuple[Header, bytes]] = {}
        self._waiting_bytes = 0
        #: Plain files by digest: their header and where they are until they have their place.
        self._files: dict[bytes, tuple[Header, str]] = {}
        #: What this batch counts on: known content, bases of edits, and what it has written already.
        self._relied: set[bytes] = set()
        self._nursery: Nursery | None = None

    def __enter__(self) -> Self:
        self._segments.refresh()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            if self._nursery is not None:
                self._nursery.close()

    def add(self, data: bytes, *, like: str | None = None) -> str:
        """The digest. `like`: an object that much of this may be the same as."""
        total = hashlib.sha256(data)
        key, digest = total.digest(), total.hexdigest()
        if self._is_known(key):
            return digest
        stored = (self._edited(digest, data, like) if like else None) or self._standing_alone(digest, data)
        if stored is None:
            self._keep_data(digest, data, _LARGE_NAME)
            return digest
        with self._guard:
            self._waiting[key] = stored
            self._waiting_bytes += len(stored[1]) + _HEADER_BYTES
            if self._waiting_bytes > BUFFER_BYTES:
                with self._segments.locked():
                    self._write_waiting()
        return digest

    def add_file(self, path: str, *, name: str) -> tuple[str, int]:
        """Digest and size of a copy of the file at `path`, which is kept as a plain file called `name`."""
        name = plain.checked_name(name)
        copy = self._new_path()
        with disk.failing_as("store", path):
            digest, size = plain.copy_in(path, copy)
        self._keep_file(digest, size, name, copy)
        return digest, size

    def add_data_as_file(self, data: bytes, *, name: str) -> str:
        name = plain.checked_name(name)
        digest = hashlib.sha256(data).hexdigest()
        if not self._is_known(bytes.fromhex(digest)):
            self._keep_data(digest, data, name)
        return digest

    def knows(self, digest: str) -> bool:
        """Whether the content is stored; the batch then makes sure that it is durable."""
        return self._is_known(bytes.fromhex(digest))

    def _is_known(self, key: bytes) -> bool:
        """Others may have stored it since the batch began; that shows when it is written."""
        if key in self._waiting or key in self._files:
            return True
        known = key in self._segments.places and self._segments.header(key.hex()) is not None
        if known:
            self._relied.add(key)
        return known

    def _standing_alone(self, digest: str, data: bytes) -> tuple[Header, bytes] | None:
        return None if len(data) > LARGE_BYTES else content.encoded(digest, data, compress=self._compress)

    def _edited(self, digest: str, data: bytes, like: str) -> tuple[Header, bytes] | None:
        """None if the other object is of no use, or not there: then the content stands alone."""
        key = bytes.fromhex(like)
        waiting = self._waiting.get(key)
        base = waiting[0] if waiting else self._segments.header(like)
        if base is None or base.depth >= content.MAX_DEPTH or max(base.size, len(data)) > content.EDIT_BYTES:
            return None
        try:
            old = content.resolve(like, self._fetch, self._segments.root)
        except Corrupt:
            return None
        edit = content.edited(digest, data, base, old, compress=self._compress)
        if edit is None or len(edit[1]) > LARGE_BYTES:
            return None
        self._relied.add(key)
        return edit

    def _fetch(self, digest: str) -> tuple[Header, bytes]:
        return self._waiting.get(bytes.fromhex(digest)) or self._segments.fetch(digest)

    def _new_path(self) -> str:
        with self._guard:
            if self._nursery is None:
                with self._segments.locked(), disk.failing_as("write to", self._segments.root):
                    self._nursery = Nursery(self._segments.root)
            return self._nursery.new()

    def _keep_data(self, digest: str, data: bytes, name: str) -> None:
        copy = self._new_path()
        with disk.failing_as("write", copy):
            plain.write_in(data, copy)
        self._keep_file(digest, len(data), name, copy)

    def _keep_file(self, digest: str, size: int, name: str, copy: str) -> None:
        key = bytes.fromhex(digest)
        path = to_text(f"{self._owner}/{digest}/{name}")
        with self._guard:
            if self._is_known(key):
                with disk.failing_as("remove", copy):
                    os.unlink(copy)
            else:
                self._files[key] = Header(sha256=digest, form=FILE, bytes=0, size=size, path=path), copy

    def _commit(self) -> None:
        if not self._waiting and not self._files:
            self._segments.refresh()
            if self._segments.are_durable(self._relied):
                return
        with self._segments.locked():
            self._place_files()
            self._write_waiting()
            self._segments.settle()

    def _write_waiting(self) -> None:
        """Under the lock, where nobody else can store the same content at the same time."""
        segments = self._segments
        self._check_relied()
        new = [
            (key, record.encode(header), stored)
            for key, (header, stored) in self._waiting.items()
            if key not in segments.places or segments.header(header.sha256) is None
        ]
        if new:
            segments.append(new)
        self._relied.update(self._waiting)
        self._waiting, self._waiting_bytes = {}, 0

    def _place_files(self) -> None:
        """Durable where they belong before a record says that they are there."""
        new = {key: kept for key, kept in self._files.items() if self._segments.header(kept[0].sha256) is None}
        owner = os.path.join(self._segments.root, self._owner)
        with disk.failing_as("write to", owner):
            if new:
                make_directory(owner)
            for header, copy in new.values():
                directory = os.path.join(owner, header.sha256)
                os.makedirs(directory, exist_ok=True)
                os.replace(copy, os.path.join(self._segments.root, record.plain_path(header) or ""))
                disk.sync_directory(directory)
            if new:
                disk.sync_directory(owner)
        self._waiting |= {key: (header, b"") for key, (header, _) in new.items()}
        self._relied.update(self._files)
        self._files = {}

    def _check_relied(self) -> None:
        gone = [
            key.hex() for key in list(self._relied) if key not in self._segments.places and key not in self._waiting
        ]
        if gone:
            raise Conflict(
                f"object {gone[0]} was removed as garbage while content was stored that counts on it",
                way_out="store it again",
            )
