"""The object store: content by its SHA-256, stored once and never changed.

Small objects share segments, so that ten thousand of them cost one sync; large ones are plain files. The store does not
know checkpoints: the caller of `collect` says which objects to keep.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Container, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from detent.core.path_text import to_text
from detent.errors import Conflict, Corrupt
from detent.objects import plain, record
from detent.objects.record import FILE, Header
from detent.objects.segments import Segments
from detent.store import disk

if TYPE_CHECKING:
    from detent.objects.maintenance import Collected, Damaged

#: A batch writes when it holds more than this.
BUFFER_BYTES = 16 << 20
#: Larger content becomes a plain file.
LARGE_BYTES = 1 << 20
#: The name of large content that was added without a name.
_LARGE_NAME = "content"
_HEADER_BYTES = 200


class Objects:
    """Threads may share it. Processes may share the directory: each sees what the others stored."""

    def __init__(self, root: str, *, compress: bool = False) -> None:
        self.root = root
        self._compress = compress
        self._segments = Segments(root)

    def __contains__(self, digest: str) -> bool:
        """Whether the object is stored. Only reading verifies its content."""
        return self._segments.header(digest) is not None

    def size(self, digest: str) -> int | None:
        """The length of the content; None if there is no such object."""
        header = self._segments.header(digest)
        return None if header is None else header.size

    def read(self, digest: str) -> bytes:
        """The content; Corrupt if it is missing or damaged."""
        return record.resolve(digest, self._segments.fetch, self.root)

    def check(self, digest: str) -> None:
        """Verify an object: Corrupt if it is missing or damaged. Plain files are read in pieces."""
        header, _ = self._segments.fetch(digest)
        if header.form != FILE:
            self.read(digest)
            return
        with plain.opened(header, self.root):
            pass

    def copy_to(self, digest: str, fd: int) -> None:
        """Write the content to an open descriptor; writes nothing if it is missing or damaged."""
        header, _ = self._segments.fetch(digest)
        if header.form != FILE:
            data = self.read(digest)
            with disk.failing_as("write", f"the content of {digest}"):
                disk.write_all(fd, data)
            return
        with plain.opened(header, self.root) as reading, disk.failing_as("write", f"the content of {digest}"):
            plain.copy_out(reading, fd, header.size)

    def batch(self, owner: str) -> "Batch":
        """A batch whose objects are durable once its block ends without an exception."""
        return Batch(self._segments, owner, compress=self._compress)

    def digests(self) -> Iterator[str]:
        self._segments.refresh()
        return (key.hex() for key in list(self._segments.places))

    def verify(self, progress: Callable[[int, int], None] | None = None) -> "Iterator[Damaged]":
        """Hash every object. `progress` gets the number of checked objects and of all objects."""
        from detent.objects import maintenance  # noqa: PLC0415 - most commands only read and write

        return maintenance.verify(self._segments, self._fault, progress)

    def collect(self, keep: Container[str], *, dry_run: bool) -> "Collected":
        """Remove the objects that are neither in `keep` nor the base of such an object."""
        from detent.objects import maintenance  # noqa: PLC0415 - most commands only read and write

        return maintenance.collect(self._segments, keep, dry_run=dry_run)

    def close(self) -> None:
        self._segments.close()

    def _fault(self, digest: str) -> str | None:
        try:
            self.check(digest)
        except Corrupt as error:
            return error.message
        return None


class Batch:
    """Collects objects in memory, writes them together and makes them durable with one sync. Threads may share it.

    The objects can be read after the block has ended without an exception, not before.
    """

    def __init__(self, segments: Segments, owner: str, *, compress: bool) -> None:
        self._segments = segments
        self._owner = plain.checked_owner(owner)
        self._compress = compress
        self._guard = threading.Lock()
        self._waiting: dict[bytes, tuple[Header, bytes]] = {}
        self._waiting_bytes = 0
        #: Plain files by digest: their header and their path in the staging directory.
        self._files: dict[bytes, tuple[Header, str]] = {}
        #: Objects that must still exist at the end: known content, bases of edits, and written objects.
        self._relied: set[bytes] = set()
        self._staging: plain.Staging | None = None

    def __enter__(self) -> Self:
        self._segments.refresh()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            if self._staging is not None:
                self._staging.close()

    def add(self, data: bytes, *, like: str | None = None) -> str:
        """Add content; returns its digest. `like` is an object that may be similar."""
        total = hashlib.sha256(data)
        key, digest = total.digest(), total.hexdigest()
        if self._is_known(key):
            return digest
        stored = (self._edited(digest, data, like) if like else None) or self._whole(digest, data)
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
        """Copy the file at `path` into a plain file called `name`; returns digest and size of the copy."""
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
        """Whether the content is stored. If so, the batch makes sure that it is durable."""
        return self._is_known(bytes.fromhex(digest))

    def _is_known(self, key: bytes) -> bool:
        """Does not see what other processes stored since the batch began; `_write_waiting` does."""
        if key in self._waiting or key in self._files:
            return True
        known = key in self._segments.places and self._segments.header(key.hex()) is not None
        if known:
            self._relied.add(key)
        return known

    def _whole(self, digest: str, data: bytes) -> tuple[Header, bytes] | None:
        return None if len(data) > LARGE_BYTES else record.encode_whole(digest, data, compress=self._compress)

    def _edited(self, digest: str, data: bytes, like: str) -> tuple[Header, bytes] | None:
        """The content as an edit of `like`; None if that is missing or of no use."""
        key = bytes.fromhex(like)
        waiting = self._waiting.get(key)
        base = waiting[0] if waiting else self._segments.header(like)
        if base is None or base.depth >= record.MAX_DEPTH or max(base.size, len(data)) > record.EDIT_BYTES:
            return None
        try:
            old = record.resolve(like, self._fetch, self._segments.root)
        except Corrupt:
            return None
        edit = record.encode_edit(digest, data, base, old, compress=self._compress)
        if edit is None or len(edit[1]) > LARGE_BYTES:
            return None
        self._relied.add(key)
        return edit

    def _fetch(self, digest: str) -> tuple[Header, bytes]:
        return self._waiting.get(bytes.fromhex(digest)) or self._segments.fetch(digest)

    def _new_path(self) -> str:
        with self._guard:
            if self._staging is None:
                with self._segments.locked(), disk.failing_as("write to", self._segments.root):
                    self._staging = plain.Staging(self._segments.root)
            return self._staging.new()

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
            self._segments.sync()

    def _write_waiting(self) -> None:
        """Under the lock, so that no other process stores the same content at the same time."""
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
        """Move plain files to their places; they are durable there before a record names them."""
        new = {key: file for key, file in self._files.items() if self._segments.header(file[0].sha256) is None}
        owner = os.path.join(self._segments.root, self._owner)
        with disk.failing_as("write to", owner):
            if new:
                disk.make_directory(owner, durable=True)
            for header, copy in new.values():
                directory = os.path.join(owner, header.sha256)
                disk.make_directory(directory)
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
                f"object {gone[0]} was removed as garbage while content that needs it was stored",
                way_out="store it again",
            )


class Hashing:
    """A batch that stores nothing: for captures that only compare."""

    def add(self, data: bytes, *, like: str | None = None) -> str:  # noqa: ARG002 - as a batch has it
        return hashlib.sha256(data).hexdigest()

    def add_file(self, path: str, *, name: str) -> tuple[str, int]:  # noqa: ARG002 - as a batch has it
        with open(path, "rb", buffering=0) as file:
            digest = hashlib.file_digest(file, "sha256")
            return digest.hexdigest(), file.tell()

    def add_data_as_file(self, data: bytes, *, name: str) -> str:  # noqa: ARG002 - as a batch has it
        return hashlib.sha256(data).hexdigest()

    def knows(self, digest: str) -> bool:  # noqa: ARG002 - as a batch has it
        return True
