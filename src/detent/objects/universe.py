"""The files of a project: one set of rules, one walk, one stat cache, for evidence and checkpoints alike.

A look walks the tree once and hashes only the files whose stat changed since they were last hashed. `Moment` shares one
look between the judge of a phase's gates and the checkpoint taken with it, which must see the same files.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import datetime
from typing import NamedTuple

from detent.core.checkpoint.manifest import Entry, changes, tree_digest
from detent.errors import StoreFailed
from detent.objects.pack import Batch, Hashing
from detent.objects.stat_cache import (
    NAMED,
    RULED,
    TRACKED,
    Key,
    Recorded,
    Row,
    StatCache,
    is_trusted,
    key_of,
    load,
    save,
)
from detent.objects.walk import Seen, Walk, all_files
from detent.store import disk

#: Files above this are copied as files, several at a time, and never held in memory.
LARGE_BYTES = 1024 * 1024
#: Smaller files are stored as they are, without looking for what they have in common with their last content.
_WORTH_COMPARING = 16 * 1024
#: Progress is reported after this many files.
_PROGRESS_EVERY = 500
#: The reason to leave out a file that may hold secrets.
MAY_HOLD_SECRETS = "it may hold secrets"
#: Counts the collections of garbage.
EPOCH = ".epoch"

Progress = Callable[[int, int], None]
Sink = Batch | Hashing


class Scope(NamedTuple):
    """The settings of a universe."""

    base: str
    #: Patterns as in `.gitignore`, relative to `base`.
    exclude: tuple[str, ...] = ()
    #: Files that Detent writes or is configured by, and that are no part of the work.
    own: frozenset[str] = frozenset()
    #: Patterns of files that may hold secrets and are captured all the same.
    secrets: tuple[str, ...] = ()
    #: A checkpoint takes only what is declared, instead of everything.
    declared_only: bool = False
    #: Larger files are not hashed: evidence compares their size and time, checkpoints leave them out.
    max_bytes: int = 100 * 1024 * 1024


class Request(NamedTuple):
    """Which files a look is for, besides those that the rules let in."""

    #: Artifacts of phases: stored as plain files.
    declared: frozenset[str] = frozenset()
    #: Taken without a limit of size.
    also: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    #: Whether the look is for all files that the rules let in.
    whole: bool = True

    @property
    def paths(self) -> frozenset[str]:
        return self.declared | self.also | self.named


class Look(NamedTuple):
    """The files at one moment. Rows of named files that this look did not name are of an earlier look."""

    rows: Mapping[str, Row]
    #: Files that the rules leave out and that this look names.
    forced: frozenset[str]
    left_out: Mapping[str, str]
    #: Size and time of files that are too large to be hashed.
    large: Mapping[str, str]
    rules: str
    whole: bool

    def has(self, path: str) -> bool:
        row = self.rows.get(path)
        return row is not None and (row.origin != NAMED or path in self.forced)


class Universe:
    """The files of one tree; `root` is the directory of its stat cache."""

    def __init__(self, root: str, scope: Scope, *, cache: str = ".stat-cache") -> None:
        self.root, self.scope = root, scope
        self._path, self._epoch_path = os.path.join(root, cache), os.path.join(root, EPOCH)
        self._cache: StatCache | None = None
        self._is_saved = True
        #: Whether the cache outlives the process. Commands that only read write nothing.
        self.is_lasting = False
        #: Walks made and files read to be hashed, since the universe was opened.
        self.walks = self.hashed = 0

    def look(
        self,
        request: Request,
        sink: Callable[[], Sink] = Hashing,
        *,
        base: Look | None = None,
        progress: Progress | None = None,
    ) -> Look:
        """The present files; hashed contents go into the sink. `base` is a look that lacks at most the named files."""
        cache = self.cache()
        walk = Walk(
            self.scope.base,
            cache.rows,
            exclude=self.scope.exclude,
            own=self.scope.own,
            rules=cache.rules,
            secrets=self.scope.secrets,
            exempt=request.also,
        )
        is_walked = request.whole and (base is None or not base.whole)
        if is_walked:
            self.walks += 1
            walk.everything()
        paths = request.paths
        if paths:
            paths -= {*walk.met, *(seen.path for seen in (*walk.fresh, *walk.secret))}
            for path in sorted(paths):
                if base is None or not base.has(path):
                    walk.inside(path)
        fresh, large = self._within_limit(walk, request.also)
        gone = self._gone(cache, walk, fresh, is_walked=is_walked)
        origins = {**dict.fromkeys(walk.tracked, TRACKED), **dict.fromkeys(walk.forced, NAMED)}
        read = self._read(fresh, request.declared, sink, walk.left_out, progress) if fresh else ()
        changed = self._readmitted(cache, walk, origins)
        for path, key, entry in read:
            changed[path] = Row(key, entry, is_trusted(key, time.time_ns()), origins.get(path, RULED))
            gone.discard(path)
        rules = walk.rules if is_walked else cache.rules
        rows = self._keep(cache, changed, gone, rules)
        forced = frozenset(path for path in walk.forced if path not in walk.left_out)
        if base is None:
            return Look(rows, forced, walk.left_out, large, walk.rules, request.whole)
        left_out, large = {**base.left_out, **walk.left_out}, {**base.large, **large}
        return Look(rows, base.forced | forced, left_out, large, walk.rules, base.whole or is_walked)

    def read_again(self, look: Look, paths: Iterable[str], declared: frozenset[str], sink: Callable[[], Sink]) -> Look:
        """The look after its files at `paths` went into the sink: they were hashed before and not stored."""
        seen = []
        for path in paths:
            with suppress(OSError):
                seen.append(Seen(path, os.lstat(os.path.join(self.scope.base, path))))
        left_out = dict(look.left_out)
        changed = {
            path: Row(key, entry, is_trusted(key, time.time_ns()), look.rows[path].origin)
            for path, key, entry in self._read(seen, declared, sink, left_out, None)
        }
        cache = self.cache()
        rows = self._keep(cache, changed, set(paths) - changed.keys(), cache.rules)
        return look._replace(rows=rows, left_out=left_out)

    def all_files(self) -> Iterator[str]:
        """The paths of all files, ignored or not; only what the settings exclude is left out."""
        return all_files(self.scope.base, self.scope.exclude)

    def cache(self) -> StatCache:
        epoch = self.epoch()
        if self._cache is None or self._cache.epoch != epoch:
            self._cache = load(self._path, epoch)
        return self._cache

    def record(self, recorded: Recorded, look: Look) -> None:
        """The manifest of the look is stored. Rows that a later look changed stay dirty."""
        cache = self._cache or self.cache()
        dirty = frozenset() if cache.rows is look.rows else cache.dirty
        if cache.dirty != dirty or cache.recorded is not recorded:
            self._cache, self._is_saved = cache._replace(recorded=recorded, dirty=dirty), False
        self.is_lasting = True

    def forget(self) -> None:
        self._cache = None

    def remove_cache(self) -> None:
        """Remove the cache of a tree that is gone."""
        self._cache = None
        with suppress(OSError):
            os.unlink(self._path)

    def epoch(self) -> int:
        """Odd while garbage is collected, even otherwise; it only rises."""
        try:
            return int(disk.read_file(self._epoch_path) or b"0")
        except (OSError, ValueError):
            return 0

    def save(self) -> None:
        """Save the rows for the next process. It is only a cache, so a failure is no error."""
        if self.is_lasting and not self._is_saved and self._cache is not None:
            self._is_saved = True
            with suppress(OSError):
                disk.make_directory(self.root)
                save(self._path, self._cache)

    def _within_limit(self, walk: Walk, also: frozenset[str]) -> tuple[list[Seen], dict[str, str]]:
        limit = self.scope.max_bytes
        kept, large = [], {}
        for seen in walk.secret:
            walk.left_out[seen.path] = MAY_HOLD_SECRETS
            large[seen.path] = f"size:{seen.status.st_size}:{seen.status.st_mtime_ns}"
        for seen in walk.fresh:
            if seen.status.st_size > limit and seen.path not in also:
                walk.left_out[seen.path] = f"larger than {limit} bytes"
                large[seen.path] = f"size:{seen.status.st_size}:{seen.status.st_mtime_ns}"
            else:
                kept.append(seen)
        return kept, large

    def _gone(self, cache: StatCache, walk: Walk, fresh: list[Seen], *, is_walked: bool) -> set[str]:
        """Known files that the walk did not meet; files to read count as gone until they are read."""
        known = {seen.path for seen in fresh if seen.path in cache.rows}
        if not is_walked:
            return known
        named = cache.named.intersection(walk.met) if cache.named else cache.named
        ruled = len(walk.met) - len(named) + len(known - cache.named)
        if ruled == len(cache.rows) - len(cache.named):
            return known
        return cache.rows.keys() - set(walk.met) - cache.named | known

    def _readmitted(self, cache: StatCache, walk: Walk, origins: Mapping[str, int]) -> dict[str, Row]:
        """Rows of files with an unchanged stat and another origin."""
        paths = cache.named | origins.keys()
        met = paths.intersection(walk.met) if paths else paths
        return {
            path: cache.rows[path]._replace(origin=origins.get(path, RULED))
            for path in met
            if cache.rows[path].origin != origins.get(path, RULED)
        }

    def _keep(self, cache: StatCache, changed: Mapping[str, Row], gone: set[str], rules: str) -> dict[str, Row]:
        if not changed and not gone and rules == cache.rules:
            return cache.rows
        rows = dict(cache.rows)
        for path in gone:
            rows.pop(path, None)
        dirty = set(gone)
        for path, row in changed.items():
            before = rows.get(path)
            if before is None or (before.entry, before.origin) != (row.entry, row.origin):
                dirty.add(path)
            rows[path] = row
        candidates = cache.named.union(path for path, row in changed.items() if row.origin == NAMED)
        named = frozenset(path for path in candidates if path in rows and rows[path].origin == NAMED)
        self._cache = cache._replace(rows=rows, named=named, rules=rules, dirty=cache.dirty | dirty)
        self._is_saved = False
        return rows

    def _read(
        self,
        fresh: list[Seen],
        declared: frozenset[str],
        sink: Callable[[], Sink],
        left_out: dict[str, str],
        progress: Progress | None,
    ) -> Iterator[tuple[str, Key, Entry]]:
        batch, known = sink(), (self._cache or self.cache()).rows
        large = [seen for seen in fresh if seen.status.st_size > LARGE_BYTES and stat.S_ISREG(seen.status.st_mode)]
        for number, (path, status) in enumerate(fresh):
            if progress is not None and number % _PROGRESS_EVERY == 0:
                progress(number, len(fresh))
            if status.st_size > LARGE_BYTES and stat.S_ISREG(status.st_mode):
                continue
            try:
                key, kind, mode, data = _content(os.path.join(self.scope.base, path), status)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                left_out[path] = error.strerror or str(error)
                continue
            self.hashed += 1
            if path in declared:
                digest = batch.add_data_as_file(data, name=os.path.basename(path))
            else:
                row = known.get(path) if len(data) > _WORTH_COMPARING else None
                digest = batch.add(data, like=row.entry.digest if row is not None else None)
            yield path, key, Entry(kind, digest, len(data), mode)
        yield from self._read_large(large, batch, left_out)

    def _read_large(self, large: list[Seen], batch: Sink, left_out: dict[str, str]) -> Iterator[tuple[str, Key, Entry]]:
        if not large:
            return
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - slow to load, and large files are rare

        def copy(seen: Seen) -> tuple[str, Key, Entry] | str:
            full = os.path.join(self.scope.base, seen.path)
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
            return seen.path, key_of(seen.status), Entry(kind_of(seen.status), digest, size, private_mode(seen.status))

        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            for seen, copied in zip(large, pool.map(copy, large), strict=True):
                if not isinstance(copied, str):
                    self.hashed += 1
                    yield copied
                elif copied:
                    left_out[seen.path] = copied


class Moment:
    """One look at the universe, made on first use and shared by all holders of the moment."""

    def __init__(self, universe: Universe, storing: Callable[[], AbstractContextManager[Sink]] | None = None) -> None:
        """`storing` opens the store that hashed contents go into, for a checkpoint that follows."""
        self.universe = universe
        self._storing = storing
        self._look: Look | None = None
        self._named: frozenset[str] = frozenset()

    def look(
        self, request: Request, sink: Callable[[], Sink] | None = None, *, progress: Progress | None = None
    ) -> Look:
        look = self._look
        is_whole = look is not None and (look.whole or not request.whole)
        if look is None or not is_whole or not request.paths <= self._named:
            with ExitStack() as stack:
                look = self.universe.look(request, sink or self._sink(stack), base=look, progress=progress)
        self._look, self._named = look, self._named | request.paths
        return look

    def update(self, look: Look) -> None:
        self._look = look

    def _sink(self, stack: ExitStack) -> Callable[[], Sink]:
        storing = self._storing
        return Hashing if storing is None else lambda: stack.enter_context(storing())


class Files(NamedTuple):
    """The files that the rules let in, at one moment: what a person is shown and decides about."""

    files: Mapping[str, Entry]
    #: Files that are not read, with their size and time.
    unread: Mapping[str, str]

    @property
    def digest(self) -> str:
        return tree_digest(self.files, self.unread)

    def changed(self, after: "Files") -> list[str]:
        """The paths whose files are other ones in `after`; sorted."""
        differing = changes(self.files, after.files)
        unread = {path for path, _ in set(self.unread.items()) ^ set(after.unread.items())}
        return sorted({*differing.added, *differing.removed, *differing.modified, *unread})


def files_now(moment: Moment) -> Files:
    """The files of the moment. Page, terminal and engine take the digest of a tree from here."""
    look = moment.look(Request())
    return Files({path: row.entry for path, row in look.rows.items() if row.origin != NAMED}, dict(look.large))


def is_changed_since(moment: Moment, at: datetime) -> bool:
    """Whether a file of the moment was written after that time. A file that was removed since does not show."""
    rows = moment.look(Request()).rows.values()
    return any(row.key[2] > at.timestamp() * 1e9 for row in rows)


def _content(path: str, status: os.stat_result) -> tuple[Key, str, int, bytes]:
    """The content, and the stat before it was read: a change during the read shows the next time."""
    if stat.S_ISLNK(status.st_mode):
        return key_of(status), "l", 0, os.fsencode(os.readlink(path))
    # The file may have become a pipe: never wait for its other end.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        now = os.fstat(fd)
        if not stat.S_ISREG(now.st_mode):
            raise FileNotFoundError(path)
        data = os.read(fd, now.st_size + 1)
        if len(data) != now.st_size:
            data += b"".join(iter(lambda: os.read(fd, LARGE_BYTES), b""))
        return key_of(now), kind_of(now), private_mode(now), data
    finally:
        os.close(fd)


def kind_of(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "l"
    return "x" if status.st_mode & stat.S_IXUSR else "f"


def private_mode(status: os.stat_result) -> int:
    """The permissions of a file that not every account may read; 0 if every account may."""
    mode = status.st_mode & 0o777
    # Its owner may always read what a restore writes.
    return 0 if stat.S_ISLNK(status.st_mode) or mode & stat.S_IROTH else mode | stat.S_IRUSR
