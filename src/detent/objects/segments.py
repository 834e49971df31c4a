"""The segments, and where in them each object is: `objects-000001.pack` and so on, only ever appended to.

Invariants:
1. Writes happen under the lock, after a look at what others wrote; a torn tail is cut before anything is appended.
2. The index is written after the sync of what it points to, and removed before a segment is replaced.
3. What no index covers may never have been synced: it counts only if its content has its digest.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter

from detent.errors import Corrupt
from detent.objects import content, record
from detent.objects.index import Index, Odd, Replaced, Row
from detent.objects.lock_file import LockFile
from detent.objects.record import EDIT, FILE, RAW, ZLIB, Header, plain_path
from detent.objects.segment import Segment
from detent.store import disk

SEGMENT_BYTES = 256 << 20

#: Number of the segment, offset and length of the record.
Place = tuple[int, int, int]
_Stamp = tuple[int, int, int]


class Segments:
    """What is on the disk, as far as it was looked at."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.places: dict[bytes, Place] = {}
        #: Damaged, and so not there; an edit may still find in it what it needs.
        self._broken: dict[bytes, Place] = {}
        self.files: dict[int, Segment] = {}
        self._stamps: list[_Stamp] = []
        self._index = Index(root)
        self._distrusted = False
        self._unindexed: list[bytes] = []
        self._appended: list[tuple[Segment, int]] = []
        self._lock = LockFile(root)
        self._guard = threading.RLock()

    def header(self, digest: str) -> Header | None:
        """None if there is no such object, also after a look at what others wrote, or if its plain file is gone."""
        key = bytes.fromhex(digest)
        with self._guarded("read"):
            if key not in self.places:
                self._refresh()
            if key not in self.places:
                return None
            found = self._record(key, record.MAX_HEADER)
            if found is None and not self._distrusted:
                self._rebuild()
                found = self._record(key, record.MAX_HEADER)
            return found[0] if found and self._has_file(found[0]) else None

    def fetch(self, digest: str) -> tuple[Header, bytes]:
        """The header and the stored bytes. Corrupt if there is no such object, however one looks for it."""
        key = bytes.fromhex(digest)
        with self._guarded("read"):
            found = self._record(key)
            if found is None:
                self._refresh()
                found = self._record(key)
            if found is None and not self._distrusted:
                self._rebuild()
            return found or self._known(digest)

    def refresh(self, *, again: bool = False) -> None:
        """See what others wrote; `again`: even if nothing seems to have changed."""
        with self._guarded("read"):
            self._refresh(again=again)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the segments, up to date, with nothing torn at their end."""
        with self._lock.held(), self._guarded("write to"):
            self._refresh(again=True)
            self._appended.clear()
            for segment in list(self.files.values())[-1:]:
                if segment.size() > segment.end():
                    segment.cut(segment.end())
            yield

    def append(self, records: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Digests, headers and stored bytes; under the lock, and not durable before `settle`."""
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

    def settle(self) -> None:
        """Under the lock: make durable what there is, then let the index say where it is."""
        with self._guarded("sync"):
            behind = [segment for segment in self.files.values() if segment.durable < segment.covered]
            try:
                if any(segment.durable == 0 for segment in behind):
                    disk.sync_directory(self.root)
                for segment in behind:
                    segment.sync()
            except OSError:
                self._take_back()
                raise
            # A cache: if it cannot be written, the next one who opens the segments reads more of them.
            with suppress(OSError, Replaced):
                self._write_index()

    def are_durable(self, digests: Iterable[bytes]) -> bool:
        """False also if one of them is not there."""
        with self._guarded("read"):
            places = [self.places.get(digest) for digest in digests]
            return all(place and place[1] + place[2] <= self.files[place[0]].durable for place in places)

    def replace(self, number: int, kept: Iterable[bytes]) -> None:
        """Under the lock: another file in the place of a segment, durable before it is seen."""
        path = self._path(number)
        with disk.failing_as("rewrite", path):
            self._index.remove()
            temporary = path + disk.TEMPORARY
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
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
                # How far it came is not known.
                self._forget()
                raise

    def _rebuild(self) -> None:
        """Trust the segments alone."""
        claims = {segment.inode: segment.claimed for segment in self.files.values()}
        self._forget()
        self._distrusted = True
        self._look(again=True)
        for segment in self.files.values():
            segment.claimed = min(claims.get(segment.inode, 0), segment.size())

    def _look(self, *, again: bool) -> None:
        # The index first: what is appended meanwhile makes it seem behind, never ahead.
        rows = iter(()) if self._distrusted else self._index.news()
        stamps = list(self._stat())
        inodes = [segment.inode for segment in self.files.values()]
        if inodes != [stamp[0] for stamp in stamps[: len(inodes)]]:
            raise Replaced
        for number in range(len(inodes) + 1, len(stamps) + 1):
            self.files[number] = Segment(self._path(number))
        self._believe(rows)
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
            yield status.st_ino, status.st_size, status.st_mtime_ns
            number += 1

    def _believe(self, rows: Iterator[Row]) -> None:
        """The index is right about all places if it can be, and is about the last one."""
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
        """Take in the records that no index covers. Returns them, each with the place of the same before."""
        before: dict[bytes, Place | None] = {}
        for number, segment in self.files.items():
            for found in segment.news():
                digest = bytes.fromhex(found.header.sha256)
                before.setdefault(digest, self.places.get(digest))
                self.places[digest] = (number, found.offset, found.end - found.offset)
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
        """Of a plain file, which was synced before its record was written, the size says enough."""
        try:
            header, _ = self._known(digest.hex())
            if header.form in (RAW, ZLIB, EDIT):
                content.resolve(digest.hex(), self._known, self.root)
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
        found = self._record(bytes.fromhex(digest))
        if found is None:
            raise content.missing(digest)
        return found

    def _record(self, digest: bytes, limit: int | None = None) -> tuple[Header, bytes] | None:
        """None unless the record at the digest's place is one of this digest. Up to `limit` bytes of it are read."""
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
            os.close(os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
            self.files[number] = Segment(self._path(number))
        return number, self.files[number]

    def _take_back(self) -> None:
        """After a failed sync the system may show what the disk does not have: nobody may rely on it."""
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
