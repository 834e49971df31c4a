"""Segments: files of records that are only appended to (`objects-000001.pack`, …), and the place of each object.

Invariants:
1. Writers hold the lock and first read the records of others. A torn tail is cut before anything is appended.
2. The index is written after the sync of the records it points to, and removed before a segment is replaced.
3. A record that no index covers may never have been synced: it counts only if its content has its digest.
"""

import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter

from detent.errors import Corrupt
from detent.objects import record
from detent.objects.index import Index, Odd, Replaced, Row
from detent.objects.record import EDIT, FILE, RAW, ZLIB, Header, Record, plain_path
from detent.objects.write_lock import WriteLock
from detent.store import disk

SEGMENT_BYTES = 256 << 20

#: Number of the segment, offset and length of the record.
Place = tuple[int, int, int]
_Stamp = tuple[int, int, int]


class Segment:
    """One segment. It stays open, so that no other file can get its inode."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.inode = os.fstat(self.fd).st_ino
        #: End of the records that were read.
        self.covered = 0
        #: End of the records that are synced.
        self.durable = 0
        #: End of the records that an index covered. Never cut below it, damaged or not.
        self.claimed = 0

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def end(self) -> int:
        """The offset of the next record. Bytes beyond it are unfinished, and nothing refers to them."""
        return max(self.covered, self.claimed)

    def news(self) -> Iterator[Record]:
        """Reads the records that were not read before."""
        for entry in record.scan(self.fd, self.covered, self.size()):
            self.covered = max(self.covered, entry.end)
            yield entry

    def vouch(self, end: int) -> None:
        """An index covers the segment up to `end`."""
        self.covered = max(self.covered, end)
        self.durable = max(self.durable, end)
        self.claimed = max(self.claimed, end)

    def append(self, data: bytes) -> None:
        start = self.end()
        with self._writing() as fd:
            try:
                disk.write_all(fd, data)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(fd, start)
                raise
        self.covered = start + len(data)

    def cut(self, end: int) -> None:
        with self._writing() as fd:
            os.ftruncate(fd, end)

    def sync(self) -> None:
        disk.sync(self.fd)
        self.durable = self.claimed = self.end()

    def close(self) -> None:
        os.close(self.fd)

    @contextmanager
    def _writing(self) -> Iterator[int]:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


class Segments:
    """The segments of one directory, as far as they were read."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.places: dict[bytes, Place] = {}
        #: Places of damaged objects. They count as missing, but an edit may still rest on the part it needs.
        self._broken: dict[bytes, Place] = {}
        self.files: dict[int, Segment] = {}
        self._stamps: list[_Stamp] = []
        self._index = Index(root)
        self._distrusted = False
        self._unindexed: list[bytes] = []
        self._appended: list[tuple[Segment, int]] = []
        self._lock = WriteLock(root)
        self._guard = threading.RLock()

    def header(self, digest: str) -> Header | None:
        """The header of an object, also if another process has just written it; None if it or its file is missing."""
        key = bytes.fromhex(digest)
        with self._guarded("read"):
            if key not in self.places:
                self._refresh()
            if key not in self.places:
                return None
            stored = self._record(key, record.MAX_HEADER)
            if stored is None and not self._distrusted:
                self._rebuild()
                stored = self._record(key, record.MAX_HEADER)
            return stored[0] if stored and self._has_file(stored[0]) else None

    def fetch(self, digest: str) -> tuple[Header, bytes]:
        """The header and the stored bytes. Corrupt if the object is missing even after the segments were read again."""
        key = bytes.fromhex(digest)
        with self._guarded("read"):
            stored = self._record(key)
            if stored is None:
                self._refresh()
                stored = self._record(key)
            if stored is None and not self._distrusted:
                self._rebuild()
            return stored or self._known(digest)

    def refresh(self, *, again: bool = False) -> None:
        """Read the records of other processes; with `again` even if no file seems to have changed."""
        with self._guarded("read"):
            self._refresh(again=again)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock; the segments are up to date and have no torn tail."""
        with self._lock.held(), self._guarded("write to"):
            self._refresh(again=True)
            self._appended.clear()
            for segment in list(self.files.values())[-1:]:
                if segment.size() > segment.end():
                    segment.cut(segment.end())
            yield

    def append(self, records: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Append digests, headers and stored bytes. Under the lock; not durable before `sync`."""
        with self._guarded("append to"):
            number, segment = self._last()
            start = offset = segment.end()
            pieces: list[bytes] = []
            places: dict[bytes, Place] = {}
            for digest, header, stored in records:
                length = len(header) + len(stored) + 1
                pieces += (header, stored, b"\n")
                places[digest] = (number, offset, length)
                offset += length
            segment.append(b"".join(pieces))
            self._appended.append((segment, start))
            self.places.update(places)
            self._unindexed += places

    def sync(self) -> None:
        """Under the lock: make all records durable, then add them to the index."""
        with self._guarded("sync"):
            behind = [segment for segment in self.files.values() if segment.durable < segment.covered]
            try:
                if any(segment.durable == 0 for segment in behind):
                    disk.sync_directory(self.root)
                for segment in behind:
                    segment.sync()
            except OSError:
                self._undo_appends()
                raise
            # A cache: without it, the next process reads more of the segments.
            with suppress(OSError, Replaced):
                self._write_index()

    def are_durable(self, digests: Iterable[bytes]) -> bool:
        """Whether all of the objects are stored and synced."""
        with self._guarded("read"):
            places = [self.places.get(digest) for digest in digests]
            return all(place and place[1] + place[2] <= self.files[place[0]].durable for place in places)

    def replace(self, number: int, kept: Iterable[bytes]) -> None:
        """Under the lock: replace a segment by a new file, which is durable before readers see it."""
        path = self._path(number)
        with disk.failing_as("rewrite", path):
            self._index.remove()
            temporary = path + disk.TEMPORARY
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, disk.PRIVATE_FILE)
            try:
                for data in kept:
                    disk.write_all(fd, data)
                disk.sync(fd)
            finally:
                os.close(fd)
            os.replace(temporary, path)
            disk.sync_directory(self.root)

    def close(self) -> None:
        self._forget()
        self._lock.close()

    @contextmanager
    def _guarded(self, action: str) -> Iterator[None]:
        if self._lock.forget_if_forked():
            self._guard = threading.RLock()
        with self._guard, disk.failing_as(action, self.root):
            yield

    def _path(self, number: int) -> str:
        return os.path.join(self.root, f"objects-{number:06d}.pack")

    def _refresh(self, *, again: bool = False) -> None:
        while True:
            try:
                return self._look(again=again)
            except Replaced:
                self._forget()
            except Odd:
                self._rebuild()
            except OSError:
                # It is unknown how much was read.
                self._forget()
                raise

    def _rebuild(self) -> None:
        """Read all segments, without the index."""
        claims = {segment.inode: segment.claimed for segment in self.files.values()}
        self._forget()
        self._distrusted = True
        self._look(again=True)
        for segment in self.files.values():
            segment.claimed = min(claims.get(segment.inode, 0), segment.size())

    def _look(self, *, again: bool) -> None:
        # The index first: records that are appended meanwhile make it seem behind, never ahead.
        rows = iter(()) if self._distrusted else self._index.news()
        stamps = list(self._stat())
        inodes = [segment.inode for segment in self.files.values()]
        if inodes != [stamp[0] for stamp in stamps[: len(inodes)]]:
            raise Replaced
        for number in range(len(inodes) + 1, len(stamps) + 1):
            self.files[number] = Segment(self._path(number))
        self._take_index(rows)
        if again or stamps != self._stamps:
            self._adopt(self._scan_tails())
            self._stamps = stamps

    def _stat(self) -> Iterator[_Stamp]:
        number = 1
        while True:
            try:
                status = os.stat(self._path(number))
            except (FileNotFoundError, NotADirectoryError):
                return
            if not stat.S_ISREG(status.st_mode):
                return
            yield status.st_ino, status.st_size, status.st_mtime_ns
            number += 1

    def _take_index(self, rows: Iterator[Row]) -> None:
        """Take the places from the index. It is trusted if all rows are possible and the last one is right."""
        places = self.places
        ends = dict.fromkeys(self.files, 0)
        digest = b""
        for digest, number, offset, length in rows:
            if number not in ends or offset < ends[number]:
                raise Odd
            places[digest] = (number, offset, length)
            ends[number] = offset + length
        if any(end > self.files[number].size() for number, end in ends.items()):
            raise Odd
        for number, end in ends.items():
            self.files[number].vouch(end)
        if digest and self._record(digest, record.MAX_HEADER) is None:
            raise Odd

    def _scan_tails(self) -> dict[bytes, Place | None]:
        """Read the records that no index covers. Returns the previous place of each of these objects."""
        before: dict[bytes, Place | None] = {}
        for number, segment in self.files.items():
            for entry in segment.news():
                digest = bytes.fromhex(entry.header.sha256)
                before.setdefault(digest, self.places.get(digest))
                self.places[digest] = (number, entry.offset, entry.end - entry.offset)
        return before

    def _adopt(self, before: dict[bytes, Place | None]) -> None:
        broken = {digest for digest in before if not self._is_whole(digest)}
        for digest, place in before.items():
            if digest not in broken:
                self._unindexed.append(digest)
            elif place is not None:
                self.places[digest] = place
            else:
                self._broken[digest] = self.places.pop(digest)

    def _is_whole(self, digest: bytes) -> bool:
        """Whether the content has its digest. A plain file is synced before its record: its size is enough."""
        try:
            header, _ = self._known(digest.hex())
            if header.form in (RAW, ZLIB, EDIT):
                record.resolve(digest.hex(), self._known, self.root)
        except Corrupt:
            return False
        return self._has_file(header)

    def _has_file(self, header: Header) -> bool:
        if header.form != FILE:
            return True
        path = plain_path(header)
        try:
            return path is not None and os.stat(os.path.join(self.root, path)).st_size == header.size
        except OSError:
            return False

    def _known(self, digest: str) -> tuple[Header, bytes]:
        stored = self._record(bytes.fromhex(digest))
        if stored is None:
            raise record.missing(digest)
        return stored

    def _record(self, digest: bytes, limit: int | None = None) -> tuple[Header, bytes] | None:
        """The record of an object; None unless it has this digest. At most `limit` bytes of it are read."""
        place = self.places.get(digest) or self._broken.get(digest)
        if place is None:
            return None
        number, offset, length = place
        data = os.pread(self.files[number].fd, min(length, limit or length), offset)
        parsed = record.parse(data)
        if parsed is None:
            return None
        header, start = parsed
        fits = header.sha256 == digest.hex() and start + header.bytes + 1 == length
        return (header, data[start : start + header.bytes]) if fits else None

    def _last(self) -> tuple[int, Segment]:
        number = len(self.files)
        if number == 0 or self.files[number].size() > SEGMENT_BYTES:
            number += 1
            path = self._path(number)
            if os.path.lexists(path) and not os.path.isfile(path):
                disk.set_aside(path)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, disk.PRIVATE_FILE))
            self.files[number] = Segment(path)
        return number, self.files[number]

    def _undo_appends(self) -> None:
        """Remove the appended records: after a failed sync the system may show data that the disk does not have."""
        for segment, start in reversed(self._appended):
            with suppress(OSError):
                segment.cut(start)
        self._forget()

    def _write_index(self) -> None:
        if self._distrusted:
            self._index.replace(self._rows(self.places))
            self._distrusted = False
        elif self._unindexed:
            self._index.append(self._rows(self._unindexed))
        self._unindexed.clear()

    def _rows(self, digests: Iterable[bytes]) -> list[Row]:
        """In the order of their places."""
        places = self.places
        return sorted([(digest, *places[digest]) for digest in digests], key=itemgetter(1, 2))

    def _forget(self) -> None:
        for segment in self.files.values():
            segment.close()
        self._index.close()
        self.files, self.places, self._broken = {}, {}, {}
        self._stamps, self._unindexed = [], []
        self._distrusted = False
