"""Maintenance of the segments: verify every object, and remove objects that are no longer needed.

Collecting garbage rewrites each segment that holds any. A damaged segment is left alone: its unreadable part may still
be needed. Records are removed before the plain files they name, so a record never names a missing file.
"""

import os
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from typing import NamedTuple

from detent.objects.plain import clear_abandoned
from detent.objects.record import Record, plain_path, scan
from detent.objects.segments import Segments
from detent.store import disk

_CHUNK = 1 << 20
_DIGEST_LENGTH = 64


class Damaged(NamedTuple):
    """`digest` is None for bytes that belong to no known object."""

    digest: str | None
    where: str
    reason: str


class Collected(NamedTuple):
    """The number of removed objects, and the bytes that they took; with a dry run those that would be removed."""

    objects: int
    bytes: int


def verify(
    segments: Segments, fault: Callable[[str], str | None], progress: Callable[[int, int], None] | None
) -> Iterator[Damaged]:
    """Check every object, also behind damaged records. `fault` returns the reason why an object is damaged, or None."""
    segments.refresh()
    places = dict(segments.places)
    todo: dict[str, str] = {}
    offsets: set[tuple[int, int]] = set()
    for number, segment in list(segments.files.items()):
        name = os.path.basename(segment.path)
        size = segment.size()
        records = list(scan(segment.fd, 0, size))
        for start, end in _gaps(records, size, is_last=number == len(segments.files)):
            if end > start:
                reason = f"these {end - start} bytes are no record and were skipped"
                yield Damaged(None, f"{name} at byte {start}", reason)
        offsets.update((number, record.offset) for record in records)
        for record in records:
            place = places.get(bytes.fromhex(record.header.sha256), (number, record.offset))
            if place[:2] == (number, record.offset):
                todo[record.header.sha256] = f"{name} at byte {record.offset}"
    for key, (number, offset, _) in places.items():
        if (number, offset) not in offsets:
            todo[key.hex()] = f"{os.path.basename(segments.files[number].path)} at byte {offset}"
    for count, (digest, where) in enumerate(todo.items(), 1):
        fault_reason = fault(digest)
        if fault_reason is not None:
            yield Damaged(digest, where, fault_reason)
        if progress is not None:
            progress(count, len(todo))


def collect(segments: Segments, keep: Container[str], *, dry_run: bool) -> Collected:
    """Remove the objects that are neither in `keep` nor the base of such an object."""
    if dry_run:
        segments.refresh()
        with disk.failing_as("read", segments.root):
            return _plan(segments, keep).total
    if not os.path.isdir(segments.root):
        return Collected(0, 0)
    with segments.locked(), disk.failing_as("collect garbage in", segments.root):
        clear_abandoned(segments.root)
        _clear_unfinished(segments.root)
        plan = _plan(segments, keep)
        for number, records in plan.kept.items():
            if plan.garbage[number]:
                segments.replace(number, _runs(segments.files[number].fd, records))
        segments.refresh(again=True)
        segments.sync()
        for path in plan.files:
            _remove(segments.root, path)
        return plan.total


#: Records by the number of their segment.
_Records = dict[int, list[Record]]


class _Plan(NamedTuple):
    kept: _Records
    garbage: _Records
    files: list[str]
    total: Collected


def _plan(segments: Segments, keep: Container[str]) -> _Plan:
    sizes = {number: segment.size() for number, segment in segments.files.items()}
    records = {number: list(scan(segment.fd, 0, sizes[number])) for number, segment in segments.files.items()}
    damaged = {
        number for number, size in sizes.items() if any(_gaps(records[number], size, is_last=number == len(sizes)))
    }
    wanted = _wanted(records, keep, damaged)
    kept: _Records = {number: [] for number in records}
    garbage: _Records = {number: [] for number in records}
    for number, entries in records.items():
        for record in entries:
            is_wanted = record.header.sha256 in wanted and not _is_superseded(segments, number, record)
            (kept if number in damaged or is_wanted else garbage)[number].append(record)
    files = _garbage_files(segments.root, kept, garbage, everything=not damaged)
    dropped = [record for entries in garbage.values() for record in entries]
    freed = sum(record.end - record.offset for record in dropped) + sum(_size(segments.root, path) for path in files)
    gone = {record.header.sha256 for record in dropped} - wanted
    return _Plan(kept, garbage, files, Collected(len(gone), freed))


def _gaps(records: list[Record], size: int, *, is_last: bool) -> Iterator[tuple[int, int]]:
    """Gaps between records: the end of one and the offset of the next, which is lower if they overlap.

    The tail of the last segment may just be written, and is no gap.
    """
    end = 0
    for record in records:
        if record.offset != end:
            yield end, record.offset
        end = record.end
    if not is_last and size != end:
        yield end, size


def _wanted(records: _Records, keep: Container[str], damaged: set[int]) -> set[str]:
    """The digests to keep, with the bases of edits."""
    bases: dict[str, set[str]] = {}
    todo: list[str] = []
    for number, entries in records.items():
        for record in entries:
            digest = record.header.sha256
            bases.setdefault(digest, set())
            if record.header.base is not None:
                bases[digest].add(record.header.base)
            if number in damaged or digest in keep:
                todo.append(digest)
    wanted: set[str] = set()
    while todo:
        digest = todo.pop()
        if digest not in wanted:
            wanted.add(digest)
            todo += bases.get(digest, ())
    return wanted


def _is_superseded(segments: Segments, number: int, record: Record) -> bool:
    """Whether the content was stored again elsewhere, because this record is damaged."""
    place = segments.places.get(bytes.fromhex(record.header.sha256))
    return place is not None and place[:2] != (number, record.offset)


def _garbage_files(root: str, kept: _Records, garbage: _Records, *, everything: bool) -> list[str]:
    """Plain files of garbage; with `everything` also those that no record names."""
    needed = {plain_path(record.header) for records in kept.values() for record in records}
    named = {plain_path(record.header) for records in garbage.values() for record in records}
    present = set(_plain_files(root))
    return sorted((present if everything else present & named) - needed)


def _plain_files(root: str) -> Iterator[str]:
    for owner in _listed(root):
        for digest in _listed(os.path.join(root, owner)):
            if len(digest) == _DIGEST_LENGTH:
                paths = (f"{owner}/{digest}/{name}" for name in _listed(os.path.join(root, owner, digest)))
                yield from (path for path in paths if not os.path.isdir(os.path.join(root, path)))


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _runs(fd: int, records: list[Record]) -> Iterator[bytes]:
    """The bytes of the records; neighbours are read together."""
    index = 0
    while index < len(records):
        start, end = records[index].offset, records[index].end
        index += 1
        while index < len(records) and records[index].offset == end and records[index].end - start <= _CHUNK:
            end = records[index].end
            index += 1
        yield os.pread(fd, end - start, start)


def _size(root: str, path: str) -> int:
    try:
        return os.lstat(os.path.join(root, path)).st_size
    except FileNotFoundError:
        return 0


def _clear_unfinished(root: str) -> None:
    for name in os.listdir(root):
        if name.endswith(disk.TEMPORARY):
            os.unlink(os.path.join(root, name))


def _remove(root: str, path: str) -> None:
    """Remove a plain file, and the directories that are empty without it."""
    full = os.path.join(root, path)
    os.unlink(full)
    with suppress(OSError):
        os.rmdir(os.path.dirname(full))
        os.rmdir(os.path.dirname(os.path.dirname(full)))
