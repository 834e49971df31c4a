"""Garbage: objects that nobody wants any more, and what a crash left behind.

A segment that holds any is written anew without it. A damaged segment stays as it is: what cannot be read there may
still be wanted. Records go first, then the plain files they named; so a record never promises a file that is gone.
"""

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import NamedTuple

from detent.objects.nursery import clear_abandoned
from detent.objects.record import Found, plain_path, scan
from detent.objects.segments import Segments
from detent.store import disk

_CHUNK = 1 << 20
_DIGEST_LENGTH = 64


class Collected(NamedTuple):
    """What went, or with a dry run would go."""

    objects: int
    bytes: int


class _Plan(NamedTuple):
    kept: dict[int, list[Found]]
    garbage: dict[int, list[Found]]
    files: list[str]
    total: Collected


def collect(segments: Segments, keep: Container[str], *, dry_run: bool) -> Collected:
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
        for number, found in plan.kept.items():
            if plan.garbage[number]:
                segments.replace(number, _runs(segments.files[number].fd, found))
        segments.refresh(again=True)
        segments.settle()
        for path in plan.files:
            _remove(segments.root, path)
        return plan.total


def _plan(segments: Segments, keep: Container[str]) -> _Plan:
    sizes = {number: segment.size() for number, segment in segments.files.items()}
    found = {number: list(scan(segment.fd, 0, sizes[number])) for number, segment in segments.files.items()}
    damaged = {number for number, size in sizes.items() if _has_gap(found[number], size, last=number == len(sizes))}
    wanted = _wanted(found, keep, damaged)
    kept: dict[int, list[Found]] = {}
    garbage: dict[int, list[Found]] = {}
    for number, records in found.items():
        stays = [
            number in damaged or (one.header.sha256 in wanted and not _is_superseded(segments, number, one))
            for one in records
        ]
        kept[number] = [one for one, stay in zip(records, stays, strict=True) if stay]
        garbage[number] = [one for one, stay in zip(records, stays, strict=True) if not stay]
    files = _garbage_files(segments.root, kept, garbage, everything=not damaged)
    dropped = [one for records in garbage.values() for one in records]
    freed = sum(one.end - one.offset for one in dropped) + sum(_size(segments.root, path) for path in files)
    gone = {one.header.sha256 for one in dropped} - wanted
    return _Plan(kept, garbage, files, Collected(len(gone), freed))


def _has_gap(found: list[Found], size: int, *, last: bool) -> bool:
    """The tail of the last segment may be torn, or just being written."""
    ends = [0, *(one.end for one in found)]
    starts = [*(one.offset for one in found), ends[-1] if last else size]
    return starts != ends


def _wanted(found: dict[int, list[Found]], keep: Container[str], damaged: set[int]) -> set[str]:
    """With the bases of edits, and of theirs."""
    bases: dict[str, set[str]] = {}
    todo: list[str] = []
    for number, records in found.items():
        for one in records:
            digest = one.header.sha256
            bases.setdefault(digest, set())
            if one.header.base is not None:
                bases[digest].add(one.header.base)
            if number in damaged or digest in keep:
                todo.append(digest)
    wanted: set[str] = set()
    while todo:
        digest = todo.pop()
        if digest not in wanted:
            wanted.add(digest)
            todo += bases.get(digest, ())
    return wanted


def _is_superseded(segments: Segments, number: int, one: Found) -> bool:
    """The same content was stored again elsewhere, because this record was found damaged."""
    place = segments.places.get(bytes.fromhex(one.header.sha256))
    return place is not None and place[:2] != (number, one.offset)


def _garbage_files(
    root: str, kept: dict[int, list[Found]], garbage: dict[int, list[Found]], *, everything: bool
) -> list[str]:
    """Plain files of garbage; and, if every record could be read, those that no record names."""
    needed = {plain_path(one.header) for records in kept.values() for one in records}
    named = {plain_path(one.header) for records in garbage.values() for one in records}
    there = set(_plain_files(root))
    return sorted((there if everything else there & named) - needed)


def _plain_files(root: str) -> Iterator[str]:
    for owner in _listed(root):
        for digest in _listed(os.path.join(root, owner)):
            if len(digest) == _DIGEST_LENGTH:
                found = (f"{owner}/{digest}/{name}" for name in _listed(os.path.join(root, owner, digest)))
                yield from (path for path in found if not os.path.isdir(os.path.join(root, path)))


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _runs(fd: int, found: list[Found]) -> Iterator[bytes]:
    """The bytes of the records, neighbours together."""
    index = 0
    while index < len(found):
        start, end = found[index].offset, found[index].end
        index += 1
        while index < len(found) and found[index].offset == end and found[index].end - start <= _CHUNK:
            end = found[index].end
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
    """With the directories that are empty without it."""
    full = os.path.join(root, path)
    os.unlink(full)
    with suppress(OSError):
        os.rmdir(os.path.dirname(full))
        os.rmdir(os.path.dirname(os.path.dirname(full)))
