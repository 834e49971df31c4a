"""Taking the files of a tree: what changed since the last time is read and stored; the rest is only looked at."""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from detent.core.checkpoint import Tree
from detent.core.manifest import Entry
from detent.errors import StoreFailed
from detent.objects import manifest_object
from detent.objects.hashing import Hashing
from detent.objects.manifest_object import Contents, Manifests
from detent.objects.pack import Batch, Objects
from detent.objects.stat_cache import EMPTY, Key, Row, StatCache, is_settled, key_of, load, save
from detent.objects.walk import Seen, Walk
from detent.store import disk

#: Files above this are copied as files, several at a time, and never held in memory.
LARGE_BYTES = 1024 * 1024
#: Smaller files are stored as they are, without looking for what they have in common with their last content.
_WORTH_COMPARING = 16 * 1024
#: Of a first look at so many files somebody should be told how far it is.
_TELL_EVERY = 500
#: Counts the collections of garbage.
_EPOCH = ".epoch"

Progress = Callable[[int, int], None]


class Scope(NamedTuple):
    """What is taken of a tree."""

    base: str
    #: Patterns as in `.gitignore`, relative to `base`.
    exclude: tuple[str, ...] = ()
    #: Files that are Detent's or say how it works, and are not part of the work.
    own: frozenset[str] = frozenset()
    #: Only what is declared, instead of everything.
    declared_only: bool = False
    max_bytes: int = 100 * 1024 * 1024


class Captured(NamedTuple):
    tree: Tree
    files: Mapping[str, Entry]
    left_out: Mapping[str, str]
    #: How each file looked, so that a later change to it shows.
    rows: Mapping[str, Row]


class Captures:
    """Captures of one tree into one store, with what was seen the last time."""

    def __init__(self, root: str, objects: Objects, scope: Scope, *, cache: str = ".stat-cache") -> None:
        self._root, self._cache_name = root, cache
        self._objects = objects
        self._scope = scope
        self._cache: StatCache | None = None
        self._unsaved = False
        self.manifests = Manifests(objects)

    def take(
        self,
        owner: str,
        *,
        declared: Iterable[str] = (),
        also: Iterable[str] = (),
        progress: Progress | None = None,
        store: bool = True,
    ) -> Captured:
        """The tree as it is now, durably stored unless `store` is off.

        `declared` files are taken whatever the rules say, and kept as files; `also` are taken whatever the rules say
        and whatever their size.
        """
        cache = self._known()
        shown, forced = frozenset(declared), frozenset(also)
        walk = self._walk(cache, shown, forced)
        left_out, fresh = walk.left_out, self._not_too_large(walk, forced)
        known = sum(seen.path in cache.rows for seen in fresh)
        nothing_gone = len(walk.met) + known == len(cache.rows)
        as_before = nothing_gone and not fresh and not walk.forced and left_out == cache.left_out
        if as_before and cache.manifest and walk.rules == cache.rules:
            return self._captured(cache)
        rows, files, size = dict(cache.rows), dict(cache.files), cache.bytes
        for path in walk.forced & rows.keys():
            rows[path] = rows[path]._replace(ruled=False)
        changed: dict[str, Entry] = {}
        gone = {seen.path for seen in fresh if seen.path in rows} if nothing_gone else rows.keys() - set(walk.met)
        with self._storing(owner, store=store) as batch:
            for path, key, entry in self._read_all(fresh, shown, rows, batch, left_out, progress):
                before = files.get(path)
                if before != entry:
                    changed[path] = files[path] = entry
                    size += entry.size - (before.size if before else 0)
                rows[path] = Row(key, entry, is_settled(key, time.time_ns()), path not in walk.forced)
                gone.discard(path)
            for path in gone:
                size -= files.pop(path).size
                del rows[path]
            digest, depth = cache.manifest, cache.depth
            if changed or gone or left_out != cache.left_out or not digest:
                base = (digest, depth) if digest else None
                digest, depth = manifest_object.write(batch, files, changed, gone, left_out, base=base)
        after = StatCache(rows, digest, depth, left_out, cache.epoch, walk.rules, files, size)
        if store:
            self._cache, self._unsaved = after, True
        return self._captured(after)

    def _walk(self, cache: StatCache, declared: frozenset[str], also: frozenset[str]) -> Walk:
        walk = Walk(self._scope.base, cache.rows, exclude=self._scope.exclude, own=self._scope.own, rules=cache.rules)
        if not self._scope.declared_only:
            walk.everything()
        named = declared | also
        if named:
            named -= {*walk.met, *(seen.path for seen in walk.fresh)}
            for path in sorted(named):
                walk.inside(path)
        return walk

    def _not_too_large(self, walk: Walk, forced: frozenset[str]) -> list[Seen]:
        limit = self._scope.max_bytes
        kept = []
        for seen in walk.fresh:
            if seen.status.st_size > limit and seen.path not in forced:
                walk.left_out[seen.path] = f"larger than {limit} bytes"
            else:
                kept.append(seen)
        return kept

    def store_manifest(self, owner: str, files: dict[str, Entry], like: Captured, listing: bytes) -> tuple[Tree, str]:
        """A manifest of files that are all stored already, and a listing beside it."""
        cache = self._known()
        base = (cache.manifest, cache.depth) if cache.manifest == like.tree.manifest else None
        changed = {path: entry for path, entry in files.items() if like.files.get(path) != entry}
        with self._storing(owner, store=True) as batch:
            gone = like.files.keys() - files.keys()
            digest, _ = manifest_object.write(batch, files, changed, gone, like.left_out, base=base)
            archive = batch.add(listing)
        size = sum(entry.size for entry in files.values())
        self.manifests.keep(digest, Contents(files, like.left_out))
        return Tree(manifest=digest, files=len(files), bytes=size, left_out=len(like.left_out)), archive

    def set_epoch(self, epoch: int) -> None:
        """From here on nobody may rely on having stored something in another epoch."""
        path = os.path.join(self._root, _EPOCH)
        with disk.failing_as("write", path):
            os.makedirs(self._root, exist_ok=True)
            disk.replace_durably(path, b"%d" % epoch)
        self._cache = None

    def _read_all(
        self,
        fresh: list[Seen],
        declared: frozenset[str],
        old: dict[str, Row],
        batch: Batch | Hashing,
        left_out: dict[str, str],
        progress: Progress | None,
    ) -> Iterator[tuple[str, Key, Entry]]:
        large = [seen for seen in fresh if seen.status.st_size > LARGE_BYTES and stat.S_ISREG(seen.status.st_mode)]
        for number, (path, status) in enumerate(fresh):
            if progress is not None and number % _TELL_EVERY == 0:
                progress(number, len(fresh))
            if status.st_size > LARGE_BYTES and stat.S_ISREG(status.st_mode):
                continue
            try:
                key, kind, data = _read(os.path.join(self._scope.base, path), status)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                left_out[path] = error.strerror or str(error)
                continue
            if path in declared:
                digest = batch.add_data_as_file(data, name=os.path.basename(path))
            else:
                row = old.get(path) if len(data) > _WORTH_COMPARING else None
                digest = batch.add(data, like=row.entry.digest if row is not None else None)
            yield path, key, Entry(kind, digest, len(data))
        yield from self._read_large(large, batch, left_out)

    def _read_large(
        self, large: list[Seen], batch: Batch | Hashing, left_out: dict[str, str]
    ) -> Iterator[tuple[str, Key, Entry]]:
        if not large:
            return
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - slow to load, and large files are rare

        def copy(seen: Seen) -> tuple[str, Key, Entry] | str:
            full = os.path.join(self._scope.base, seen.path)
            try:
                os.close(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
                digest, size = batch.add_file(full, name=os.path.basename(seen.path))
            except (FileNotFoundError, NotADirectoryError):
                return ""
            except OSError as error:
                return error.strerror or str(error)
            except StoreFailed as error:
                if isinstance(error.__cause__, FileNotFoundError | PermissionError):
                    return error.message
                raise
            return seen.path, key_of(seen.status), Entry(_kind(seen.status), digest, size)

        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            for seen, copied in zip(large, pool.map(copy, large), strict=True):
                if not isinstance(copied, str):
                    yield copied
                elif copied:
                    left_out[seen.path] = copied

    @contextmanager
    def _storing(self, owner: str, *, store: bool) -> Iterator[Batch | Hashing]:
        if store:
            with disk.failing_as("create", self._root):
                os.makedirs(self._root, exist_ok=True)
            with self._objects.batch(owner) as batch:
                yield batch
        else:
            yield Hashing()

    def _captured(self, at: StatCache) -> Captured:
        self.manifests.keep(at.manifest, Contents(at.files, at.left_out))
        tree = Tree(manifest=at.manifest, files=len(at.files), bytes=at.bytes, left_out=len(at.left_out))
        return Captured(tree, at.files, at.left_out, at.rows)

    def _known(self) -> StatCache:
        epoch = self.epoch()
        if self._cache is None or self._cache.epoch != epoch:
            self._cache = load(os.path.join(self._root, self._cache_name), epoch)
            if self._cache is EMPTY:
                self._cache = StatCache({}, epoch=epoch)
        return self._cache

    def epoch(self) -> int:
        """Odd while garbage is collected, even otherwise; it only rises."""
        try:
            with open(os.path.join(self._root, _EPOCH), "rb") as file:
                return int(file.read() or b"0")
        except (FileNotFoundError, ValueError):
            return 0

    def save(self) -> None:
        """Keep what was seen for the next process; done after the work, because nobody waits for it."""
        if self._unsaved and self._cache is not None:
            self._unsaved = False
            # Only a cache: what is stored is stored.
            with suppress(OSError):
                save(os.path.join(self._root, self._cache_name), self._cache)


def _read(path: str, status: os.stat_result) -> tuple[Key, str, bytes]:
    """The content, and how the file looked before it was read: a change during the reading shows the next time."""
    if stat.S_ISLNK(status.st_mode):
        return key_of(status), "l", os.fsencode(os.readlink(path))
    # A pipe may have taken the file's place: never wait for its other end.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        now = os.fstat(fd)
        if not stat.S_ISREG(now.st_mode):
            raise FileNotFoundError(path)
        data = os.read(fd, now.st_size + 1)
        if len(data) != now.st_size:
            data += b"".join(iter(lambda: os.read(fd, LARGE_BYTES), b""))
        return key_of(now), _kind(now), data
    finally:
        os.close(fd)


def _kind(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "l"
    return "x" if status.st_mode & stat.S_IXUSR else "f"
